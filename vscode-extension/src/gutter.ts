// A mark in the gutter that says how sure it is that a line is the culprit.

import * as vscode from 'vscode';
import type { Diagnostic } from 'vscode';

import { diagnosticData, type Certainty, type Run } from './pure/protocol.ts';

const CERTAINTIES: readonly Certainty[] = ['exact', 'likely', 'suspect', 'unknown'];

export class Gutter implements vscode.Disposable {
  private readonly types: ReadonlyMap<Certainty, vscode.TextEditorDecorationType>;
  private readonly diagnostics = new Map<string, readonly Diagnostic[]>();
  private runs: readonly Run[] = [];
  private readonly disposables: vscode.Disposable[];

  constructor(context: vscode.ExtensionContext) {
    const type = (certainty: Certainty): vscode.TextEditorDecorationType =>
      vscode.window.createTextEditorDecorationType({
        gutterIconPath: vscode.Uri.joinPath(context.extensionUri, 'media', 'gutter', `${certainty}.svg`),
        gutterIconSize: '85%',
        overviewRulerLane: vscode.OverviewRulerLane.Left,
        overviewRulerColor: new vscode.ThemeColor('editorError.foreground'),
      });
    this.types = new Map(CERTAINTIES.map((certainty) => [certainty, type(certainty)]));
    this.disposables = [
      ...this.types.values(),
      vscode.window.onDidChangeVisibleTextEditors(() => {
        this.draw();
      }),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration('cublame.gutter')) this.draw();
      }),
    ];
  }

  /** The server's diagnostics of a file, as they came. */
  diagnosed(uri: vscode.Uri, diagnostics: readonly Diagnostic[]): void {
    if (diagnostics.length === 0) this.diagnostics.delete(uri.toString());
    else this.diagnostics.set(uri.toString(), diagnostics);
    this.draw();
  }

  show(runs: readonly Run[]): void {
    this.runs = runs;
    this.draw();
  }

  dispose(): void {
    for (const disposable of this.disposables) disposable.dispose();
  }

  private draw(): void {
    const wanted = vscode.workspace.getConfiguration('cublame').get<boolean>('gutter', true);
    for (const editor of vscode.window.visibleTextEditors) {
      const marks = new Map<Certainty, vscode.DecorationOptions[]>();
      for (const diagnostic of wanted ? (this.diagnostics.get(editor.document.uri.toString()) ?? []) : []) {
        const certainty = this.certainty(diagnostic);
        if (certainty === undefined) continue;
        const line = new vscode.Range(diagnostic.range.start, diagnostic.range.start);
        marks.set(certainty, [...(marks.get(certainty) ?? []), { range: line }]);
      }
      for (const [certainty, type] of this.types) editor.setDecorations(type, marks.get(certainty) ?? []);
    }
  }

  private certainty(diagnostic: Diagnostic): Certainty | undefined {
    const data = diagnosticData((diagnostic as { data?: unknown }).data);
    return data && this.runs.find((run) => run.id === data.run)?.verdicts[data.index]?.certainty;
  }
}
