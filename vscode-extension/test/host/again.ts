// The window is open again on a workspace in which a run goes on.

import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import * as vscode from 'vscode';

import { check, eventually, finish, inWorkspace, ready, show } from './harness.ts';

export async function run(): Promise<void> {
  await check('a run that outlived its window is found again, and its end is seen', async () => {
    await show('wait.py');
    const api = await ready();
    const id = fs.readFileSync(inWorkspace('run-of-the-last-window'), 'utf8');
    const found = await eventually('the run', () => api.runs().find((it) => it.id === id));
    assert.equal(found.state, 'running');
    fs.writeFileSync(inWorkspace('go'), '');
    await eventually('its end', () => api.runs().find((it) => it.id === id)?.state === 'succeeded');
  });

  await check('a run in the background is stopped', async () => {
    const api = await ready();
    fs.rmSync(inWorkspace('go'));
    await show('wait.py');
    await vscode.commands.executeCommand('cublame.runFile');
    const { id } = await eventually('the run', () => api.runs().find((it) => it.state === 'running'));
    await vscode.commands.executeCommand('cublame.stop', { run: id });
    await eventually('its end', () => api.runs().find((it) => it.id === id)?.state === 'interrupted');
  });
  finish();
}
