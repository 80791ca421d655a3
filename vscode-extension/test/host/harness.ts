// Runs checks inside the extension host and says how each went; one line a check, which the driver counts.

import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import * as path from 'node:path';
import * as vscode from 'vscode';

import type { Api } from '../../src/extension.ts';

let failures = 0;

/** One check. The next ones run all the same. */
export async function check(name: string, body: () => Promise<void>): Promise<void> {
  const started = Date.now();
  try {
    await body();
    console.log(`ok - ${name} (${Date.now() - started} ms)`);
  } catch (failure) {
    failures += 1;
    // A debugger that still stands would fail the next ones too.
    await vscode.debug.stopDebugging();
    console.log(`not ok - ${name}\n${failure instanceof Error ? (failure.stack ?? failure.message) : String(failure)}`);
  }
}

/** Ends a suite: a thrown error is how the driver learns that it failed. */
export function finish(): void {
  if (failures > 0) throw new Error(`${failures} checks failed`);
}

/** What `look` finds, as soon as it finds something. */
export async function eventually<T>(what: string, look: () => T | undefined | false | PromiseLike<T | undefined | false>): Promise<T> {
  const deadline = Date.now() + 30_000;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (Date.now() > deadline) throw new Error(`${what} did not come`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export function folder(): vscode.WorkspaceFolder {
  const [first] = vscode.workspace.workspaceFolders ?? [];
  assert.ok(first);
  return first;
}

export function inWorkspace(...names: string[]): string {
  return path.join(folder().uri.fsPath, ...names);
}

/** The line, from 0, that a marker in the program calls the culprit. */
export function faultLine(file: string): number {
  const lines = fs.readFileSync(file, 'utf8').split('\n');
  const line = lines.findIndex((text) => /# (@fault|CULPRIT)/.test(text));
  assert.ok(line >= 0, `${file} has no marker`);
  return line;
}

export async function show(name: string): Promise<vscode.TextDocument> {
  const document = await vscode.workspace.openTextDocument(inWorkspace(name));
  await vscode.window.showTextDocument(document);
  return document;
}

/** The extension, once it is active and its server answers. */
export async function ready(): Promise<Api> {
  const extension = vscode.extensions.getExtension<Api>('cublame.cublame');
  assert.ok(extension);
  await eventually('the activation', () => extension.isActive);
  await eventually('the server', () => extension.exports.server().running);
  return extension.exports;
}

export function ours(file: string): vscode.Diagnostic[] {
  return vscode.languages.getDiagnostics(vscode.Uri.file(file)).filter((diagnostic) => diagnostic.source === 'cublame');
}

/** The one diagnostic of a file, when it is there and is as wanted. */
export async function diagnostic(file: string, wanted: (diagnostic: vscode.Diagnostic) => boolean = () => true): Promise<vscode.Diagnostic> {
  return eventually(`the diagnostic of ${path.basename(file)}`, () => {
    const [first, ...others] = ours(file);
    return first !== undefined && others.length === 0 && wanted(first) && first;
  });
}

export async function none(file: string): Promise<void> {
  await eventually(`the end of the diagnostic of ${path.basename(file)}`, () => ours(file).length === 0);
}

export async function sessionEnds(start: () => Thenable<unknown>): Promise<void> {
  const ended = new Promise<void>((resolve) => {
    const subscription = vscode.debug.onDidTerminateDebugSession(() => {
      subscription.dispose();
      resolve();
    });
  });
  await start();
  await ended;
}
