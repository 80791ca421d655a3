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

/** The texts in English, which are the keys of their translations. The costs are those of the project's README. */
export const MODE_TEXTS: Readonly<Record<Mode, ModeText>> = {
  trace: {
    name: 'full-speed blame',
    icon: 'zap',
    benefit: 'The failing line from a journal of kernel launches, also inside CUDA graphs. Linux.',
    cost: 'No slowdown was measured.',
  },
  blocking: {
    name: 'blocking',
    icon: 'debug-pause',
    benefit: 'Every launch waits for its kernel (CUDA_LAUNCH_BLOCKING=1), so the failing line is right.',
    cost: 'A training step takes 1.4 to 2.1 times as long.',
  },
  guard: {
    name: 'guard',
    icon: 'shield',
    benefit: 'Indices, labels and probabilities are checked before the launch: the value is named and the CUDA context survives.',
    cost: 'A few percent where the GPU is busy, up to twice the time in loops of tiny kernels.',
  },
  core: {
    name: 'core dump',
    icon: 'save',
    benefit: 'Full-speed blame, and the GPU core dump as proof. Linux.',
    cost: 'The process ends at the fault: no exception, no finally.',
  },
  sanitize: {
    name: 'sanitizer',
    icon: 'search',
    benefit: "NVIDIA's compute-sanitizer finds the bad access itself, down to the line of the kernel.",
    cost: 'Many times slower. It runs as a task, since a debugger cannot start it.',
  },
  off: {
    name: 'off',
    icon: 'circle-slash',
    benefit: 'Nothing is changed. A failure is still reported, from its output and its exception.',
    cost: 'None. An asynchronous failure shows up at a line that is often innocent.',
  },
};

/** The modes that a debugger can start: the sanitizer needs words before the interpreter. */
export const DEBUGGER_MODES: readonly Mode[] = MODES.filter((mode) => mode !== 'sanitize');

export function isMode(word: unknown): word is Mode {
  return typeof word === 'string' && (MODES as readonly string[]).includes(word);
}

/** The first word of a `.cublame/mode` file, if it is a mode. */
export function modeOfFile(text: string): Mode | undefined {
  const word = text.trim().split(/\s+/, 1)[0];
  return isMode(word) ? word : undefined;
}
