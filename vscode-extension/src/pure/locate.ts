// Which server to use: candidates in order, and the first that answers.

import { isOlder, OLDEST_SERVER, serverVersion, versionText, type Version } from './version.ts';

/** Everything that decides where a server may be. */
export interface Surroundings {
  readonly trusted: boolean;
  readonly windows: boolean;
  /** `cublame.server.path`; empty when it is not set. */
  readonly setting: string;
  /** The folder of the extension. */
  readonly extension: string;
  /** The interpreter of the workspace; undefined when none is chosen. */
  readonly python: string | undefined;
  /** The variable PATH. */
  readonly path: string;
}

export interface Candidate {
  readonly path: string;
  /** Where it comes from, in words for the log. */
  readonly why: string;
  /** The user has named it: when it cannot be used, that is said aloud. */
  readonly named: boolean;
}

/** What became of a candidate that was asked for its version. */
export type Answer = { readonly kind: 'printed'; readonly output: string } | { readonly kind: 'failed'; readonly reason: string };

export type Judged = { readonly usable: true; readonly version: Version } | { readonly usable: false; readonly reason: string };

/** The programs to try, best first. In an untrusted workspace that is the bundled one alone. */
export function candidates(around: Surroundings): Candidate[] {
  const name = around.windows ? 'cublame.exe' : 'cublame';
  const separator = around.windows ? '\\' : '/';
  const join = (...parts: string[]): string => parts.join(separator);
  const bundled = { path: join(around.extension, 'bundled', 'bin', name), why: 'it comes with the extension', named: false };
  if (!around.trusted) return [{ ...bundled, why: 'it comes with the extension, and the workspace is not trusted' }];
  const found: Candidate[] = [];
  if (around.setting !== '') found.push({ path: around.setting, why: 'the setting cublame.server.path names it', named: true });
  found.push(bundled);
  const environment = around.python === undefined ? undefined : folderOf(around.python);
  if (environment !== undefined) {
    found.push({ path: join(environment, name), why: `it is in the environment of ${around.python ?? ''}`, named: false });
  }
  for (const folder of around.path.split(around.windows ? ';' : ':')) {
    if (isAbsolute(folder)) found.push({ path: join(folder.replace(/[\\/]$/, ''), name), why: 'it is on PATH', named: false });
  }
  return found.filter((candidate, index) => found.findIndex((other) => other.path === candidate.path) === index);
}

/** Can this program be the server? */
export function judge(answer: Answer): Judged {
  if (answer.kind === 'failed') return { usable: false, reason: answer.reason };
  const version = serverVersion(answer.output);
  if (version === undefined) return { usable: false, reason: 'it does not say that it is cublame' };
  if (isOlder(version, OLDEST_SERVER)) {
    return { usable: false, reason: `it is version ${versionText(version)}, and at least ${versionText(OLDEST_SERVER)} is needed` };
  }
  return { usable: true, version };
}

/** A relative name would be looked up in the working directory, which the workspace decides. */
export function isAbsolute(path: string): boolean {
  return path.startsWith('/') || /^[A-Za-z]:[\\/]/.test(path);
}

function folderOf(program: string): string | undefined {
  const end = Math.max(program.lastIndexOf('/'), program.lastIndexOf('\\'));
  return end > 0 && isAbsolute(program) ? program.slice(0, end) : undefined;
}
