// Live blame: what a Python debugger stands at is shown at its line while it stands there.

import * as vscode from 'vscode';

import { PYTHON_DEBUGGERS } from './debugging.ts';
import { asLog, isUncaught, tail, type ExceptionInfo } from './pure/exception.ts';
import type { Server } from './server.ts';

/** The parts of a DAP message that are looked at. */
interface Message {
  readonly type?: string;
  readonly event?: string;
  readonly body?: { readonly reason?: string; readonly threadId?: number; readonly category?: string; readonly output?: string };
}

/** As much of stderr as holds the lines of a device-side assert, which are repeated for each thread. */
const MOST_STDERR = 256 * 1024;

export class DebugTracker implements vscode.Disposable {
  private readonly disposables: { dispose(): unknown }[];
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChange = this.changed.event;
  /** The names under which the server shows what debuggers stand at. */
  readonly live = new Set<string>();

  constructor(private readonly server: Server) {
    const factory: vscode.DebugAdapterTrackerFactory = { createDebugAdapterTracker: (session) => this.track(session) };
    this.disposables = [this.changed, ...PYTHON_DEBUGGERS.map((type) => vscode.debug.registerDebugAdapterTrackerFactory(type, factory))];
  }

  dispose(): void {
    for (const disposable of this.disposables) disposable.dispose();
  }

  private track(session: vscode.DebugSession): vscode.DebugAdapterTracker | undefined {
    if (!vscode.workspace.getConfiguration('cublame', session.workspaceFolder).get<boolean>('debug.liveBlame', true)) return undefined;
    let stderr = '';
    let shown: Promise<string | undefined> = Promise.resolve(undefined);
    const takeAway = (): void => {
      const name = shown;
      shown = Promise.resolve(undefined);
      void name.then((run) => this.forget(run));
    };
    return {
      onDidSendMessage: (message: Message) => {
        if (message.type !== 'event') return;
        const { event, body } = message;
        if (event === 'output' && body?.category === 'stderr') stderr = tail(stderr, body.output ?? '', MOST_STDERR);
        if (event === 'stopped' && body?.reason === 'exception' && body.threadId !== undefined) {
          takeAway();
          shown = this.show(session, body.threadId, stderr);
        }
        // Going on, or the end, is when the hook's own event takes over.
        if (event === 'continued') takeAway();
      },
      onWillStopSession: takeAway,
      onExit: takeAway,
    };
  }

  /** The name under which it is shown; undefined where there is nothing to show. */
  private async show(session: vscode.DebugSession, threadId: number, stderr: string): Promise<string | undefined> {
    try {
      const info = (await session.customRequest('exceptionInfo', { threadId })) as ExceptionInfo;
      const log = isUncaught(info) ? asLog(info, stderr) : undefined;
      if (log === undefined || !this.server.running) return undefined;
      const environment = session.configuration['env'] as Record<string, string | undefined> | undefined;
      const blocking = environment?.['CUDA_LAUNCH_BLOCKING'] === '1';
      const answer = await vscode.commands.executeCommand<{ readonly run?: string } | null>('cublame.explainText', { text: log, blocking, live: true });
      const run = answer?.run;
      if (run === undefined) return undefined;
      this.live.add(run);
      this.changed.fire();
      return run;
    } catch (failure) {
      // A session that ends while it is asked has nothing more to say.
      this.server.log.debug(`the debugger could not be asked about its exception: ${String(failure)}`);
      return undefined;
    }
  }

  private async forget(run: string | undefined): Promise<void> {
    if (run === undefined) return;
    try {
      if (this.server.running) await vscode.commands.executeCommand('cublame.dismiss', { run });
    } catch (failure) {
      this.server.log.debug(`${run} was gone already: ${String(failure)}`);
    }
    this.live.delete(run);
    this.changed.fire();
  }
}
