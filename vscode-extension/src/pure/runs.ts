// The list of runs as rows of a tree.

import type { Certainty, Run, Verdict } from './protocol.ts';

export interface Row {
  readonly id: string;
  readonly label: string;
  readonly description: string;
  readonly tooltip: string;
  readonly icon: { readonly name: string; readonly color?: string };
  /** What the menus of the view look at. */
  readonly context: string;
  readonly run: Run;
  /** Where a click goes. */
  readonly place?: { readonly path: string; readonly line: number };
  readonly children: readonly Row[];
}

/** Newest first, as the server gives them. */
export function rows(runs: readonly Run[], now: number): Row[] {
  return runs.map((run) => runRow(run, now));
}

/** The failures that stand: of each program, the newest run if it failed and nobody dismissed it. */
export function standingFailures(runs: readonly Run[]): number {
  const seen = new Set<string>();
  let failures = 0;
  for (const run of runs) {
    const program = run.entry ?? run.argv.join(' ');
    if (run.state === 'running' || run.state === 'interrupted' || seen.has(program)) continue;
    seen.add(program);
    if (run.state === 'failed' && !run.dismissed && run.verdicts.some((verdict) => verdict.fatal)) failures += 1;
  }
  return failures;
}

const CERTAINTY_ICONS: Readonly<Record<Certainty, string>> = {
  exact: 'circle-filled',
  likely: 'circle-large-filled',
  suspect: 'circle-large-outline',
  unknown: 'question',
};

function runRow(run: Run, now: number): Row {
  const [root] = run.verdicts;
  const failed = run.state === 'failed';
  // A debugger holds it at its failure.
  const held = run.state === 'running' && root !== undefined;
  const marks = [
    'run',
    run.state === 'running' ? 'running' : 'ended',
    ...(run.folder.startsWith('/') || /^[A-Za-z]:/.test(run.folder) ? ['command'] : []),
    ...(root ? ['verdict'] : []),
    ...(failed && root && !run.dismissed ? ['shown'] : []),
  ];
  return {
    id: run.id,
    label: nameOf(run),
    description: [run.state === 'failed' && root ? root.kind : held ? `held at ${root.kind}` : run.state, run.mode, ago(now - run.started)].join(', '),
    tooltip: [run.argv.join(' '), run.cwd, ...(root ? [`${root.summary} (${root.certainty})`] : [])].filter((line) => line !== '').join('\n'),
    icon: held ? { name: 'debug-alt', color: 'testing.iconFailed' } : stateIcon(run),
    context: marks.join('-'),
    run,
    ...placed(root),
    children: run.verdicts.map((verdict, index) => verdictRow(run, verdict, index)),
  };
}

function verdictRow(run: Run, verdict: Verdict, index: number): Row {
  const place = verdict.place ?? verdict.reported;
  const where = place ? `${baseName(place.file)}:${place.line}` : 'no line known';
  const rank = verdict.rank === null ? [] : [`rank ${verdict.rank}`];
  return {
    id: `${run.id}/${index}`,
    label: verdict.summary,
    description: [where, verdict.certainty, ...rank, ...(verdict.fatal ? [] : ['caught'])].join(', '),
    tooltip: [verdict.kind, ...verdict.because, ...verdict.missing.map((missing) => `Not seen: ${missing}`)].join('\n'),
    icon: { name: CERTAINTY_ICONS[verdict.certainty], color: verdict.fatal ? 'list.errorForeground' : 'list.warningForeground' },
    context: 'verdict',
    run,
    ...placed(verdict),
    children: verdict.collateral.map((other, number) => ({
      id: `${run.id}/${index}/${number}`,
      label: other.summary,
      description: other.rank === null ? 'collateral' : `rank ${other.rank}, collateral`,
      tooltip: 'It only followed from the failure above.',
      icon: { name: 'arrow-small-right', color: 'disabledForeground' },
      context: 'collateral',
      run,
      children: [],
    })),
  };
}

function stateIcon(run: Run): Row['icon'] {
  if (run.dismissed) return { name: 'check', color: 'disabledForeground' };
  switch (run.state) {
    case 'running':
      return { name: 'sync~spin' };
    case 'succeeded':
      return { name: 'pass', color: 'testing.iconPassed' };
    case 'failed':
      return { name: 'error', color: 'testing.iconFailed' };
    case 'interrupted':
      return { name: 'debug-stop', color: 'disabledForeground' };
  }
}

function placed(verdict: Verdict | undefined): { place?: { path: string; line: number } } {
  const place = [verdict?.place, verdict?.reported].find((it) => typeof it?.path === 'string');
  return place?.path ? { place: { path: place.path, line: place.line } } : {};
}

function nameOf(run: Run): string {
  if (run.entry !== null) return baseName(run.entry);
  const module = run.argv.indexOf('-m');
  return (module >= 0 ? run.argv[module + 1] : undefined) ?? (run.argv.map(baseName).join(' ') || run.id);
}

function baseName(path: string): string {
  return path.split(/[\\/]/).pop() ?? path;
}

function ago(seconds: number): string {
  if (seconds < 60) return 'just now';
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} d ago`;
}
