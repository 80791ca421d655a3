// The view of runs: a tree with what each run said, its actions, and a badge with the failures that stand.

import * as vscode from 'vscode';

import { pickMode } from './modes.ts';
import { isMode, type Mode } from './pure/modes.ts';
import { rows, standingFailures, type Row } from './pure/runs.ts';
import type { Run } from './pure/protocol.ts';

export class RunsView implements vscode.TreeDataProvider<Row>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly view: vscode.TreeView<Row>;
  private readonly disposables: { dispose(): unknown }[];
  runs: readonly Run[] = [];

  constructor() {
    this.view = vscode.window.createTreeView('cublame.runs', { treeDataProvider: this, showCollapseAll: true });
    const command = (name: string, action: (row: Row) => unknown): vscode.Disposable => vscode.commands.registerCommand(`cublame.runs.${name}`, action);
    this.disposables = [
      this.changed,
      this.view,
      command('show', (row) => goTo(row)),
      command('rerun', (row) => rerun(row)),
      command('openReport', (row) => vscode.commands.executeCommand('cublame.openReport', { run: row.run.id })),
      command('copyReport', (row) => vscode.commands.executeCommand('cublame.copyReport', { run: row.run.id })),
      command('dismiss', (row) => vscode.commands.executeCommand('cublame.dismiss', { run: row.run.id })),
      command('stop', (row) => vscode.commands.executeCommand('cublame.stop', { run: row.run.id })),
      command('reproduce', (row) => vscode.commands.executeCommand('cublame.repro', { run: row.run.id })),
      command('delete', (row) => deleteRun(row)),
    ];
  }

  get badge(): number {
    return this.view.badge?.value ?? 0;
  }

  show(runs: readonly Run[]): void {
    this.runs = runs;
    this.refresh();
  }

  refresh(): void {
    const failures = standingFailures(this.runs);
    this.view.badge = failures === 0 ? undefined : { value: failures, tooltip: vscode.l10n.t('{0} programs fail', failures) };
    this.changed.fire(undefined);
  }

  getChildren(row?: Row): Row[] {
    return row ? [...row.children] : rows(this.runs, Date.now() / 1000);
  }

  getTreeItem(row: Row): vscode.TreeItem {
    const newest = row.run === this.runs[0] && row.context.startsWith('run');
    const open = newest ? vscode.TreeItemCollapsibleState.Expanded : vscode.TreeItemCollapsibleState.Collapsed;
    const item = new vscode.TreeItem(row.label, row.children.length === 0 ? vscode.TreeItemCollapsibleState.None : open);
    item.id = row.id;
    item.description = row.description;
    item.tooltip = row.tooltip;
    item.contextValue = row.context;
    item.iconPath = row.icon.color === undefined ? new vscode.ThemeIcon(row.icon.name) : new vscode.ThemeIcon(row.icon.name, new vscode.ThemeColor(row.icon.color));
    if (row.place !== undefined) item.command = { command: 'cublame.runs.show', title: vscode.l10n.t('Go to the Line'), arguments: [row] };
    return item;
  }

  dispose(): void {
    for (const disposable of this.disposables) disposable.dispose();
  }
}

async function goTo(row: Row): Promise<void> {
  if (row.place === undefined) return;
  const position = new vscode.Position(row.place.line - 1, 0);
  await vscode.window.showTextDocument(vscode.Uri.file(row.place.path), { selection: new vscode.Range(position, position) });
}

async function rerun(row: Row): Promise<void> {
  const mode: Mode | undefined = await pickMode(vscode.l10n.t('Run {0} again in which mode?', row.label), isMode(row.run.mode) ? row.run.mode : undefined);
  if (mode !== undefined) await vscode.commands.executeCommand('cublame.rerun', { run: row.run.id, mode });
}

async function deleteRun(row: Row): Promise<void> {
  const remove = vscode.l10n.t('Delete');
  const text = vscode.l10n.t('Delete the run of {0} with everything recorded of it?', row.label);
  if ((await vscode.window.showWarningMessage(text, { modal: true, detail: row.run.folder }, remove)) === remove) {
    await vscode.commands.executeCommand('cublame.delete', { run: row.run.id });
  }
}
