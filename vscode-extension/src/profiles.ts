// Profiles in launch.json, for those who want them in the file. `cublame configure` writes them and keeps comments.

import * as vscode from 'vscode';

import { printed } from './environment.ts';
import type { Server } from './server.ts';

export async function writeProfiles(server: Server): Promise<void> {
  const folders = vscode.workspace.workspaceFolders ?? [];
  const folder = folders.length > 1 ? await vscode.window.showWorkspaceFolderPick() : folders[0];
  const program = server.found?.path;
  if (folder === undefined || program === undefined) return;
  const { notes, failure } = await printed(program, ['configure', 'vscode', '--dir', folder.uri.fsPath], process.env, folder.uri.fsPath);
  if (notes !== '') server.log.info(notes.trim());
  if (failure !== undefined) {
    void vscode.window.showErrorMessage(vscode.l10n.t('The profiles could not be written: {0}', failure));
    return;
  }
  await vscode.window.showTextDocument(vscode.Uri.joinPath(folder.uri, '.vscode', 'launch.json'));
}
