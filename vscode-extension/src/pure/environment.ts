// Environments of debug sessions and terminals, as values.

import { isMode, type Mode } from './modes.ts';

export type Variables = Readonly<Record<string, string>>;

/** What of a debug configuration decides its environment. */
export interface Launch {
  readonly env?: Readonly<Record<string, string | null | undefined>> | undefined;
}

/** What the program would start with, before the mode's variables are added. */
export function environmentOf(launch: Launch, envFile: string | undefined, inherited: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const own: Record<string, string | null | undefined> = { ...inherited, ...(envFile === undefined ? {} : parseDotenv(envFile)), ...launch.env };
  return Object.fromEntries(Object.entries(own).filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
}

/** A profile that names its mode keeps it; any other configuration takes that of the workspace. */
export function modeOfLaunch(environment: Variables, inherited: Readonly<Record<string, string | undefined>>, workspace: Mode): Mode {
  const named = environment['CUBLAME_MODE'];
  return isMode(named) && named !== inherited['CUBLAME_MODE'] ? named : workspace;
}

/** The configuration's own variables with the block over them; what the block does not name stays as it is. */
export function withBlock(launch: Launch, block: Variables): Record<string, string | null | undefined> {
  return { ...launch.env, ...block };
}

/**
 * The variables of a dotenv file, by the rules of the Python extension: `NAME=value`, an optional `export`, quotes,
 * `#` comments, and `${NAME}` of what was set before.
 */
export function parseDotenv(text: string): Record<string, string> {
  const variables: Record<string, string> = {};
  for (const line of text.split(/\r?\n/)) {
    const match = /^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*$/.exec(line);
    const [, name, written] = match ?? [];
    if (name === undefined || written === undefined) continue;
    const quoted = /^'(.*)'$|^"(.*)"$/.exec(written);
    const value = quoted ? (quoted[1] ?? quoted[2] ?? '') : written.replace(/\s+#.*$/, '');
    variables[name] = quoted?.[1] === undefined ? value.replace(/\$\{(\w+)\}/g, (_, inner: string) => variables[inner] ?? '') : value;
  }
  return variables;
}

/** The variables that `cublame env --format json` printed; undefined where that is no such thing. */
export function parseBlock(output: string): Record<string, string> | undefined {
  let value: unknown;
  try {
    value = JSON.parse(output);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const entries = Object.entries(value);
  return entries.every((entry): entry is [string, string] => typeof entry[1] === 'string') ? Object.fromEntries(entries) : undefined;
}

/** What to change so that `before` becomes `after`: nothing is written that is there already. */
export function changes(before: Variables, after: Variables): { readonly set: [string, string][]; readonly remove: string[] } {
  return {
    set: Object.entries(after).filter(([name, value]) => before[name] !== value),
    remove: Object.keys(before).filter((name) => !(name in after)),
  };
}
