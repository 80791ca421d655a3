// The server's own messages: server/src/lsp/editor.rs and commands.rs, verdicts as in server/core/src/verdict.rs.

import type { Mode } from './modes.ts';

/** The messages that the client declares in `initializationOptions.custom`. */
export const RUNS = 'cublame/runs';
export const RUN_IN_TERMINAL = 'cublame/runInTerminal';
export const REPORT = 'cublame/report';
export const DAP = 'cublame/dap';

export type Certainty = 'exact' | 'likely' | 'suspect' | 'unknown';

export interface Place {
  readonly file: string;
  readonly path: string | null;
  /** From 1. */
  readonly line: number;
}

export interface Verdict {
  readonly kind: string;
  readonly summary: string;
  readonly place: Place | null;
  readonly reported: Place | null;
  readonly certainty: Certainty;
  readonly because: readonly string[];
  readonly missing: readonly string[];
  readonly rank: number | null;
  readonly collateral: readonly { readonly rank: number | null; readonly summary: string }[];
  readonly fatal: boolean;
}

export interface Run {
  readonly id: string;
  readonly state: 'running' | 'succeeded' | 'failed' | 'interrupted';
  readonly mode: Mode;
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly entry: string | null;
  /** Unix seconds. */
  readonly started: number;
  readonly dismissed: boolean;
  readonly folder: string;
  readonly watch: 'supervised' | 'adopted';
  readonly verdicts: readonly Verdict[];
}

export interface RunsParams {
  readonly runs: readonly Run[];
}

export interface RunInTerminalParams {
  readonly argv: readonly string[];
  readonly cwd: string;
}

export interface ReportParams {
  readonly uri: string;
}

/** What a debug adapter in the editor is to be asked. */
export interface DapQuestion {
  /** The id of the debug session. */
  readonly session: string;
  readonly command: string;
  readonly arguments: unknown;
}

/** What rides in the data of a diagnostic. */
export interface DiagnosticData {
  readonly run: string;
  readonly index: number;
}

export function diagnosticData(value: unknown): DiagnosticData | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { run, index } = value as Partial<DiagnosticData>;
  return typeof run === 'string' && typeof index === 'number' ? { run, index } : undefined;
}
