// The server: found, started, watched, and its custom messages passed on.

import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import * as vscode from 'vscode';
import type { CloseHandlerResult, LanguageClient, LanguageClientOptions, Middleware } from 'vscode-languageclient/node';

import { candidates, judge, type Answer, type Candidate } from './pure/locate.ts';
import { DAP, REPORT, RUN_IN_TERMINAL, RUNS, type DapQuestion, type ReportParams, type RunInTerminalParams, type RunsParams } from './pure/protocol.ts';
import { versionText } from './pure/version.ts';

/** Files in which the server offers run configurations, and edits those that are open. */
const RUN_CONFIGURATIONS: readonly string[] = ['**/.vscode/{launch,tasks}.json', '**/*.code-workspace', '**/*.run.xml', '**/.idea/runConfigurations/*.xml', '**/*.ipynb'];

/** What the server asks of the editor. */
export interface Requests {
  runs(params: RunsParams): void;
  runInTerminal(params: RunInTerminalParams): void;
  report(params: ReportParams): void;
  askDebugger(question: DapQuestion): void;
}

/** What the rest of the extension gives to the client. */
export interface Surface {
  readonly requests: Requests;
  readonly middleware: Middleware;
  /** The interpreter that the user has chosen; never asked for in an untrusted workspace. */
  interpreter(): Promise<string | undefined>;
}

export interface Found {
  readonly path: string;
  readonly why: string;
  readonly version: string;
}

/** One server at a time. Starting again is stopping and finding anew. */
export class Server implements vscode.Disposable {
  private client: LanguageClient | undefined;
  private answers = false;
  private process: ChildProcess | undefined;
  private starting: Promise<void> = Promise.resolve();
  private ends: number[] = [];
  private saidThatItEnded = false;
  private disposed = false;
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChange = this.changed.event;
  /** The program in use; undefined when none could be found. */
  found: Found | undefined;

  constructor(
    private readonly context: vscode.ExtensionContext,
    readonly log: vscode.LogOutputChannel,
    private readonly surface: Surface,
  ) {}

  get running(): boolean {
    return this.answers;
  }

  get pid(): number | undefined {
    return this.process?.pid;
  }

  /** The commands that this server has. */
  commands(): readonly string[] {
    return this.client?.initializeResult?.capabilities.executeCommandProvider?.commands ?? [];
  }

  /** Passes on what a debug adapter has said. In order, and waiting for nothing. */
  tellOfDebugger(session: string, message: unknown): void {
    if (!this.answers) return;
    this.client?.sendNotification(DAP, { session, message }).catch((failure: unknown) => {
      this.log.debug(`the server was not told of the debugger: ${String(failure)}`);
    });
  }

  /** Finds and starts; in a queue, so that two settings changed at once do not start two servers. */
  start(): Promise<void> {
    this.starting = this.starting.then(() => this.startNow()).catch((failure: unknown) => {
      this.log.error(`the server could not be started: ${String(failure)}`);
    });
    return this.starting;
  }

  async dispose(): Promise<void> {
    this.disposed = true;
    await this.stop();
    this.changed.dispose();
  }

  private async startNow(): Promise<void> {
    await this.stop();
    if (this.disposed) return;
    this.found = await this.find();
    this.changed.fire();
    if (this.found === undefined) {
      void this.tellThatThereIsNone();
      return;
    }
    const { path } = this.found;
    // The library is half a megabyte, which an activation has no time to load.
    const library = await import('vscode-languageclient/node');
    const serverOptions = (): Promise<ChildProcess> => {
      // The working directory decides nothing for the server; the user's home is there for every workspace.
      const child = spawn(path, ['lsp'], { stdio: 'pipe' });
      child.on('error', (failure) => {
        this.log.error(`${path} could not be started: ${failure.message}`);
      });
      this.process = child;
      return Promise.resolve(child);
    };
    const client = new library.LanguageClient('cublame', 'cublame', serverOptions, this.clientOptions(library));
    client.onNotification(RUNS, (params: RunsParams) => {
      this.surface.requests.runs(params);
    });
    client.onNotification(RUN_IN_TERMINAL, (params: RunInTerminalParams) => {
      this.surface.requests.runInTerminal(params);
    });
    client.onNotification(REPORT, (params: ReportParams) => {
      this.surface.requests.report(params);
    });
    client.onNotification(DAP, (question: DapQuestion) => {
      this.surface.requests.askDebugger(question);
    });
    client.onDidChangeState(({ newState }) => {
      this.answers = newState === library.State.Running;
      this.changed.fire();
    });
    this.client = client;
    await client.start();
  }

  private async stop(): Promise<void> {
    const { client } = this;
    this.client = undefined;
    this.answers = false;
    if (client === undefined) return;
    try {
      await client.dispose(2000);
    } catch (failure) {
      // One that has ended already, or never started, has nothing left to stop.
      this.log.debug(`stopping the server: ${String(failure)}`);
    }
    this.surface.requests.runs({ runs: [] });
  }

  private clientOptions({ ErrorAction, CloseAction }: typeof import('vscode-languageclient/node')): LanguageClientOptions {
    const settings = vscode.workspace.getConfiguration('cublame');
    const custom = [RUNS, REPORT, DAP, ...(settings.get('runIn') === 'background' ? [] : [RUN_IN_TERMINAL])];
    return {
      documentSelector: [
        ...['python', 'cuda-cpp', 'cpp', 'c'].map((language) => ({ scheme: 'file', language })),
        // Hover and quick fixes in cells. Their texts go to the server with their notebook.
        { notebook: 'jupyter-notebook', language: 'python' },
        ...RUN_CONFIGURATIONS.map((pattern) => ({ scheme: 'file', pattern })),
      ],
      initializationOptions: { custom },
      outputChannel: this.log,
      middleware: this.surface.middleware,
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue }),
        closed: (): CloseHandlerResult => ({ action: this.startsAgain() ? CloseAction.Restart : CloseAction.DoNotRestart, handled: true }),
      },
    };
  }

  /** Started again, and told once; a server that ends again and again stays down until the user says otherwise. */
  private startsAgain(): boolean {
    const MOST = 4;
    const WITHIN = 3 * 60 * 1000;
    const now = Date.now();
    this.ends = [...this.ends.filter((end) => now - end < WITHIN), now];
    this.log.warn(`the server ended (${this.ends.length} in three minutes)`);
    if (this.disposed) return false;
    if (this.ends.length > MOST) {
      this.ends = [];
      void this.offer(vscode.l10n.t('The cublame server ended {0} times in three minutes and is left alone.', MOST + 1));
      return false;
    }
    if (!this.saidThatItEnded) {
      this.saidThatItEnded = true;
      void vscode.window.showWarningMessage(vscode.l10n.t('The cublame server ended unexpectedly and was started again. Runs are not touched by that.'));
    }
    return true;
  }

  private async offer(text: string): Promise<void> {
    const [again, log] = [vscode.l10n.t('Start Again'), vscode.l10n.t('Show Log')];
    const chosen = await vscode.window.showErrorMessage(text, again, log);
    if (chosen === again) await this.start();
    if (chosen === log) this.log.show();
  }

  /** Asks the candidates for their version, in order, and takes the first that can be used. */
  private async find(): Promise<Found | undefined> {
    const trusted = vscode.workspace.isTrusted;
    const around = {
      trusted,
      windows: process.platform === 'win32',
      // Read from the user's and the machine's settings, and from the workspace's where it is trusted.
      setting: trusted ? vscode.workspace.getConfiguration('cublame').get<string>('server.path', '') : '',
      extension: this.context.extensionPath,
      python: trusted ? await this.surface.interpreter() : undefined,
      path: process.env['PATH'] ?? '',
    };
    for (const candidate of candidates(around)) {
      const answer = await ask(candidate.path);
      if (answer === undefined && !candidate.named) continue;
      const judged = judge(answer ?? { kind: 'failed', reason: 'there is no such file' });
      if (judged.usable) {
        const version = versionText(judged.version);
        this.log.info(`the server is ${candidate.path} (version ${version}): ${candidate.why}`);
        return { path: candidate.path, why: candidate.why, version };
      }
      this.log.warn(`${candidate.path} is not used, though ${candidate.why}: ${judged.reason}`);
      if (candidate.named) void this.tellThatItIsNotUsed(candidate, judged.reason);
    }
    this.log.error('no server was found');
    return undefined;
  }

  private async tellThatItIsNotUsed(candidate: Candidate, reason: string): Promise<void> {
    const settings = vscode.l10n.t('Open Settings');
    const text = vscode.l10n.t('{0} is not used as the cublame server: {1}.', candidate.path, reason);
    if ((await vscode.window.showWarningMessage(text, settings)) === settings) await openSetting();
  }

  private async tellThatThereIsNone(): Promise<void> {
    const [settings, log] = [vscode.l10n.t('Open Settings'), vscode.l10n.t('Show Log')];
    const text = vscode.l10n.t('No cublame server was found: this build of the extension has none for this machine. Put one on PATH, or name it in the settings.');
    const chosen = await vscode.window.showErrorMessage(text, settings, log);
    if (chosen === settings) await openSetting();
    if (chosen === log) this.log.show();
  }
}

/** What a program says when it is asked for its version; undefined where there is no such file. */
async function ask(path: string): Promise<Answer | undefined> {
  const ANSWER = 10_000;
  try {
    await access(path, constants.F_OK);
  } catch {
    return undefined;
  }
  return new Promise((resolve) => {
    execFile(path, ['--version'], { timeout: ANSWER, encoding: 'utf8' }, (failure, stdout) => {
      if (failure === null) resolve({ kind: 'printed', output: stdout });
      else resolve({ kind: 'failed', reason: failure.killed === true ? 'it did not answer in time' : `it could not be run (${failure.message.trim()})` });
    });
  });
}

async function openSetting(): Promise<void> {
  await vscode.commands.executeCommand('workbench.action.openSettings', 'cublame.server.path');
}
