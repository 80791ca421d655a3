import js from '@eslint/js';
import { defineConfig } from 'eslint/config';
import typescript from 'typescript-eslint';

export default defineConfig(
  { ignores: ['dist/', 'test/out/', 'node_modules/'] },
  js.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [typescript.configs.strictTypeChecked, typescript.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      // A number in a template is as plain as a word.
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      // node:test's functions return promises that its own runner awaits.
      '@typescript-eslint/no-floating-promises': ['error', { allowForKnownSafeCalls: [{ from: 'package', name: ['test', 'suite', 'describe', 'it'], package: 'node:test' }] }],
    },
  },
  {
    files: ['src/pure/**/*.ts'],
    rules: {
      // What is pure is tested without an editor.
      'no-restricted-imports': ['error', { paths: ['vscode', 'vscode-languageclient/node', 'node:fs', 'node:child_process'] }],
      'no-restricted-globals': ['error', 'process'],
    },
  },
  {
    files: ['**/*.mjs', 'test/debugpy/*.js'],
    languageOptions: { globals: { process: 'readonly', console: 'readonly', document: 'readonly', MutationObserver: 'readonly', getComputedStyle: 'readonly', setTimeout: 'readonly', fetch: 'readonly', URL: 'readonly', require: 'readonly', exports: 'writable' } },
  },
);
