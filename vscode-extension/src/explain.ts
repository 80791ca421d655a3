// Logs that the user has at hand: selected in an editor, or on the clipboard.

import * as vscode from 'vscode';

export async function explainSelection(): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  const text = editor?.document.getText(editor.selection) ?? '';
  await explain(text, vscode.l10n.t('Select the lines of a log first.'));
}

export async function explainClipboard(): Promise<void> {
  await explain(await vscode.env.clipboard.readText(), vscode.l10n.t('The clipboard holds no text.'));
}

/** The server says what it found, and where it is shown. */
async function explain(text: string, otherwise: string): Promise<void> {
  if (text.trim() === '') {
    void vscode.window.showInformationMessage(otherwise);
    return;
  }
  await vscode.commands.executeCommand('cublame.explainText', { text });
}
