// Live blame: what a Python debugger says is passed on to the server, which shows the line while the program stands there.

import * as vscode from 'vscode';

import { PYTHON_DEBUGGERS } from './debugging.ts';
import { isTold, TERMINATED, type DapMessage } from './pure/dap.ts';
import type { DapQuestion } from './pure/protocol.ts';
import type { Server } from './server.ts';

export class DebugTracker implements vscode.Disposable {
  private readonly disposables: vscode.Disposable[];
  private readonly sessions = new Map<string, vscode.DebugSession>();

  constructor(private readonly server: Server) {
    const factory: vscode.DebugAdapterTrackerFactory = { createDebugAdapterTracker: (session) => this.track(session) };
    this.disposables = PYTHON_DEBUGGERS.map((type) => vscode.debug.registerDebugAdapterTrackerFactory(type, factory));
  }

  /** The server wants to know more. The answer passes by as every message of the adapter does. */
  ask({ session, command, arguments: args }: DapQuestion): void {
    this.sessions.get(session)?.customRequest(command, args).then(undefined, (failure: unknown) => {
      // A session that ends while it is asked has nothing more to say.
      this.server.log.debug(`the debugger could not be asked about its exception: ${String(failure)}`);
    });
  }

  dispose(): void {
    for (const disposable of this.disposables) disposable.dispose();
  }

  private track(session: vscode.DebugSession): vscode.DebugAdapterTracker | undefined {
    if (!vscode.workspace.getConfiguration('cublame', session.workspaceFolder).get<boolean>('debug.liveBlame', true)) return undefined;
    const tell = (message: DapMessage): void => {
      this.server.tellOfDebugger(session.id, message);
    };
    this.sessions.set(session.id, session);
    const end = (): void => {
      if (this.sessions.delete(session.id)) tell(TERMINATED);
    };
    return {
      onDidSendMessage: (message: DapMessage) => {
        if (isTold(message)) tell(message);
      },
      onExit: end,
      onError: end,
    };
  }
}
