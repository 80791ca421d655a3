import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

import { DEBUGGER_MODES, MODE_TEXTS, MODES } from '../../src/pure/modes.ts';

const ROOT = new URL('../../', import.meta.url);

function json(name: string): Record<string, string> {
  return JSON.parse(readFileSync(new URL(name, ROOT), 'utf8')) as Record<string, string>;
}

/** The texts that the code shows: the literals given to `l10n.t`, and the modes'. */
function shown(): Set<string> {
  const files = readdirSync(new URL('src/', ROOT)).filter((name) => name.endsWith('.ts'));
  const code = files.map((name) => readFileSync(new URL(`src/${name}`, ROOT), 'utf8')).join('\n');
  const literals = [...code.matchAll(/l10n\.t\(\s*(?:'([^'\\]+)'|"([^"\\]+)")/g)].map((match) => match[1] ?? match[2] ?? '');
  const modes = MODES.map((mode) => MODE_TEXTS[mode]).flatMap((text) => [text.name, text.benefit, text.cost]);
  return new Set([...literals, ...modes]);
}

function placeholders(text: string): string[] {
  return (text.match(/\{\d\}/g) ?? []).sort();
}

test('every text is translated, and nothing else is', () => {
  assert.deepEqual(Object.keys(json('l10n/bundle.l10n.zh-cn.json')).sort(), [...shown()].sort());
});

test('a translation takes the same values', () => {
  for (const [text, translation] of Object.entries(json('l10n/bundle.l10n.zh-cn.json'))) assert.deepEqual(placeholders(translation), placeholders(text), text);
});

test('the manifest names texts that are there in both languages, and all of them', () => {
  const manifest = readFileSync(new URL('package.json', ROOT), 'utf8');
  const named = [...new Set([...manifest.matchAll(/"%([^%"]+)%"/g)].map((match) => match[1] ?? ''))].sort();
  assert.deepEqual(Object.keys(json('package.nls.json')).sort(), named);
  assert.deepEqual(Object.keys(json('package.nls.zh-cn.json')).sort(), named);
});

test('links to commands survive the translation', () => {
  const links = (text: string): string[] => (text.match(/\(command:[\w.]+\)/g) ?? []).sort();
  const [english, chinese] = [json('package.nls.json'), json('package.nls.zh-cn.json')];
  for (const [key, text] of Object.entries(english)) assert.deepEqual(links(chinese[key] ?? ''), links(text), key);
});

test('the manifest knows the modes of the code', () => {
  const { contributes } = JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf8')) as {
    contributes: { configuration: { properties: Record<string, { enum?: unknown[] }> }; taskDefinitions: { properties: Record<string, { enum?: unknown[] }> }[] };
  };
  assert.deepEqual(contributes.configuration.properties['cublame.mode']?.enum, [null, ...MODES]);
  assert.deepEqual(contributes.taskDefinitions[0]?.properties['mode']?.enum, MODES);
  assert.equal(DEBUGGER_MODES.length, MODES.length - 1);
});

test('a line of the quick pick is short enough to be read', () => {
  for (const mode of MODES) assert.ok(MODE_TEXTS[mode].benefit.length <= 74, MODE_TEXTS[mode].benefit);
});
