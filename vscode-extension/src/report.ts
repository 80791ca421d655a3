// A run's report, as the server has written it.

import * as vscode from 'vscode';

import type { ReportParams } from './pure/protocol.ts';

export async function openReport({ uri }: ReportParams): Promise<void> {
  const page = vscode.Uri.parse(uri, true);
  if (page.path.endsWith('.html')) {
    const html = Buffer.from(await vscode.workspace.fs.readFile(page)).toString('utf8');
    const panel = vscode.window.createWebviewPanel('cublame.report', vscode.l10n.t('cublame report'), vscode.ViewColumn.Beside, { enableScripts: false, localResourceRoots: [] });
    panel.webview.html = html;
    return;
  }
  await vscode.commands.executeCommand('markdown.showPreviewToSide', page);
}
