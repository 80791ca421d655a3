// What passes between editor and server and is changed on its way.

import * as vscode from 'vscode';
import type { Middleware } from 'vscode-languageclient/node';

import type { Gutter } from './gutter.ts';
import { interpreterOf } from './interpreter.ts';
import type { Modes } from './modes.ts';

/** The commands that run something of the workspace. Code lenses and quick fixes call them too, past every menu's condition. */
const RUNS_SOMETHING: readonly string[] = ['cublame.run', 'cublame.rerun', 'cublame.debug', 'cublame.repro', 'cublame.configure'];

export function middleware(modes: Modes, gutter: Gutter): Middleware {
  return {
    handleDiagnostics: (uri, diagnostics, next) => {
      next(uri, diagnostics);
      gutter.diagnosed(uri, diagnostics);
    },
    executeCommand: async (command, args: unknown[], next) => {
      if (!vscode.workspace.isTrusted && RUNS_SOMETHING.includes(command)) {
        void vscode.window.showInformationMessage(vscode.l10n.t('Trust this workspace to run its programs.'));
        return null;
      }
      const answer: unknown = await next(command, completed(command, args, modes));
      if (command === 'cublame.copyReport' && typeof answer === 'string') {
        await vscode.env.clipboard.writeText(answer);
        vscode.window.setStatusBarMessage(vscode.l10n.t('The report is on the clipboard.'), 5000);
      }
      return answer;
    },
    workspace: {
      configuration: async (params, token, next) => {
        const values: unknown = await next(params, token);
        if (!Array.isArray(values)) return [];
        const filled: unknown[] = [];
        for (const [index, value] of values.entries()) {
          const ours = params.items[index]?.section === 'cublame' && typeof value === 'object' && value !== null;
          filled.push(ours ? await withInterpreter(value as Record<string, unknown>) : value);
        }
        return filled;
      },
    },
  };
}

/** What the server cannot know: the mode that the status bar shows, and whether the workspace is trusted. */
function completed(command: string, args: unknown[], modes: Modes): unknown[] {
  if (command === 'cublame.doctor') return [{ trusted: vscode.workspace.isTrusted }];
  return command === 'cublame.run' ? withMode(args, modes) : args;
}

/** A run takes the mode that the status bar shows. */
function withMode(args: unknown[], modes: Modes): unknown[] {
  const [first, ...rest] = args;
  if (typeof first !== 'object' || first === null) return args;
  const { mode, uri } = first as { mode?: unknown; uri?: unknown };
  if (mode !== undefined || typeof uri !== 'string') return args;
  return [{ ...first, mode: modes.of(vscode.workspace.getWorkspaceFolder(vscode.Uri.parse(uri))) }, ...rest];
}

/** The server's own choice is left to it where nobody has chosen. The mode goes with each run, since each folder has its own. */
async function withInterpreter(settings: Record<string, unknown>): Promise<Record<string, unknown>> {
  const python = await interpreterOf();
  return { ...settings, mode: null, ...(python === undefined ? { python: '' } : { python }) };
}
