// The mode of each workspace folder: read from `.cublame/mode`, shown in the status bar, switched by a quick pick.

import { access, readFile } from 'node:fs/promises';
import * as path from 'node:path';
import * as vscode from 'vscode';

import { ancestors, DEFAULT_MODE, isMode, MODE_TEXTS, modeOfFile, MODES, type Mode } from './pure/modes.ts';
import type { Server } from './server.ts';

export class Modes implements vscode.Disposable {
  private readonly ofFiles = new Map<string, Mode>();
  private readonly watched = new Set<string>();
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChange = this.changed.event;
  private readonly disposables: { dispose(): unknown }[] = [this.changed];

  constructor() {
    const watcher = vscode.workspace.createFileSystemWatcher('**/.cublame/mode');
    const look = (): void => void this.read();
    this.disposables.push(
      watcher,
      watcher.onDidChange(look),
      watcher.onDidCreate(look),
      watcher.onDidDelete(look),
      vscode.workspace.onDidChangeWorkspaceFolders(look),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration('cublame.mode')) this.changed.fire();
      }),
    );
  }

  /** The mode that a run of this folder takes. */
  of(folder: vscode.WorkspaceFolder | undefined): Mode {
    const ofFile = folder && this.ofFiles.get(folder.uri.toString());
    if (ofFile !== undefined) return ofFile;
    const setting = vscode.workspace.getConfiguration('cublame', folder).get('mode');
    return isMode(setting) ? setting : DEFAULT_MODE;
  }

  /** Of the folder that the user looks at. */
  current(): Mode {
    return this.of(currentFolder());
  }

  async read(): Promise<void> {
    for (const folder of vscode.workspace.workspaceFolders ?? []) {
      const project = await projectFolder(folder);
      const mode = project === undefined ? undefined : await modeWritten(project);
      if (project !== undefined && !project.startsWith(folder.uri.fsPath)) this.watch(project);
      if (mode === undefined) this.ofFiles.delete(folder.uri.toString());
      else this.ofFiles.set(folder.uri.toString(), mode);
    }
    this.changed.fire();
  }

  /** The server writes the file. */
  async write(folder: vscode.WorkspaceFolder, mode: Mode): Promise<void> {
    await vscode.commands.executeCommand('cublame.setMode', { mode, folder: folder.uri.toString(), quiet: true });
    this.ofFiles.set(folder.uri.toString(), mode);
    this.changed.fire();
  }

  dispose(): void {
    for (const disposable of this.disposables) disposable.dispose();
  }

  /** The workspace's own watcher sees nothing above the workspace. */
  private watch(project: string): void {
    if (this.watched.has(project)) return;
    this.watched.add(project);
    const watcher = vscode.workspace.createFileSystemWatcher(new vscode.RelativePattern(vscode.Uri.file(project), 'mode'));
    const look = (): void => void this.read();
    this.disposables.push(watcher, watcher.onDidChange(look), watcher.onDidCreate(look), watcher.onDidDelete(look));
  }
}

/** The status-bar item, which says the mode or why there is none. */
export function statusBar(modes: Modes, server: Server): vscode.Disposable {
  const item = vscode.window.createStatusBarItem('cublame.mode', vscode.StatusBarAlignment.Left, 40);
  item.name = 'cublame';
  const show = (): void => {
    if (server.found === undefined || !server.running) {
      const missing = server.found === undefined;
      item.text = missing ? `$(warning) ${vscode.l10n.t('CUDA: no server')}` : `$(loading~spin) ${vscode.l10n.t('CUDA')}`;
      item.tooltip = missing ? vscode.l10n.t('No cublame server was found. Click for the log.') : vscode.l10n.t('The cublame server is starting.');
      item.command = 'cublame.showLog';
    } else {
      const mode = modes.current();
      const text = MODE_TEXTS[mode];
      item.text = `$(${text.icon}) ${vscode.l10n.t('CUDA: {0}', vscode.l10n.t(text.name))}`;
      const tooltip = new vscode.MarkdownString();
      tooltip.appendMarkdown(`**${vscode.l10n.t('How CUDA failures are found')}**\n\n`);
      tooltip.appendText(`${vscode.l10n.t(text.benefit)}\n\n${vscode.l10n.t('Cost: {0}', vscode.l10n.t(text.cost))}`);
      item.tooltip = tooltip;
      item.command = 'cublame.selectMode';
    }
    item.show();
  };
  show();
  return vscode.Disposable.from(item, modes.onDidChange(show), server.onDidChange(show), vscode.window.onDidChangeActiveTextEditor(show));
}

interface ModeItem extends vscode.QuickPickItem {
  readonly mode: Mode;
}

/** The modes with what they give and cost; undefined when the user turned away. */
export async function pickMode(title: string, active: Mode | undefined): Promise<Mode | undefined> {
  const items = MODES.map((mode): ModeItem => {
    const text = MODE_TEXTS[mode];
    return {
      mode,
      label: `$(${text.icon}) ${vscode.l10n.t(text.name)}`,
      description: [...(mode === active ? [vscode.l10n.t('active')] : []), vscode.l10n.t(text.cost)].join(', '),
      detail: vscode.l10n.t(text.benefit),
    };
  });
  const chosen = await vscode.window.showQuickPick(items, { title, matchOnDetail: true, placeHolder: vscode.l10n.t('What it gives, and what it costs') });
  return chosen?.mode;
}

/** Asks which folder where there are several, then for the mode, and writes it. */
export async function selectMode(modes: Modes): Promise<void> {
  const folders = vscode.workspace.workspaceFolders ?? [];
  const folder = folders.length > 1 ? await vscode.window.showWorkspaceFolderPick() : folders[0];
  if (folder === undefined) {
    if (folders.length === 0) void vscode.window.showInformationMessage(vscode.l10n.t('Open a folder first: its mode is kept in .cublame/mode.'));
    return;
  }
  const title = folders.length > 1 ? vscode.l10n.t('How CUDA failures are found in {0}', folder.name) : vscode.l10n.t('How CUDA failures are found');
  const mode = await pickMode(title, modes.of(folder));
  if (mode !== undefined) await modes.write(folder, mode);
}

export function currentFolder(): vscode.WorkspaceFolder | undefined {
  const document = vscode.window.activeTextEditor?.document;
  return (document && vscode.workspace.getWorkspaceFolder(document.uri)) ?? vscode.workspace.workspaceFolders?.[0];
}

/** Where the runs and the mode of a folder are kept, by the rules of server/src/session/place.rs; undefined where nothing is yet. */
async function projectFolder(folder: vscode.WorkspaceFolder): Promise<string | undefined> {
  const chosen = process.env['CUBLAME_DIR'];
  if (chosen !== undefined && chosen !== '') return path.resolve(folder.uri.fsPath, chosen);
  for (const ancestor of ancestors(folder.uri.fsPath)) {
    const candidate = path.join(ancestor, '.cublame');
    try {
      await access(candidate);
      return candidate;
    } catch {
      // Then one above it.
    }
  }
  return undefined;
}

async function modeWritten(project: string): Promise<Mode | undefined> {
  try {
    return modeOfFile((await readFile(path.join(project, 'mode'), 'utf8')).slice(0, 4096));
  } catch {
    // Nobody has chosen one.
    return undefined;
  }
}
