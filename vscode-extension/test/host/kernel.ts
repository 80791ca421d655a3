// A kernel of a notebook that failed, as the hook records it.

import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import type * as vscode from 'vscode';

/** The kernel lives; its second cell ran into a device assertion on the fourth line of the first one. */
export function failedKernel(workspace: string, notebook: string, cells: readonly vscode.TextDocument[]): void {
  const now = Date.now() / 1000;
  const id = `${new Date().toISOString().replace(/[-:]/g, '')}-0123abcd`;
  const folder = path.join(workspace, '.cublame', 'runs', id);
  fs.mkdirSync(path.join(folder, 'events'), { recursive: true });
  const run = {
    schema: 1,
    id,
    watch: 'adopted',
    mode: 'off',
    argv: ['python3', '-m', 'ipykernel_launcher'],
    cwd: workspace,
    entry: null,
    started: now,
    host: os.hostname(),
    runner: null,
    child: { pid: process.pid, start: startOf(process.pid) },
    blocking: false,
    env: {},
  };
  fs.writeFileSync(path.join(folder, 'run.json'), JSON.stringify(run));
  const [first, second] = ['/tmp/ipykernel_7/1.py', '/tmp/ipykernel_7/2.py'] as const;
  const frames = [
    { file: second, line: 1, function: '<module>' },
    { file: first, line: 4, function: 'look_up' },
  ];
  const named = [first, second].map((file, index) => [file, { id: cells[index]?.uri.toString(), count: index + 1, notebook, first_line: 1, source: cells[index]?.getText() }]);
  const chain = [{ type: 'torch.AcceleratorError', message: 'CUDA error: device-side assert triggered', frames }];
  const event = { v: 1, time: now, pid: 7, event: 'exception', hook: 'ipython', thread: 'MainThread', main_thread: true, chain, cells: Object.fromEntries(named) as object };
  fs.writeFileSync(path.join(folder, 'events', '7-a.jsonl'), `${JSON.stringify(event)}\n`);
}

/** Field 22 of `/proc/PID/stat`; the name before it may hold spaces. */
function startOf(pid: number): number {
  const fields = fs.readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
  return Number(fields[19]);
}
