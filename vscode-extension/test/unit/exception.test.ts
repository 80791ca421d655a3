import assert from 'node:assert/strict';
import { test } from 'node:test';

import { asLog, isUncaught, tail } from '../../src/pure/exception.ts';

/** What debugpy 1.8.22 answers to `exceptionInfo` in a program with a cause. */
const CHAINED = `  File "/home/dev/proj/chain.py", line 7, in outer
    inner()
  File "/home/dev/proj/chain.py", line 2, in inner
    raise ValueError("first")
ValueError: first

The above exception was the direct cause of the following exception:

  File "/home/dev/proj/chain.py", line 9, in outer
    raise RuntimeError("second") from error
  File "/home/dev/proj/chain.py", line 12, in <module>
    outer()
RuntimeError: second
`;

/** What Python printed for the same program. */
const PRINTED = `Traceback (most recent call last):
  File "/home/dev/proj/chain.py", line 7, in outer
    inner()
  File "/home/dev/proj/chain.py", line 2, in inner
    raise ValueError("first")
ValueError: first

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/home/dev/proj/chain.py", line 12, in <module>
    outer()
  File "/home/dev/proj/chain.py", line 9, in outer
    raise RuntimeError("second") from error
RuntimeError: second
`;

test('a traceback is what Python would have printed', () => {
  const log = asLog({ details: { stackTrace: CHAINED } }, '');
  assert.equal(log, PRINTED);
});

test('a mark at the current frame is the debugger\'s own', () => {
  const log = asLog({ details: { stackTrace: '  File "a.py", line 2, in work (Current frame)\n    f()\n  File "a.py", line 1, in <module>\nE: x\n' } }, '');
  assert.equal(log, 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n  File "a.py", line 2, in work\n    f()\nE: x\n');
});

test('what the GPU wrote to stderr comes before it', () => {
  const log = asLog({ details: { stackTrace: '  File "a.py", line 1, in <module>\nRuntimeError: x\n' } }, 'Assertion `i < n` failed.');
  assert.equal(log, 'Assertion `i < n` failed.\nTraceback (most recent call last):\n  File "a.py", line 1, in <module>\nRuntimeError: x\n');
});

test('without a stack there is nothing to explain', () => {
  assert.equal(asLog({ details: {} }, 'text'), undefined);
  assert.equal(asLog({ details: { stackTrace: '' } }, ''), undefined);
  assert.equal(asLog({}, ''), undefined);
});

test('a raised exception may still be caught', () => {
  assert.equal(isUncaught({ breakMode: 'always' }), false);
  assert.equal(isUncaught({ breakMode: 'unhandled' }), true);
  assert.equal(isUncaught({ breakMode: 'userUnhandled' }), true);
});

test('a growing text keeps its end', () => {
  assert.equal(tail('abc', 'def', 4), 'cdef');
  assert.equal(tail('', 'ab', 4), 'ab');
});
