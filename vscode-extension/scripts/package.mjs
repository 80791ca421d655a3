// Packages the extension as a VSIX for this platform, with the server inside.
// CUBLAME_BINARY names the server, else it is the release build. `--universal` leaves it out. `--out FILE` names the result.
import { execFileSync } from 'node:child_process';
import { copyFileSync, chmodSync, existsSync, mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const here = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const universal = process.argv.includes('--universal');
const target = `${process.platform}-${process.arch}`;
const given = process.argv.indexOf('--out');
const out = path.resolve(given < 0 ? path.join(here, `cublame-${universal ? 'universal' : target}.vsix`) : process.argv[given + 1]);
const name = process.platform === 'win32' ? 'cublame.exe' : 'cublame';

rmSync(path.join(here, 'bundled'), { recursive: true, force: true });
if (!universal) {
  const binary = path.resolve(process.env.CUBLAME_BINARY ?? path.join(here, '..', 'target', 'release', name));
  if (!existsSync(binary)) {
    console.error(`there is no server at ${binary}: build it with \`cargo build --release\`, or name one with CUBLAME_BINARY`);
    process.exit(1);
  }
  const bundled = path.join(here, 'bundled', 'bin', name);
  mkdirSync(path.dirname(bundled), { recursive: true });
  copyFileSync(binary, bundled);
  chmodSync(bundled, 0o755);
}
const run = (script, ...words) => execFileSync(process.execPath, [script, ...words], { cwd: here, stdio: 'inherit' });
run('scripts/build.mjs');
const vsce = path.join(here, 'node_modules', '@vscode', 'vsce', 'vsce');
run(vsce, 'package', '--no-dependencies', '--out', out, ...(universal ? [] : ['--target', target]));
