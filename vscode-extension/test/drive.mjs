// All tests in real VS Code, one after the other in one code-server. Prints a line a check and the counts.
// usage: node drive.mjs TOOLS CUBLAME VSIX UNIVERSAL_VSIX DEBUGPY_VSIX PYTHON_WITH_DEBUGPY [TORCH_PYTHON]
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

import { Editor } from './editor.mjs';
import { pages } from './pages.mjs';

const [tools, cublame, vsix, universal, debugpy, python, torch] = process.argv.slice(2);
const { chromium } = createRequire(path.join(tools, 'tools', 'package.json'))('playwright-core');
const here = path.dirname(fileURLToPath(import.meta.url));
const out = path.join(here, 'out');
const fixtures = path.join(here, '..', '..', 'tests', 'fixtures', 'gpu');
const scratch = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'cublame-vscode-')));
const wanted = process.env.SUITES?.split(',');

let passed = 0;
let failed = 0;
const line = (text) => {
  if (text.startsWith('ok')) passed += 1;
  else failed += 1;
  console.log(text);
};

/** A copy of the workspace, with the recorded program in it. */
function workspace(name) {
  const folder = path.join(scratch, name);
  fs.cpSync(path.join(here, 'workspace'), folder, { recursive: true });
  fs.copyFileSync(path.join(fixtures, 'programs', 'embedding_oob.py'), path.join(folder, 'embedding_oob.py'));
  fs.copyFileSync(path.join(here, '..', '..', 'tests', 'torch', 'programs', 'bad_index.py'), path.join(folder, 'bad_index.py'));
  for (const file of ['project.env', '.vscode/launch.json']) {
    const text = fs.readFileSync(path.join(folder, file), 'utf8');
    fs.writeFileSync(path.join(folder, file), text.replaceAll('@WORKSPACE@', folder).replaceAll('@RECORDED_TORCH@', recorded.RECORDED_TORCH).replaceAll('@RECORDED_LOGS@', recorded.RECORDED_LOGS));
  }
  return folder;
}

/** A failure that is on disk before the window opens. */
function fail(folder) {
  const environment = { ...editor.env, PYTHONPATH: recorded.RECORDED_TORCH, RECORDED: recorded.RECORDED_LOGS };
  try {
    execFileSync(cublame, ['run', '--mode', 'off', '--', 'python3', path.join(folder, 'embedding_oob.py')], { cwd: folder, env: environment, stdio: 'ignore' });
  } catch {
    return;
  }
  throw new Error('the recorded program did not fail');
}

const recorded = { RECORDED_TORCH: path.join(here, 'recorded', 'site-packages'), RECORDED_LOGS: path.join(fixtures, 'logs') };
const editor = new Editor({ tools, folder: path.join(scratch, 'editor'), out, python, environment: { ...recorded, CUBLAME_UNDER_TEST: cublame, ...(torch ? { TORCH_PYTHON: torch } : {}) } });
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'],
});

async function suite(name, folder, seconds) {
  if (wanted && !wanted.includes(name)) return;
  const before = failed;
  const good = await editor.runSuite(browser, folder, { suite: path.join(out, 'host', `${name}.js`), extension: path.join(here, 'host-extension'), limit: seconds * 1000, line });
  if (!good && failed === before) line(`not ok - the suite ${name} did not end well: see ${path.join(out, `${name}.log`)}`);
}

try {
  editor.install(vsix, debugpy);
  await editor.start();

  const trusted = workspace('trusted');
  await suite('trusted', trusted, 170);
  await suite('again', trusted, 60);

  const strange = workspace('untrusted');
  fs.writeFileSync(path.join(strange, 'planted'), `#!/bin/sh\ntouch '${strange}/planted-was-run'\nexec '${cublame}' "$@"\n`, { mode: 0o755 });
  fs.writeFileSync(path.join(strange, '.vscode', 'settings.json'), JSON.stringify({ 'cublame.server.path': path.join(strange, 'planted'), 'cublame.python': path.join(strange, 'planted') }));
  fail(strange);
  editor.configure({ trust: true });
  await suite('untrusted', strange, 60);
  editor.configure({ trust: false });

  if (!wanted || wanted.includes('pages')) await pages({ editor, browser, out, line, folder: workspace('train'), fail });

  if (process.env.SCREENSHOTS === 'update') {
    for (const name of ['live', 'mode', 'runs']) fs.copyFileSync(path.join(out, `${name}.png`), path.join(here, '..', 'media', 'screenshots', `${name}.png`));
  }

  editor.install(universal);
  await suite('without', workspace('without'), 60);
} catch (failure) {
  line(`not ok - ${failure.stack}`);
} finally {
  await browser.close();
  await editor.stop();
  fs.rmSync(scratch, { recursive: true, force: true });
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
