// Tasks: programs under `cublame run`, which sees their streams and their end.

import * as path from 'node:path';
import * as vscode from 'vscode';

import { interpreterOf } from './interpreter.ts';
import { currentFolder, type Modes } from './modes.ts';
import { isMode, MODE_TEXTS, type Mode } from './pure/modes.ts';
import type { RunInTerminalParams } from './pure/protocol.ts';
import type { Server } from './server.ts';

/** A task as it stands in tasks.json. */
export interface Definition extends vscode.TaskDefinition {
  readonly type: 'cublame';
  readonly program: string;
  readonly args?: readonly string[];
  readonly mode?: Mode;
  readonly python?: string;
  readonly cwd?: string;
}

export class Tasks implements vscode.TaskProvider {
  constructor(
    private readonly modes: Modes,
    private readonly server: Server,
  ) {}

  register(): vscode.Disposable {
    return vscode.tasks.registerTaskProvider('cublame', this);
  }

  async provideTasks(): Promise<vscode.Task[]> {
    const folder = currentFolder();
    const offered: Mode[] = ['trace', 'blocking', 'guard', 'sanitize'];
    const tasks = await Promise.all(offered.map((mode) => this.task({ type: 'cublame', program: '${file}', mode }, folder)));
    return tasks.filter((task) => task !== undefined);
  }

  async resolveTask(task: vscode.Task): Promise<vscode.Task | undefined> {
    const folder = typeof task.scope === 'object' ? task.scope : currentFolder();
    return this.task(task.definition as Definition, folder);
  }

  /** The task of a definition, which is kept as it is: that is how VS Code recognises it. */
  async task(definition: Definition, folder: vscode.WorkspaceFolder | undefined): Promise<vscode.Task | undefined> {
    const program = this.server.found?.path;
    if (program === undefined || typeof definition.program !== 'string') return undefined;
    const mode = isMode(definition.mode) ? definition.mode : this.modes.of(folder);
    const python = definition.python ?? (await interpreterOf(folder?.uri)) ?? 'python3';
    const words = ['run', '--mode', mode, '--', python, definition.program, ...(definition.args ?? [])];
    const cwd = definition.cwd ?? folder?.uri.fsPath;
    const what = definition.program === '${file}' ? vscode.l10n.t('current file') : path.basename(definition.program);
    return supervised([program, ...words], cwd, `${what} (${vscode.l10n.t(MODE_TEXTS[mode].name)})`, definition, folder);
  }
}

/** Runs what the server asks for in a terminal of its own. */
export async function runInTerminal(params: RunInTerminalParams): Promise<void> {
  const command = params.argv.indexOf('--') + 1;
  const program = params.argv.slice(command).find((word) => word.endsWith('.py')) ?? params.argv[command] ?? 'cublame';
  const definition = { type: 'cublame', program };
  const folder = vscode.workspace.getWorkspaceFolder(vscode.Uri.file(params.cwd));
  await vscode.tasks.executeTask(supervised(params.argv, params.cwd, path.basename(program), definition, folder));
}

function supervised(argv: readonly string[], cwd: string | undefined, name: string, definition: vscode.TaskDefinition, folder: vscode.WorkspaceFolder | undefined): vscode.Task {
  const [program, ...words] = argv;
  // No shell stands between, so no word is split and every signal arrives.
  const execution = new vscode.ProcessExecution(program ?? 'cublame', words, cwd === undefined ? {} : { cwd });
  const task = new vscode.Task(definition, folder ?? vscode.TaskScope.Workspace, name, 'cublame', execution, []);
  task.presentationOptions = { reveal: vscode.TaskRevealKind.Always, panel: vscode.TaskPanelKind.Dedicated, clear: true, showReuseMessage: false };
  return task;
}
