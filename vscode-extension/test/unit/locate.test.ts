import assert from 'node:assert/strict';
import { test } from 'node:test';

import { candidates, judge, type Surroundings } from '../../src/pure/locate.ts';
import { isOlder, serverVersion } from '../../src/pure/version.ts';

const LINUX: Surroundings = {
  trusted: true,
  windows: false,
  setting: '',
  extension: '/ext',
  python: '/home/dev/proj/.venv/bin/python',
  path: '/usr/local/bin:/usr/bin/',
};

function check(change: Partial<Surroundings>, expected: string[]): void {
  assert.deepEqual(candidates({ ...LINUX, ...change }).map((candidate) => candidate.path), expected);
}

test('bundled, then the interpreter, then PATH', () => {
  check({}, ['/ext/bundled/bin/cublame', '/home/dev/proj/.venv/bin/cublame', '/usr/local/bin/cublame', '/usr/bin/cublame']);
});

test('the setting comes first and is the only one that the user has named', () => {
  const found = candidates({ ...LINUX, setting: '/opt/cublame' });
  assert.equal(found[0]?.path, '/opt/cublame');
  assert.deepEqual(found.filter((candidate) => candidate.named), [found[0]]);
});

test('an untrusted workspace gets the bundled one alone', () => {
  check({ trusted: false, setting: '/home/dev/proj/evil', python: '/home/dev/proj/.venv/bin/python' }, ['/ext/bundled/bin/cublame']);
});

test('a relative folder of PATH is the workspace talking, and no candidate', () => {
  check({ python: undefined, path: '.:bin:/usr/bin:' }, ['/ext/bundled/bin/cublame', '/usr/bin/cublame']);
});

test('a program that is there twice is asked once', () => {
  check({ python: '/usr/bin/python3', path: '/usr/bin' }, ['/ext/bundled/bin/cublame', '/usr/bin/cublame']);
});

test('an interpreter without a folder has no environment', () => {
  check({ python: 'python3', path: '' }, ['/ext/bundled/bin/cublame']);
});

test('Windows has its own names', () => {
  check({ windows: true, extension: 'C:\\ext', python: 'C:\\venv\\Scripts\\python.exe', path: 'C:\\tools;tools' }, ['C:\\ext\\bundled\\bin\\cublame.exe', 'C:\\venv\\Scripts\\cublame.exe', 'C:\\tools\\cublame.exe']);
});

test('a program is judged by the version that it prints', () => {
  assert.deepEqual(judge({ kind: 'printed', output: 'cublame 0.1.0\n' }), { usable: true, version: [0, 1, 0] });
  assert.deepEqual(judge({ kind: 'printed', output: 'cublame 12.0.3\n' }), { usable: true, version: [12, 0, 3] });
  assert.deepEqual(judge({ kind: 'printed', output: 'cublame 0.0.9' }), { usable: false, reason: 'it is version 0.0.9, and at least 0.1.0 is needed' });
  assert.deepEqual(judge({ kind: 'printed', output: 'Python 3.12.3\n' }), { usable: false, reason: 'it does not say that it is cublame' });
  assert.deepEqual(judge({ kind: 'failed', reason: 'it did not answer in time' }), { usable: false, reason: 'it did not answer in time' });
});

test('versions are compared part by part', () => {
  assert.equal(isOlder([0, 9, 9], [0, 10, 0]), true);
  assert.equal(isOlder([1, 0, 0], [0, 10, 0]), false);
  assert.equal(isOlder([0, 1, 0], [0, 1, 0]), false);
  assert.equal(serverVersion('cublame 1.2'), undefined);
});
