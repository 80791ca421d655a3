// A trusted workspace: everything from the first Python file to a server that is killed.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { promisify } from 'node:util';
import * as vscode from 'vscode';

import { check, diagnostic, eventually, faultLine, finish, folder, inWorkspace, none, ours, ready, sessionEnds, show } from './harness.ts';
import { failedKernel } from './kernel.ts';

const execute = promisify(execFile);

export async function run(): Promise<void> {
  const recorded = inWorkspace('embedding_oob.py');
  const environment = { ...process.env, PYTHONPATH: process.env['RECORDED_TORCH'], RECORDED: process.env['RECORDED_LOGS'] };

  await check('nothing runs before a Python file is open', async () => {
    await show('notes.txt');
    const extension = vscode.extensions.getExtension('cublame.cublame');
    assert.equal(extension?.isActive, false);
  });

  await check('the first Python file starts the server that comes with the extension', async () => {
    await show('embedding_oob.py');
    const api = await ready();
    const { path: program, why } = api.server();
    assert.match(program ?? '', /bundled\/bin\/cublame$/);
    assert.equal(why, 'it comes with the extension');
  });
  const api = await ready();
  const cublame = api.server().path ?? '';

  await check('a failure in any terminal paints the open file at the culprit, not where it surfaced', async () => {
    // As a shell would: the editor has no part in it.
    await assert.rejects(execute(cublame, ['run', '--mode', 'off', '--', 'python3', recorded], { cwd: folder().uri.fsPath, env: environment }));
    const found = await diagnostic(recorded);
    assert.equal(found.range.start.line, faultLine(recorded));
    assert.equal((found.code as { value: string }).value, 'device-assert');
    const surfaced = found.relatedInformation?.find((related) => related.message === 'the error surfaced here');
    assert.equal(surfaced?.location.range.start.line, faultLine(recorded) + 1);
  });

  await check('hover, code lens and quick fixes of the failure', async () => {
    const uri = vscode.Uri.file(recorded);
    const found = await diagnostic(recorded);
    const hovers = await vscode.commands.executeCommand<vscode.Hover[]>('vscode.executeHoverProvider', uri, found.range.start);
    const texts = hovers.flatMap((hover) => hover.contents).map((content) => (content instanceof vscode.MarkdownString ? content.value : ''));
    assert.ok(texts.some((text) => text.includes('index')), texts.join('\n'));
    const lenses = await vscode.commands.executeCommand<vscode.CodeLens[]>('vscode.executeCodeLensProvider', uri);
    assert.ok(lenses.some((lens) => lens.command?.command === 'cublame.run'));
    assert.ok(lenses.some((lens) => lens.command?.command === 'cublame.openReport' && lens.range.start.line === found.range.start.line));
    const actions = await vscode.commands.executeCommand<vscode.CodeAction[]>('vscode.executeCodeActionProvider', uri, found.range);
    assert.ok(actions.some((action) => action.title === 'Rerun with blocking launches'), actions.map((action) => action.title).join(', '));
  });

  await check('the list of runs has it, with its verdict and a badge', async () => {
    const failed = await eventually('the run', () => api.runs().find((it) => it.state === 'failed'));
    assert.equal(failed.watch, 'supervised');
    assert.equal(failed.verdicts[0]?.kind, 'device-assert');
    assert.equal(failed.verdicts[0].place?.line, faultLine(recorded) + 1);
    assert.equal(api.badge(), 1);
  });

  await check('the report opens, and its Markdown is on the clipboard when it is copied', async () => {
    const id = api.runs()[0]?.id;
    await vscode.commands.executeCommand('cublame.openReport', { run: id });
    await eventually('the page', () => vscode.window.tabGroups.all.flatMap((group) => group.tabs).some((tab) => tab.label.includes('report')));
    await vscode.commands.executeCommand('workbench.action.closeActiveEditor');
    await vscode.commands.executeCommand('cublame.copyReport', { run: id });
    assert.match(await vscode.env.clipboard.readText(), /embedding_oob\.py/);
  });

  /** Dismisses every failure, so that the next check finds its own alone. */
  const dismissAll = async (): Promise<void> => {
    for (const failed of api.runs().filter((it) => it.state === 'failed' && !it.dismissed)) await vscode.commands.executeCommand('cublame.dismiss', { run: failed.id });
    await none(recorded);
  };

  await check('what is dismissed is gone from the file and from the badge', async () => {
    await dismissAll();
    await eventually('the badge', () => api.badge() === 0);
  });

  const launchFile = inWorkspace('.vscode', 'launch.json');
  const launchText = fs.readFileSync(launchFile, 'utf8');

  await check('F5 in blocking mode: the culprit is shown while the debugger stands there, and proved when the program has ended', async () => {
    await vscode.commands.executeCommand('cublame.setMode', { mode: 'blocking', folder: folder().uri.toString() });
    await eventually('.cublame/mode', () => fs.existsSync(inWorkspace('.cublame', 'mode')) && fs.readFileSync(inWorkspace('.cublame', 'mode'), 'utf8') === 'blocking\n');
    await sessionEnds(async () => {
      assert.equal(await vscode.debug.startDebugging(folder(), 'train'), true);
      const live = await diagnostic(recorded);
      assert.equal(live.range.start.line, faultLine(recorded));
      assert.ok(vscode.debug.activeDebugSession, 'the debugger stands at the failure');
      await eventually('the run that is held', () => api.runs().find((it) => it.watch === 'adopted' && it.state === 'running' && it.verdicts[0]?.kind === 'device-assert'));
      await vscode.commands.executeCommand('workbench.action.debug.continue');
    });
    const ended = await eventually('the run of the debug session', () => api.runs().find((it) => it.watch === 'adopted' && it.state === 'failed' && it.entry !== null));
    assert.equal(ended.mode, 'blocking');
    // It can be run again as it is: the debugger's own words are left out.
    assert.deepEqual(ended.argv.slice(1), [recorded]);
    assert.equal(ended.verdicts[0]?.certainty, 'exact');
    const proved = await diagnostic(recorded, (it) => it.message.includes('Exact'));
    assert.equal(proved.range.start.line, faultLine(recorded));
    assert.equal(fs.readFileSync(launchFile, 'utf8'), launchText);
    await dismissAll();
  });

  await check('F5 in mode off: the program runs as it would without cublame', async () => {
    await vscode.commands.executeCommand('cublame.setMode', { mode: 'off', folder: folder().uri.toString() });
    await eventually('mode off', () => fs.readFileSync(inWorkspace('.cublame', 'mode'), 'utf8') === 'off\n');
    await sessionEnds(async () => {
      await vscode.debug.startDebugging(folder(), 'train');
      // The recorded program fails one line later without blocking: its traceback says so, and the console has it.
      // What the last session proved may stand beside it until its dismissal has come through.
      const live = await eventually('the live diagnostic', () => ours(recorded).find((it) => !it.message.includes('Exact')));
      assert.equal(live.range.start.line, faultLine(recorded));
      assert.ok(live.relatedInformation?.some((related) => related.location.range.start.line === faultLine(recorded) + 1));
      await vscode.commands.executeCommand('workbench.action.debug.continue');
    });
    const ended = await eventually('the run', () => api.runs().find((it) => it.watch === 'adopted' && it.mode === 'off' && it.state === 'failed'));
    // Nobody but the debugger has seen the assertion on stderr: it is evidence of the run when that has ended.
    assert.equal(ended.verdicts[0]?.kind, 'device-assert');
    assert.equal(ended.verdicts[0].place?.line, faultLine(recorded) + 1);
    await dismissAll();
  });

  const variables = async (start: () => Thenable<unknown>): Promise<Record<string, string>> => {
    fs.rmSync(inWorkspace('variables.json'), { force: true });
    await start();
    await eventually('variables.json', () => fs.existsSync(inWorkspace('variables.json')));
    return JSON.parse(fs.readFileSync(inWorkspace('variables.json'), 'utf8')) as Record<string, string>;
  };

  await check('the mode reaches a debug session over its env file, and what is the user\'s stays', async () => {
    await vscode.commands.executeCommand('cublame.setMode', { mode: 'blocking', folder: folder().uri.toString() });
    await eventually('mode blocking', () => fs.readFileSync(inWorkspace('.cublame', 'mode'), 'utf8') === 'blocking\n');
    let seen: Record<string, string> = {};
    await sessionEnds(async () => {
      seen = await variables(() => vscode.debug.startDebugging(folder(), 'variables'));
    });
    assert.equal(seen['CUDA_LAUNCH_BLOCKING'], '1');
    assert.equal(seen['CUBLAME_MODE'], 'blocking');
    assert.equal(seen['MINE'], 'kept');
    assert.equal(seen['FROM_ENV_FILE'], 'yes');
    const elements = (seen['PYTHONPATH'] ?? '').split(':');
    assert.match(elements[0] ?? '', /cublame\/hook-/);
    assert.ok(elements.includes(inWorkspace('from-env-file')), elements.join(':'));
  });

  await check('a profile in launch.json keeps the mode that it names', async () => {
    const profile = { name: 'mine', type: 'debugpy', request: 'launch', program: inWorkspace('variables.py'), console: 'internalConsole', env: { CUBLAME_MODE: 'guard' } };
    let seen: Record<string, string> = {};
    await sessionEnds(async () => {
      seen = await variables(() => vscode.debug.startDebugging(folder(), profile));
    });
    assert.equal(seen['CUBLAME_MODE'], 'guard');
    assert.notEqual(seen['CUDA_LAUNCH_BLOCKING'], '1');
  });

  await check('profiles are written into launch.json, and comments and entries of the user\'s stay', async () => {
    await vscode.commands.executeCommand('cublame.writeProfiles');
    const text = fs.readFileSync(launchFile, 'utf8');
    for (const kept of ["// a comment of the user's, which stays", '// and so does this one', '"name": "train"', '"MINE": "kept"']) assert.ok(text.includes(kept), text);
    await eventually('the profile of mode blocking', () => {
      const entries = vscode.workspace.getConfiguration('launch', folder()).get<{ env?: Record<string, string> }[]>('configurations', []);
      return entries.some((entry) => entry.env?.['CUBLAME_MODE'] === 'blocking');
    });
    assert.equal(vscode.window.activeTextEditor?.document.uri.fsPath, launchFile);
  });

  await check('tasks run a program supervised, and end as it ends', async () => {
    const tasks = await vscode.tasks.fetchTasks({ type: 'cublame' });
    assert.deepEqual(tasks.map((task) => (task.definition as { mode?: string }).mode), ['trace', 'blocking', 'guard', 'sanitize']);
    await show('variables.py');
    const [task] = tasks.filter((it) => it.definition['mode'] === 'blocking');
    assert.ok(task);
    let code: number | undefined;
    const seen = await variables(async () => {
      const ended = new Promise<void>((resolve) => {
        const subscription = vscode.tasks.onDidEndTaskProcess((event) => {
          subscription.dispose();
          code = event.exitCode;
          resolve();
        });
      });
      await vscode.tasks.executeTask(task);
      await ended;
    });
    assert.equal(code, 0);
    assert.equal(seen['CUDA_LAUNCH_BLOCKING'], '1');
    assert.ok(seen['CUBLAME_RUN']);
  });

  await check('the open file is run in a terminal, in the mode of the status bar', async () => {
    await show('variables.py');
    const seen = await variables(() => vscode.commands.executeCommand('cublame.runFile'));
    assert.equal(seen['CUBLAME_MODE'], 'blocking');
    await eventually('the run', () => api.runs().some((it) => it.id === path.basename(seen['CUBLAME_RUN'] ?? '') && it.state === 'succeeded'));
  });

  await check('new terminals have the mode when it is asked for, and not when it is not', async () => {
    const inTerminal = async (): Promise<Record<string, string>> => {
      const terminal = vscode.window.createTerminal({ cwd: folder().uri.fsPath });
      const seen = await variables(() => {
        terminal.sendText(`python3 '${inWorkspace('variables.py')}'`);
        return Promise.resolve();
      });
      terminal.dispose();
      return seen;
    };
    assert.equal((await inTerminal())['CUBLAME_MODE'], undefined);
    void vscode.commands.executeCommand('cublame.terminals.toggle');
    const context = await eventually('the mode in a terminal', async () => {
      const seen = await inTerminal();
      return seen['CUBLAME_MODE'] !== undefined && seen;
    });
    assert.equal(context['CUDA_LAUNCH_BLOCKING'], '1');
    assert.equal(new Set(context['PYTHONPATH']?.split(':')).size, context['PYTHONPATH']?.split(':').length, context['PYTHONPATH']);
    void vscode.commands.executeCommand('cublame.terminals.toggle');
    await eventually('a terminal as it was', async () => (await inTerminal())['CUBLAME_MODE'] === undefined);
  });

  const log = fs.readFileSync(path.join(process.env['RECORDED_LOGS'] ?? '', 'embedding_oob.async.txt'), 'utf8');

  await check('a log on the clipboard is shown at its line', async () => {
    await vscode.env.clipboard.writeText(log);
    await vscode.commands.executeCommand('cublame.explainClipboard');
    const found = await diagnostic(recorded);
    assert.equal(found.range.start.line, faultLine(recorded));
    await eventually('its line in the list of runs', () => api.runs().find((it) => it.id.startsWith('pasted log')));
    await dismissAll();
  });

  await check('a selected log is shown at its line', async () => {
    const document = await vscode.workspace.openTextDocument({ content: `from the cluster\n${log}` });
    const editor = await vscode.window.showTextDocument(document);
    editor.selection = new vscode.Selection(document.positionAt(0), document.positionAt(document.getText().length));
    await vscode.commands.executeCommand('cublame.explainSelection');
    await diagnostic(recorded);
    await vscode.commands.executeCommand('cublame.clearAll');
    await none(recorded);
    await vscode.commands.executeCommand('workbench.action.revertAndCloseActiveEditor');
  });

  await check('a run that has ended can be deleted', async () => {
    const ended = api.runs().find((it) => it.state === 'succeeded');
    assert.ok(ended && fs.existsSync(ended.folder));
    await vscode.commands.executeCommand('cublame.delete', { run: ended.id });
    await eventually('the end of the folder', () => !fs.existsSync(ended.folder));
    await eventually('a list without it', () => !api.runs().some((it) => it.id === ended.id));
  });

  if (process.env['TORCH_PYTHON']) {
    await check('torch from PyPI fails under F5, its line is proved, and its tensors are in the hover', async () => {
      const program = inWorkspace('bad_index.py');
      await show('bad_index.py');
      const configuration = { name: 'torch', type: 'debugpy', request: 'launch', program, console: 'integratedTerminal', python: process.env['TORCH_PYTHON'] };
      await sessionEnds(async () => {
        await vscode.debug.startDebugging(folder(), configuration);
        await diagnostic(program);
        await vscode.commands.executeCommand('workbench.action.debug.continue');
      });
      const found = await diagnostic(program, (it) => it.message.includes('Exact'));
      assert.equal(found.range.start.line, faultLine(program));
      const uri = vscode.Uri.file(program);
      const hovers = await vscode.commands.executeCommand<vscode.Hover[]>('vscode.executeHoverProvider', uri, found.range.start);
      const texts = hovers.flatMap((hover) => hover.contents).map((content) => (content instanceof vscode.MarkdownString ? content.value : ''));
      assert.match(texts.join('\n'), /`tokens` \| `int64\[2\]` \| `cpu`/);
    });

    await check('the tensors of a failing line stand at its end, where the setting wants them', async () => {
      const program = inWorkspace('bad_index.py');
      const document = await show('bad_index.py');
      const everything = new vscode.Range(0, 0, document.lineCount, 0);
      const hints = async (): Promise<vscode.InlayHint[]> => vscode.commands.executeCommand<vscode.InlayHint[]>('vscode.executeInlayHintProvider', vscode.Uri.file(program), everything);
      const shown = (): Promise<vscode.InlayHint | undefined> => eventually('the hint', async () => (await hints()).find((hint) => hint.position.line === faultLine(program)));
      const settings = vscode.workspace.getConfiguration('cublame');
      const hint = await shown();
      assert.match(typeof hint?.label === 'string' ? hint.label : '', /tokens: int64\[2\] cpu/);
      await settings.update('inlayHints', false, vscode.ConfigurationTarget.Workspace);
      await eventually('a line without hints', async () => (await hints()).length === 0);
      await settings.update('inlayHints', undefined, vscode.ConfigurationTarget.Workspace);
      await shown();
      await vscode.commands.executeCommand('cublame.clearAll');
    });
  }

  await check('a failure in a notebook is shown in its cell, with its hover and quick fixes', async () => {
    const file = inWorkspace('train.ipynb');
    const first = 'import torch\n\ndef look_up(index):\n    return emb(index)  # @fault\n';
    const second = 'look_up(7)\n';
    const cell = (id: string, source: string): object => ({ cell_type: 'code', execution_count: null, id, metadata: {}, outputs: [], source: source.split(/(?<=\n)/) });
    fs.writeFileSync(file, JSON.stringify({ cells: [cell('aaa', first), cell('bbb', second)], metadata: {}, nbformat: 4, nbformat_minor: 5 }, null, 1));
    const notebook = await vscode.workspace.openNotebookDocument(vscode.Uri.file(file));
    const opened = notebook.getCells().map((it) => it.document);
    await vscode.window.showNotebookDocument(notebook);
    const [document] = opened;
    assert.ok(document);
    failedKernel(inWorkspace(), file, opened);
    const found = await eventually('the diagnostic in the cell', () => vscode.languages.getDiagnostics(document.uri).find((it) => it.source === 'cublame'));
    assert.equal(found.range.start.line, 3);
    const hovers = await vscode.commands.executeCommand<vscode.Hover[]>('vscode.executeHoverProvider', document.uri, found.range.start);
    assert.ok(hovers.length > 0, 'a hover in the cell');
    const actions = await vscode.commands.executeCommand<vscode.CodeAction[]>('vscode.executeCodeActionProvider', document.uri, found.range);
    assert.ok(actions.some((action) => action.title === 'Open the report'), actions.map((action) => action.title).join(', '));
    await vscode.commands.executeCommand('cublame.clearAll');
    await eventually('a cell without it', () => vscode.languages.getDiagnostics(document.uri).length === 0);
    await vscode.commands.executeCommand('workbench.action.closeActiveEditor');
  });

  await check('the doctor says what it sees', async () => {
    await vscode.commands.executeCommand('cublame.examine');
    const page = await eventually('its page', () => vscode.workspace.textDocuments.find((it) => it.fileName.endsWith('doctor.md')));
    assert.match(page.getText(), /Python/);
    await vscode.commands.executeCommand('workbench.action.closeActiveEditor');
  });

  await check('a server that is killed is started again, and shows what it showed', async () => {
    await assert.rejects(execute(cublame, ['run', '--mode', 'off', '--', 'python3', recorded], { cwd: folder().uri.fsPath, env: environment }));
    await diagnostic(recorded);
    const { pid } = api.server();
    assert.ok(pid);
    process.kill(pid, 'SIGKILL');
    await eventually('another server', () => api.server().running && api.server().pid !== pid);
    await diagnostic(recorded);
  });

  await check('a server that is too old or missing is not used, and the next one is', async () => {
    const old = inWorkspace('old-cublame');
    fs.writeFileSync(old, '#!/bin/sh\necho "cublame 0.0.9"\n', { mode: 0o755 });
    const settings = vscode.workspace.getConfiguration('cublame');
    for (const named of [old, inWorkspace('missing-cublame')]) {
      const { pid } = api.server();
      await settings.update('server.path', named, vscode.ConfigurationTarget.Workspace);
      await eventually('another server', () => api.server().running && api.server().pid !== pid);
      assert.equal(api.server().why, 'it comes with the extension');
    }
    const linked = inWorkspace('named-cublame');
    fs.symlinkSync(cublame, linked);
    await settings.update('server.path', linked, vscode.ConfigurationTarget.Workspace);
    await eventually('the one that is named', () => api.server().running && api.server().path === linked);
    await settings.update('server.path', undefined, vscode.ConfigurationTarget.Workspace);
    await eventually('the bundled one', () => api.server().running && api.server().path === cublame);
  });

  await check('a run in the background is started, and is left to the next window', async () => {
    await vscode.workspace.getConfiguration('cublame').update('runIn', 'background', vscode.ConfigurationTarget.Workspace);
    await eventually('the server', () => api.server().running);
    await show('wait.py');
    await vscode.commands.executeCommand('cublame.runFile');
    const running = await eventually('the run', () => api.runs().find((it) => it.state === 'running'));
    fs.writeFileSync(inWorkspace('run-of-the-last-window'), running.id);
    assert.deepEqual(ours(inWorkspace('wait.py')), []);
  });

  finish();
}
