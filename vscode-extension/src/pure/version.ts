// Versions of the server.

export type Version = readonly [number, number, number];

/** The oldest server that speaks all that this extension says. */
export const OLDEST_SERVER: Version = [0, 1, 0];

/** The version in what `cublame --version` prints, `cublame 0.1.0`; undefined where the program is another one. */
export function serverVersion(output: string): Version | undefined {
  const match = /^cublame (\d+)\.(\d+)\.(\d+)/.exec(output.trim());
  return match ? [Number(match[1]), Number(match[2]), Number(match[3])] : undefined;
}

export function isOlder(version: Version, than: Version): boolean {
  for (const [part, wanted] of [0, 1, 2].map((index) => [version[index] ?? 0, than[index] ?? 0] as const)) {
    if (part !== wanted) return part < wanted;
  }
  return false;
}

export function versionText(version: Version): string {
  return version.join('.');
}
