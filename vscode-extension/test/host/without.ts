// An extension without a server inside, on a machine that has none.

import assert from 'node:assert/strict';
import * as vscode from 'vscode';

import type { Api } from '../../src/extension.ts';
import { check, eventually, finish, folder, inWorkspace, ours, sessionEnds, show } from './harness.ts';

export async function run(): Promise<void> {
  await check('without a server everything else works as it would without the extension', async () => {
    await show('notes.txt');
    const extension = vscode.extensions.getExtension<Api>('cublame.cublame');
    assert.ok(extension);
    const started = performance.now();
    await extension.activate();
    console.log(`the activation took ${Math.round(performance.now() - started)} ms`);
    await show('embedding_oob.py');
    await sessionEnds(() => vscode.debug.startDebugging(folder(), { name: 'plain', type: 'debugpy', request: 'launch', program: inWorkspace('variables.py'), console: 'internalConsole' }));
    assert.deepEqual(extension.exports.server(), { path: undefined, why: undefined, pid: undefined, running: false });
    assert.deepEqual(ours(inWorkspace('embedding_oob.py')), []);
    assert.deepEqual(await vscode.tasks.fetchTasks({ type: 'cublame' }), []);
  });

  await check('a server that is put where the setting says is used', async () => {
    const api = vscode.extensions.getExtension<Api>('cublame.cublame')?.exports;
    await vscode.workspace.getConfiguration('cublame').update('server.path', process.env['CUBLAME_UNDER_TEST'], vscode.ConfigurationTarget.Workspace);
    await eventually('the server', () => api?.server().running);
  });
  finish();
}
