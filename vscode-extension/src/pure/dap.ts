// Which of a debug adapter's messages the server is told: server/core/src/dap.rs reads them.

/** The parts of a message that are looked at here. */
export interface DapMessage {
  readonly type?: string;
  readonly event?: string;
  readonly command?: string;
  readonly body?: { readonly category?: string };
}

const EVENTS: readonly string[] = ['process', 'stopped', 'continued', 'exited', 'terminated'];
const ANSWERS: readonly string[] = ['exceptionInfo', 'stackTrace'];

/** A session that its adapter left without a word. */
export const TERMINATED: DapMessage = { type: 'event', event: 'terminated' };

/** What the program complains of, but nothing of what its variables hold: that is nobody's business but the editor's. */
export function isTold({ type, event, command, body }: DapMessage): boolean {
  if (type === 'response') return command !== undefined && ANSWERS.includes(command);
  if (type !== 'event' || event === undefined) return false;
  return event === 'output' ? body?.category === 'stderr' : EVENTS.includes(event);
}
