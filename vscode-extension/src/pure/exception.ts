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
 * debugpy's `stackTrace` is what Python prints, causes first, without the header lines and with a mark at the current frame
 * (pydevd_comm.py, build_exception_info_response).
 */
export function asLog(info: ExceptionInfo, stderr: string): string | undefined {
  const trace = info.details?.stackTrace?.replace(/ \(Current frame\)$/gm, '').replace(/\n*$/, '\n');
  if (trace === undefined || trace === '\n') return undefined;
  const withHeaders = `${HEADER}\n${trace}`.replace(/^((?:The above exception was|During handling of).*:\n\n)(?!Traceback)/gm, `$1${HEADER}\n`);
  const before = stderr === '' || stderr.endsWith('\n') ? stderr : `${stderr}\n`;
  return before + withHeaders;
}

const HEADER = 'Traceback (most recent call last):';

/** The end of a text that keeps growing. */
export function tail(text: string, more: string, most: number): string {
  const whole = text + more;
  return whole.length <= most ? whole : whole.slice(whole.length - most);
}
