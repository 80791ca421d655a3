// The extension: it finds and starts the server, forwards to it, and shows what comes back.

import * as vscode from 'vscode';

import { registerDebugging } from './debugging.ts';
import { DebugTracker } from './debugTracker.ts';
import { explainClipboard, explainSelection } from './explain.ts';
import { Gutter } from './gutter.ts';
import { interpreterOf, watchInterpreter } from './interpreter.ts';
import { Missing } from './missing.ts';
import { Modes, selectMode, statusBar } from './modes.ts';
import { writeProfiles } from './profiles.ts';
import type { Run } from './pure/protocol.ts';
import { openReport } from './report.ts';
import { RunsView } from './runsView.ts';
import { Server } from './server.ts';
import { runInTerminal, Tasks, type Definition } from './tasks.ts';
import { Terminals } from './terminals.ts';
import { middleware } from './middleware.ts';

/** What other extensions and the tests can see. */
export interface Api {
  /** The program in use, its process, and whether it answers. */
  server(): { readonly path: string | undefined; readonly why: string | undefined; readonly pid: number | undefined; readonly running: boolean };
  /** The runs as the server last told them, newest first. */
  runs(): readonly Run[];
  /** The number on the view's badge. */
  badge(): number;
}

/** Nothing here waits: the editor is held up by none of it. */
export function activate(context: vscode.ExtensionContext): Api {
  const activated = Date.now() / 1000;
  const log = vscode.window.createOutputChannel('cublame', { log: true });
  const modes = new Modes();
  const gutter = new Gutter(context);
  const shown: { runs(runs: readonly Run[]): void } = { runs: () => undefined };
  const debuggers: { tracker?: DebugTracker } = {};
  const server = new Server(context, log, {
    requests: {
      runs: ({ runs }) => {
        shown.runs(runs);
      },
      runInTerminal: (params) => void runInTerminal(params),
      report: (params) => void openReport(params),
      askDebugger: (question) => debuggers.tracker?.ask(question),
    },
    middleware: middleware(modes, gutter),
    interpreter: () => interpreterOf(),
  });
  const tracker = new DebugTracker(server);
  debuggers.tracker = tracker;
  const view = new RunsView();
  const tasks = new Tasks(modes, server);
  const supervise = async (definition: Definition, folder: vscode.WorkspaceFolder | undefined): Promise<void> => {
    const task = await tasks.task(definition, folder);
    if (task !== undefined) await vscode.tasks.executeTask(task);
  };
  const missing = new Missing(context, (run) => {
    const [program, ...args] = run.entry === null ? [] : [run.entry, ...run.argv.slice(run.argv.findIndex((word) => run.entry?.endsWith(word)) + 1)];
    if (program !== undefined) void supervise({ type: 'cublame', program, args, cwd: run.cwd }, vscode.workspace.getWorkspaceFolder(vscode.Uri.file(program)));
  });
  const terminals = new Terminals(context, modes, server);
  shown.runs = (runs) => {
    view.show(runs);
    gutter.show(runs);
    missing.look(runs, activated);
  };
  const command = (name: string, action: () => unknown): vscode.Disposable => vscode.commands.registerCommand(`cublame.${name}`, action);
  context.subscriptions.push(
    log,
    modes,
    gutter,
    server,
    tracker,
    view,
    terminals,
    statusBar(modes, server),
    tasks.register(),
    registerDebugging(modes, server, (configuration, folder) => {
      const { program, args, cwd } = configuration as { program?: unknown; args?: unknown; cwd?: unknown };
      if (typeof program !== 'string') return;
      const words = Array.isArray(args) ? args.filter((word) => typeof word === 'string') : [];
      void supervise({ type: 'cublame', program, args: words, mode: modes.of(folder), ...(typeof cwd === 'string' ? { cwd } : {}) }, folder);
    }),
    command('selectMode', () => selectMode(modes)),
    command('runFile', () => runFile()),
    command('explainSelection', explainSelection),
    command('explainClipboard', explainClipboard),
    command('writeProfiles', () => writeProfiles(server)),
    command('terminals.toggle', () => terminals.toggle()),
    command('clearAll', () => vscode.commands.executeCommand('cublame.clear')),
    command('examine', () => vscode.commands.executeCommand('cublame.doctor')),
    command('restartServer', () => server.start()),
    command('showLog', () => {
      log.show();
    }),
    server.onDidChange(() => {
      setContexts(server);
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(() => server.start()),
    vscode.workspace.onDidChangeConfiguration(async (event) => {
      if (event.affectsConfiguration('cublame.server.path') || event.affectsConfiguration('cublame.runIn')) await server.start();
    }),
  );
  void modes.read();
  void server.start().then(async () => {
    const watch = await watchInterpreter(() => void server.start());
    if (watch !== undefined) context.subscriptions.push(watch);
  });
  return {
    server: () => ({ path: server.found?.path, why: server.found?.why, pid: server.pid, running: server.running }),
    runs: () => view.runs,
    badge: () => view.badge,
  };
}

/** The open file is what the user sees, so it is saved first. */
async function runFile(): Promise<void> {
  const document = vscode.window.activeTextEditor?.document;
  if (document?.languageId !== 'python' || document.isUntitled) {
    void vscode.window.showInformationMessage(vscode.l10n.t('Open a Python file first.'));
    return;
  }
  if (document.isDirty && !(await document.save())) return;
  await vscode.commands.executeCommand('cublame.run', { uri: document.uri.toString() });
}

/** What menus and commands depend on: a server that answers, and what it can do. */
function setContexts(server: Server): void {
  const set = (name: string, value: boolean): void => void vscode.commands.executeCommand('setContext', `cublame.${name}`, value);
  const commands = server.running ? server.commands() : [];
  set('ready', server.running);
  set('can.repro', commands.includes('cublame.repro'));
  set('can.delete', commands.includes('cublame.delete'));
}
