// A workspace that is not trusted, with a server of its own in its settings.

import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import * as vscode from 'vscode';

import { check, diagnostic, faultLine, finish, inWorkspace, ready, show } from './harness.ts';

export async function run(): Promise<void> {
  await check('only the bundled server is used, and nothing of the workspace is run', async () => {
    assert.equal(vscode.workspace.isTrusted, false);
    await show('embedding_oob.py');
    const api = await ready();
    assert.match(api.server().path ?? '', /bundled\/bin\/cublame$/);
    assert.equal(api.server().why, 'it comes with the extension, and the workspace is not trusted');
    assert.equal(fs.existsSync(inWorkspace('planted-was-run')), false);
  });

  await check('a failure that is on disk is shown all the same', async () => {
    const found = await diagnostic(inWorkspace('embedding_oob.py'));
    assert.equal(found.range.start.line, faultLine(inWorkspace('embedding_oob.py')));
  });
  await check('a program of the workspace is not run, whoever asks', async () => {
    const uri = vscode.Uri.file(inWorkspace('variables.py')).toString();
    assert.equal(await vscode.commands.executeCommand('cublame.run', { uri }), null);
    const [failed] = (await ready()).runs();
    assert.equal(await vscode.commands.executeCommand('cublame.rerun', { run: failed?.id }), null);
    assert.equal(fs.existsSync(inWorkspace('variables.json')), false);
    assert.equal(fs.existsSync(inWorkspace('planted-was-run')), false);
  });
  finish();
}
