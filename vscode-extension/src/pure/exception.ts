// What a debugger says about the exception that it stands at, as the log that Python would have printed.

/** The body of DAP's `exceptionInfo` response. */
export interface ExceptionInfo {
  readonly breakMode?: string;
  readonly details?: {
    readonly stackTrace?: string;
  };
}

/** A raised exception that somebody will catch is no failure yet. */
export function isUncaught(info: ExceptionInfo): boolean {
  return info.breakMode === 'unhandled' || info.breakMode === 'userUnhandled';
}

/**
 * What the program has written to stderr, then the traceback; undefined where the debugger says no more than that it stands.
 *
 * debugpy's `stackTrace` has what Python prints, causes first, but the last exception's frames innermost first, without the
 * header lines and with a mark at the current frame (pydevd_comm.py, build_exception_info_response).
 */
export function asLog(info: ExceptionInfo, stderr: string): string | undefined {
  const trace = info.details?.stackTrace?.replace(/ \(Current frame\)$/gm, '').trimEnd();
  if (trace === undefined || trace === '') return undefined;
  const before = stderr === '' || stderr.endsWith('\n') ? stderr : `${stderr}\n`;
  return `${before}${withHeaders(trace.split('\n')).join('\n')}\n`;
}

/** Each exception's frames under their header, outermost first. */
function withHeaders(lines: readonly string[]): string[] {
  const HEADER = 'Traceback (most recent call last):';
  const pieces: (string | string[][])[] = [];
  for (const line of lines.filter((it) => it !== HEADER)) {
    const last = pieces.at(-1);
    if (line.startsWith('  File "')) {
      if (Array.isArray(last)) last.push([line]);
      else pieces.push([[line]]);
    } else if (Array.isArray(last) && line.startsWith('    ')) last.at(-1)?.push(line);
    else pieces.push(line);
  }
  const final = pieces.findLast((piece) => Array.isArray(piece));
  return pieces.flatMap((piece) => {
    if (!Array.isArray(piece)) return [piece];
    // A program's outermost frame is easily told, so that a debugger which gives Python's own order is understood too.
    const innermostFirst = piece === final && piece[0]?.[0]?.endsWith(', in <module>') !== true;
    return [HEADER, ...(innermostFirst ? piece.toReversed() : piece).flat()];
  });
}

/** The end of a text that keeps growing. */
export function tail(text: string, more: string, most: number): string {
  const whole = text + more;
  return whole.length <= most ? whole : whole.slice(whole.length - most);
}
