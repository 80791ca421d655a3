import assert from 'node:assert/strict';
import { test } from 'node:test';

import { diagnosticData, type Run, type Verdict } from '../../src/pure/protocol.ts';
import { rows, standingFailures } from '../../src/pure/runs.ts';

const VERDICT: Verdict = {
  kind: 'device-assert',
  summary: 'index out of range in an embedding lookup',
  place: { file: 'model.py', path: '/home/dev/proj/model.py', line: 8 },
  reported: { file: 'model.py', path: '/home/dev/proj/model.py', line: 9 },
  certainty: 'exact',
  because: ['blocking was in force'],
  missing: ['no output'],
  rank: 1,
  collateral: [{ rank: 0, summary: 'the watchdog gave up' }],
  fatal: true,
};

const RUN: Run = {
  id: '20260101T000000.000Z-00000001',
  state: 'failed',
  mode: 'blocking',
  argv: ['python', 'train.py', '--fast'],
  cwd: '/home/dev/proj',
  entry: '/home/dev/proj/train.py',
  started: 1000,
  dismissed: false,
  folder: '/home/dev/proj/.cublame/runs/20260101T000000.000Z-00000001',
  watch: 'supervised',
  verdicts: [VERDICT],
};

function row(change: Partial<Run>): { label: string; description: string; context: string } {
  const [found] = rows([{ ...RUN, ...change }], 1000);
  assert.ok(found);
  return { label: found.label, description: found.description, context: found.context };
}

test('a failed run says its kind, its mode and its age', () => {
  assert.deepEqual(row({}), { label: 'train.py', description: 'device-assert, blocking, just now', context: 'run-ended-command-verdict-shown' });
  assert.equal(row({ started: 1000 - 7200 }).description, 'device-assert, blocking, 2 h ago');
});

test('what can be done with a run follows from its state', () => {
  assert.equal(row({ state: 'running', verdicts: [] }).context, 'run-running-command');
  assert.equal(row({ state: 'succeeded', verdicts: [] }).context, 'run-ended-command');
  assert.equal(row({ dismissed: true }).context, 'run-ended-command-verdict');
  assert.equal(row({ folder: 'pasted log 1', entry: null, argv: ['pasted log 1'] }).context, 'run-ended-verdict-shown');
});

test('a run is named after its program', () => {
  assert.equal(row({ entry: null, argv: ['python', '-m', 'package.train', '--fast'] }).label, 'package.train');
  assert.equal(row({ entry: null, argv: ['/usr/bin/bash', './job.sh'] }).label, 'bash job.sh');
});

test('a verdict says its place, certainty and rank, and has its collateral beneath', () => {
  const [run] = rows([RUN], 1000);
  const verdict = run?.children[0];
  assert.equal(verdict?.description, 'model.py:8, exact, rank 1');
  assert.deepEqual(verdict.place, { path: '/home/dev/proj/model.py', line: 8 });
  assert.equal(verdict.tooltip, 'device-assert\nblocking was in force\nNot seen: no output');
  assert.deepEqual(verdict.children.map((child) => [child.label, child.description]), [['the watchdog gave up', 'rank 0, collateral']]);
});

test('without a culprit a click goes to where it surfaced, and without a file nowhere', () => {
  const place = (verdict: Partial<Verdict>): unknown => rows([{ ...RUN, verdicts: [{ ...VERDICT, ...verdict }] }], 0)[0]?.place;
  assert.deepEqual(place({ place: null }), { path: '/home/dev/proj/model.py', line: 9 });
  assert.equal(place({ place: null, reported: { file: 'x.py', path: null, line: 3 } }), undefined);
});

test('a run that a debugger holds at its failure says so, and is no failure yet', () => {
  const held = { ...RUN, state: 'running' } as const;
  assert.equal(row(held).description, 'held at device-assert, blocking, just now');
  assert.match(row(held).context, /running/);
  assert.equal(standingFailures([held]), 0);
});

test('the badge counts programs, not runs', () => {
  assert.equal(standingFailures([RUN, { ...RUN, id: 'older' }]), 1);
  assert.equal(standingFailures([RUN, { ...RUN, entry: '/home/dev/proj/eval.py' }]), 2);
  assert.equal(standingFailures([{ ...RUN, state: 'succeeded', verdicts: [] }, RUN]), 0);
  assert.equal(standingFailures([{ ...RUN, state: 'interrupted', verdicts: [] }, RUN]), 1);
  assert.equal(standingFailures([{ ...RUN, dismissed: true }, RUN]), 0);
  assert.equal(standingFailures([{ ...RUN, verdicts: [{ ...VERDICT, fatal: false }] }]), 0);
});

test('the data of a diagnostic is believed only in its own shape', () => {
  assert.deepEqual(diagnosticData({ run: 'r', index: 0, kind: 'oom' }), { run: 'r', index: 0 });
  for (const value of [null, 'r', {}, { run: 1, index: 0 }]) assert.equal(diagnosticData(value), undefined);
});
