// The mode in new terminals, for who asks for it.

import * as vscode from 'vscode';

import { blockOf } from './environment.ts';
import { MODE_TEXTS } from './pure/modes.ts';
import { changes, type Variables } from './pure/environment.ts';
import type { Modes } from './modes.ts';
import type { Server } from './server.ts';

const WANTED = 'cublame.terminals';

/** Writes a folder's variables into its collection, and nothing where nothing has changed: each write marks terminals as stale. */
export class Terminals implements vscode.Disposable {
  private readonly written = new Map<string, Variables>();
  private readonly disposables: vscode.Disposable[];
  private working: Promise<void> = Promise.resolve();

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly modes: Modes,
    private readonly server: Server,
  ) {
    // What is not written again in the next session must not outlive this one: the hook may be gone by then.
    context.environmentVariableCollection.persistent = false;
    this.disposables = [modes.onDidChange(() => void this.apply()), server.onDidChange(() => void this.apply())];
  }

  get wanted(): boolean {
    return this.context.workspaceState.get<boolean>(WANTED, false) && vscode.workspace.isTrusted;
  }

  async toggle(): Promise<void> {
    await this.context.workspaceState.update(WANTED, !this.wanted);
    await this.apply();
    const mode = vscode.l10n.t(MODE_TEXTS[this.modes.current()].name);
    void vscode.window.showInformationMessage(
      this.wanted
        ? vscode.l10n.t('New terminals run in the mode of the status bar, now: {0}. Terminals that are open keep what they have.', mode)
        : vscode.l10n.t('New terminals are as they were without cublame.'),
    );
  }

  apply(): Promise<void> {
    this.working = this.working.then(() => this.applyNow());
    return this.working;
  }

  dispose(): void {
    for (const disposable of this.disposables) disposable.dispose();
  }

  private async applyNow(): Promise<void> {
    const environment = Object.fromEntries(Object.entries(process.env).filter((entry): entry is [string, string] => entry[1] !== undefined));
    for (const workspaceFolder of vscode.workspace.workspaceFolders ?? []) {
      const key = workspaceFolder.uri.toString();
      const before = this.written.get(key) ?? {};
      const after = this.wanted ? await blockOf(this.server, this.modes.of(workspaceFolder), environment) : {};
      if (after === undefined) continue;
      const { set, remove } = changes(before, after);
      const collection = this.context.environmentVariableCollection.getScoped({ workspaceFolder });
      collection.description = vscode.l10n.t('Runs Python in the mode of the status bar (cublame)');
      // The value holds what the variable had before, so it replaces it: prepending would put a path there twice.
      for (const [name, value] of set) collection.replace(name, value);
      for (const name of remove) collection.delete(name);
      this.written.set(key, after);
    }
  }
}
