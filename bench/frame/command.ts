import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import {
  type Bench,
  type BenchContext,
  formatNumber,
  formatSample,
  type Judged,
  type Result,
  runBench,
} from './bench.js';

/** The command `npm run bench -- NAME`: its arguments, and its result as text. */

export const names: readonly string[] = [
  ...['predict', 'reads', 'fanout', 'sockets', 'calls'],
  ...['webhooks', 'resolve', 'originality', 'export', 'comments'],
];

export const loadBench = async (name: string): Promise<Bench> =>
  ((await import(`../${name}.js`)) as { readonly bench: Bench }).bench;

const usage =
  'Usage: npm run bench -- NAME [--rounds N] [--seconds S] [--only SUBJECT,…] [--quick]\n' +
  `Benches: ${names.join(', ')}`;

/** The arguments; throws a sentence when they are wrong. */
export const readArguments = (argv: readonly string[]) => {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      only: { type: 'string' },
      quick: { type: 'boolean', default: false },
    },
  });
  const [bench = '', ...others] = positionals;
  const { quick, only } = values;
  const rounds = Number(values.rounds ?? (quick ? 1 : 5));
  const seconds = Number(values.seconds ?? (quick ? 2 : 8));
  const is_whole = [rounds, seconds].every((n) => Number.isInteger(n) && n >= 1 && n <= 600);
  if (!names.includes(bench) || others.length > 0 || !is_whole) throw new Error(usage);
  return {
    ...{ bench, rounds, seconds, quick },
    ...(only === undefined ? {} : { only: only.split(',') }),
  };
};

/** True when every floor is met. */
export const runCommand = async (argv: readonly string[]): Promise<boolean> => {
  const args = readArguments(argv);
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => stop.abort(new Error('Interrupted.')));
  }
  const folder = mkdtempSync(path.join(os.tmpdir(), `pf-bench-${args.bench}-`));
  // Postgres runs as another user under root and has to pass through.
  chmodSync(folder, 0o711);
  const closers: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
  const context: BenchContext = {
    ...{ ...args, folder, stop: stop.signal },
    log: (line) => void process.stderr.write(`${line}\n`),
    onClose: (close) => void closers.push(close),
  };
  try {
    const bench = await loadBench(args.bench);
    const result = await runBench(bench, context);
    process.stdout.write(`${args.bench}: ${bench.question}\n${printable(result, context)}\n`);
    return result.met;
  } finally {
    for (const close of closers.reverse()) {
      // One that fails must not keep the others from ending their processes.
      await (async () => close())().catch((error) => context.log(`Closing: ${error}`));
    }
  }
};

const figureLine = (name: string, { value, min, max, met }: Judged): string => {
  const bound = min === undefined ? `at most ${max}` : `at least ${min}`;
  const verdict = (min ?? max) === undefined ? '' : `  ${met ? 'met' : 'NOT MET'}: ${bound}`;
  return `${name.padEnd(32)}${(value === null ? '–' : formatNumber(value)).padStart(10)}${verdict}`;
};

/** From this many cores of other work on, the figures say little about the service. */
const quiet_cores = 0.25;

/** The result as text for a terminal. */
export const printable = (
  { subjects, figures, met }: Result,
  { rounds, seconds, quick }: Pick<BenchContext, 'rounds' | 'seconds' | 'quick'>,
): string => {
  const is_disturbed = Object.values(subjects).some(
    (sample) => (sample?.['others_cores'] ?? 0) > quiet_cores,
  );
  return [
    `${os.cpus()[0]?.model}, ${os.availableParallelism()} cores, Node ${process.version}; ` +
      `medians of ${rounds} rounds of ${seconds} s${quick ? ' (quick)' : ''}`,
    '',
    ...Object.entries(subjects).map(([name, sample = {}]) => formatSample(name, sample)),
    '',
    ...Object.entries(figures).map(([name, figure]) => figureLine(name, figure)),
    '',
    ...(is_disturbed
      ? ['Other work used the machine meanwhile (others_cores); measure again when it is quiet.']
      : []),
    met ? 'All floors are met.' : 'A floor is not met.',
  ].join('\n');
};
