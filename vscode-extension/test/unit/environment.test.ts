import assert from 'node:assert/strict';
import { test } from 'node:test';

import { changes, environmentOf, modeOfLaunch, parseBlock, parseDotenv, withBlock } from '../../src/pure/environment.ts';
import { ancestors, DEBUGGER_MODES, modeOfFile } from '../../src/pure/modes.ts';

test('the launch wins over its env file, and that over what is inherited', () => {
  const inherited = { A: 'inherited', B: 'inherited', C: 'inherited', D: undefined };
  assert.deepEqual(environmentOf({ env: { A: 'launch' } }, 'A=file\nB=file\n', inherited), { A: 'launch', B: 'file', C: 'inherited' });
});

test('a variable that the launch takes away stays away', () => {
  assert.deepEqual(environmentOf({ env: { A: null } }, undefined, { A: 'inherited' }), {});
  assert.deepEqual(withBlock({ env: { A: null, B: 'kept' } }, { C: 'ours' }), { A: null, B: 'kept', C: 'ours' });
});

test('a profile keeps the mode that it names', () => {
  assert.equal(modeOfLaunch({ CUBLAME_MODE: 'guard' }, {}, 'trace'), 'guard');
  assert.equal(modeOfLaunch({ CUBLAME_MODE: 'fast' }, {}, 'trace'), 'trace');
  assert.equal(modeOfLaunch({}, {}, 'blocking'), 'blocking');
});

test('a mode that the editor itself has inherited is no choice of the launch', () => {
  assert.equal(modeOfLaunch({ CUBLAME_MODE: 'off' }, { CUBLAME_MODE: 'off' }, 'blocking'), 'blocking');
});

test('dotenv files are read as the Python extension reads them', () => {
  const text = ['# comment', 'export A=1', 'B = "two words" ', "C='${A}'", 'D=${A}/x', 'E=', 'not a line', 'F=1 # why', ''].join('\r\n');
  assert.deepEqual(parseDotenv(text), { A: '1', B: 'two words', C: '${A}', D: '1/x', E: '', F: '1' });
});

test('a block is texts by name, and anything else is none', () => {
  assert.deepEqual(parseBlock('{ "CUBLAME_MODE": "off" }'), { CUBLAME_MODE: 'off' });
  for (const output of ['', '[]', 'null', '{ "A": 1 }', 'cublame: no']) assert.equal(parseBlock(output), undefined, output);
});

test('only what differs is written', () => {
  assert.deepEqual(changes({ A: '1', B: '2' }, { A: '1', B: '3', C: '4' }), { set: [['B', '3'], ['C', '4']], remove: [] });
  assert.deepEqual(changes({ A: '1' }, {}), { set: [], remove: ['A'] });
  assert.deepEqual(changes({ A: '1' }, { A: '1' }), { set: [], remove: [] });
});

test('the first word of the file is the mode', () => {
  assert.equal(modeOfFile('blocking\n'), 'blocking');
  assert.equal(modeOfFile('  guard  # since May\n'), 'guard');
  assert.equal(modeOfFile('fast'), undefined);
  assert.equal(modeOfFile(''), undefined);
});

test('the ancestors of a folder end at the root', () => {
  assert.deepEqual(ancestors('/home/dev/proj'), ['/home/dev/proj', '/home/dev', '/home', '/']);
  assert.deepEqual(ancestors('/'), ['/']);
  assert.deepEqual(ancestors('C:\\Users\\dev'), ['C:\\Users\\dev', 'C:\\Users', 'C:\\']);
});

test('a debugger can start every mode but the sanitizer', () => {
  assert.deepEqual(DEBUGGER_MODES, ['trace', 'blocking', 'guard', 'core', 'off']);
});
