import assert from 'node:assert/strict';
import { test } from 'node:test';

import { isTold, TERMINATED, type DapMessage } from '../../src/pure/dap.ts';

const told = (message: DapMessage): boolean => isTold(message);

test('the server is told where the program stands and what it complains of', () => {
  for (const event of ['process', 'stopped', 'continued', 'exited', 'terminated']) assert.ok(told({ type: 'event', event }), event);
  assert.ok(told({ type: 'event', event: 'output', body: { category: 'stderr' } }));
  for (const command of ['exceptionInfo', 'stackTrace']) assert.ok(told({ type: 'response', command }), command);
  assert.ok(told(TERMINATED));
});

test('the values of variables, and the debugger\'s own words, stay in the editor', () => {
  for (const command of ['variables', 'evaluate', 'scopes', 'initialize']) assert.ok(!told({ type: 'response', command }), command);
  for (const category of ['stdout', 'telemetry', 'console', 'important']) assert.ok(!told({ type: 'event', event: 'output', body: { category } }), category);
  assert.ok(!told({ type: 'event', event: 'output' }));
  assert.ok(!told({ type: 'event', event: 'module' }));
  assert.ok(!told({ type: 'request', command: 'runInTerminal' }));
  assert.ok(!told({}));
});
