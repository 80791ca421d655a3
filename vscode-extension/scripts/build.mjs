// Bundles the extension into dist/extension.js.
import { build } from 'esbuild';

await build({
  entryPoints: ['src/extension.ts'],
  outfile: 'dist/extension.js',
  bundle: true,
  platform: 'node',
  format: 'cjs',
  mainFields: ['module', 'main'],
  target: 'node20',
  external: ['vscode'],
  minify: !process.argv.includes('--development'),
  sourcemap: process.argv.includes('--development'),
  logLevel: 'warning',
});
