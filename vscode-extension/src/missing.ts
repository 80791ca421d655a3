// A failure under the debugger was seen through the exception alone: what is missing is said, and the way to get it offered.

import * as vscode from 'vscode';

import type { Run } from './pure/protocol.ts';

const SILENT = 'cublame.missing.silent';

export class Missing {
  private readonly told = new Set<string>();

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly runSupervised: (run: Run) => void,
  ) {}

  /** Looks at what has come; `since` are the Unix seconds before which a run is none of this session's. */
  look(runs: readonly Run[], since: number): void {
    if (this.context.workspaceState.get<boolean>(SILENT, false)) return;
    const run = runs.find((it) => it.watch === 'adopted' && it.state === 'failed' && it.folder.startsWith('/') && it.started >= since && !this.told.has(it.id));
    const root = run?.verdicts[0];
    if (run === undefined || root === undefined || root.certainty === 'exact') return;
    this.told.add(run.id);
    void this.tell(run);
  }

  private async tell(run: Run): Promise<void> {
    const [again, never] = [vscode.l10n.t('Run Again as a Task'), vscode.l10n.t("Don't Say This Again")];
    const text = vscode.l10n.t('Only the exception of this debug session was seen: what the GPU printed to the terminal was not. A task sees both.');
    const chosen = await vscode.window.showInformationMessage(text, again, never);
    if (chosen === again) this.runSupervised(run);
    if (chosen === never) await this.context.workspaceState.update(SILENT, true);
  }
}
