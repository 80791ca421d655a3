// Debug sessions: the mode's variables are added when one starts, and profiles appear in Run and Debug.

import { readFile } from 'node:fs/promises';
import * as path from 'node:path';
import * as vscode from 'vscode';

import { blockOf } from './environment.ts';
import type { Modes } from './modes.ts';
import { environmentOf, modeOfLaunch, withBlock, type Launch } from './pure/environment.ts';
import { DEBUGGER_MODES, MODE_TEXTS, type Mode } from './pure/modes.ts';
import type { Server } from './server.ts';

/** The debug types of Python: the present one, and its old name. */
export const PYTHON_DEBUGGERS = ['debugpy', 'python'] as const;

export function registerDebugging(modes: Modes, server: Server, runSupervised: (configuration: vscode.DebugConfiguration, folder: vscode.WorkspaceFolder | undefined) => void): vscode.Disposable {
  const provider = new ModeProvider(modes, server, runSupervised);
  const registered = PYTHON_DEBUGGERS.map((type) => vscode.debug.registerDebugConfigurationProvider(type, provider));
  const profiles = vscode.debug.registerDebugConfigurationProvider(
    'debugpy',
    { provideDebugConfigurations: () => DEBUGGER_MODES.map(profile) },
    vscode.DebugConfigurationProviderTriggerKind.Dynamic,
  );
  return vscode.Disposable.from(...registered, profiles);
}

/**
 * Adds the variables in the second resolving step, where `${...}` is replaced already.
 * It may run before or after the Python extension's own provider, which puts the env file's variables beneath `env`:
 * so the file is read here as well, for the variables that are lists, and left for that provider to merge.
 */
class ModeProvider implements vscode.DebugConfigurationProvider {
  constructor(
    private readonly modes: Modes,
    private readonly server: Server,
    private readonly runSupervised: (configuration: vscode.DebugConfiguration, folder: vscode.WorkspaceFolder | undefined) => void,
  ) {}

  async resolveDebugConfigurationWithSubstitutedVariables(folder: vscode.WorkspaceFolder | undefined, configuration: vscode.DebugConfiguration): Promise<vscode.DebugConfiguration> {
    const wanted = vscode.workspace.getConfiguration('cublame', folder).get<boolean>('debug.applyMode', true);
    if (configuration.request !== 'launch' || !wanted || !vscode.workspace.isTrusted) return configuration;
    const launch: Launch = { env: configuration['env'] as Launch['env'] };
    const environment = environmentOf(launch, await envFileOf(configuration, folder), process.env);
    // The watcher may be late, or silent on a network file system: a session takes the mode that is written now.
    await this.modes.read();
    const mode = modeOfLaunch(environment, process.env, this.modes.of(folder));
    if (!DEBUGGER_MODES.includes(mode)) {
      void this.offerTask(configuration, folder);
      return configuration;
    }
    const block = await blockOf(this.server, mode, environment);
    if (block === undefined) {
      this.server.log.warn(`the debug session "${configuration.name}" runs without the variables of mode ${mode}`);
      return configuration;
    }
    this.server.log.info(`the debug session "${configuration.name}" runs in mode ${mode}: ${Object.keys(block).join(', ')}`);
    return { ...configuration, env: withBlock(launch, block) };
  }

  private async offerTask(configuration: vscode.DebugConfiguration, folder: vscode.WorkspaceFolder | undefined): Promise<void> {
    const run = vscode.l10n.t('Run under the Sanitizer');
    const text = vscode.l10n.t('A debugger cannot start the sanitizer, so this session runs without it.');
    if ((await vscode.window.showInformationMessage(text, run)) === run) this.runSupervised(configuration, folder);
  }
}

/** A configuration of Run and Debug: only what may stand in a file under version control, so that it can be saved as it is. */
function profile(mode: Mode): vscode.DebugConfiguration {
  return {
    name: vscode.l10n.t('cublame: current file ({0})', vscode.l10n.t(MODE_TEXTS[mode].name)),
    type: 'debugpy',
    request: 'launch',
    program: '${file}',
    console: 'integratedTerminal',
    env: { CUBLAME_MODE: mode, ...(mode === 'blocking' ? { CUDA_LAUNCH_BLOCKING: '1' } : {}) },
  };
}

/** The text of the configuration's env file, or of the one that the Python extension takes where none is named. */
async function envFileOf(configuration: vscode.DebugConfiguration, folder: vscode.WorkspaceFolder | undefined): Promise<string | undefined> {
  const named: unknown = configuration['envFile'];
  const root = folder?.uri.fsPath;
  const standard = vscode.workspace.getConfiguration('python', folder).get<string>('envFile', '${workspaceFolder}/.env');
  const file = typeof named === 'string' ? named : root === undefined ? undefined : standard.replaceAll('${workspaceFolder}', root);
  if (file === undefined || file === '') return undefined;
  try {
    return await readFile(path.resolve(root ?? '/', file), 'utf8');
  } catch {
    // The debugger says so itself where it minds.
    return undefined;
  }
}
