// A mode's variables, asked of the server's program: one function computes them for every front end.

import { execFile } from 'node:child_process';

import { parseBlock, type Variables } from './pure/environment.ts';
import type { Mode } from './pure/modes.ts';
import type { Server } from './server.ts';

/**
 * The variables that `mode` adds to a process which would start with `environment`.
 * undefined: there is no server, or it could not say; the log tells why.
 */
export async function blockOf(server: Server, mode: Mode, environment: Variables): Promise<Record<string, string> | undefined> {
  const program = server.found?.path;
  if (program === undefined) return undefined;
  const { output, notes, failure } = await printed(program, ['env', '--mode', mode, '--format', 'json'], environment);
  for (const note of notes.split('\n').filter((line) => line !== '')) server.log.info(note);
  if (failure !== undefined) {
    server.log.error(`the variables of mode ${mode} could not be had: ${failure}`);
    return undefined;
  }
  const block = parseBlock(output);
  if (block === undefined) server.log.error(`the variables of mode ${mode} could not be read: ${output.slice(0, 200)}`);
  return block;
}

interface Printed {
  readonly output: string;
  readonly notes: string;
  readonly failure: string | undefined;
}

export function printed(program: string, words: readonly string[], environment: Readonly<Record<string, string | undefined>>, cwd?: string): Promise<Printed> {
  const LIMIT = 30_000;
  return new Promise((resolve) => {
    execFile(program, words, { env: environment, timeout: LIMIT, encoding: 'utf8', maxBuffer: 1 << 24, ...(cwd === undefined ? {} : { cwd }) }, (failure, output, notes) => {
      resolve({ output, notes, failure: failure === null ? undefined : notes.trim() || failure.message });
    });
  });
}
