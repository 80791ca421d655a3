// The modes: what each is called in the editor, what it gives and what it costs.

/** The modes of `cublame run --mode`, the best default first. */
export const MODES = ['trace', 'blocking', 'guard', 'core', 'sanitize', 'off'] as const;

export type Mode = (typeof MODES)[number];

/** The mode of a workspace in which nobody has chosen one, as in `cublame run`. */
export const DEFAULT_MODE: Mode = 'trace';

export interface ModeText {
  /** In the status bar, after "CUDA: ". */
  readonly name: string;
  readonly icon: string;
  /** What it gives. */
  readonly benefit: string;
  /** What it costs. */
  readonly cost: string;
}

/**
 * The texts in English, which are the keys of their translations. The costs are those of the project's README.
 * A quick pick cuts a line after about seventy letters.
 */
export const MODE_TEXTS: Readonly<Record<Mode, ModeText>> = {
  trace: {
    name: 'full-speed blame',
    icon: 'zap',
    benefit: 'The failing line from a journal of launches, also in CUDA graphs (Linux)',
    cost: 'no slowdown measured',
  },
  blocking: {
    name: 'blocking',
    icon: 'debug-pause',
    benefit: 'CUDA_LAUNCH_BLOCKING=1: each launch is waited for, so the line is right',
    cost: '1.4 to 2.1 times a training step',
  },
  guard: {
    name: 'guard',
    icon: 'shield',
    benefit: 'A bad index or label is caught before the launch, with its value',
    cost: 'adds 4 to 10 % to a training step',
  },
  core: {
    name: 'core dump',
    icon: 'save',
    benefit: "Full-speed blame, with the GPU's core dump as proof (Linux)",
    cost: 'the process ends at the fault',
  },
  sanitize: {
    name: 'sanitizer',
    icon: 'search',
    benefit: 'The bad access itself, down to the line of the kernel; runs as a task',
    cost: 'many times slower',
  },
  off: {
    name: 'off',
    icon: 'circle-slash',
    benefit: 'Nothing is changed; a failure is judged by what it prints and raises',
    cost: 'no cost',
  },
};

/** The modes that a debugger can start: the sanitizer needs words before the interpreter. */
export const DEBUGGER_MODES: readonly Mode[] = MODES.filter((mode) => mode !== 'sanitize');

export function isMode(word: unknown): word is Mode {
  return typeof word === 'string' && (MODES as readonly string[]).includes(word);
}

/** A folder and all above it, nearest first. */
export function ancestors(folder: string): string[] {
  const found = [folder];
  for (;;) {
    const last = found.at(-1) ?? '';
    const cut = Math.max(last.lastIndexOf('/'), last.lastIndexOf('\\'));
    // The root keeps its separator: `/`, `C:\`.
    const parent = cut < 0 ? last : last.slice(0, cut === last.search(/[\\/]/) ? cut + 1 : cut);
    if (parent === last) return found;
    found.push(parent);
  }
}

/** The first word of a `.cublame/mode` file, if it is a mode. */
export function modeOfFile(text: string): Mode | undefined {
  const word = text.trim().split(/\s+/, 1)[0];
  return isMode(word) ? word : undefined;
}
