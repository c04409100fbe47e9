import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import {
  type Bench,
  type BenchContext,
  formatNumber,
  formatSample,
  type Result,
  runBench,
} from './bench.js';

/** The command `npm run bench -- NAME`: its arguments, and its result as text. */

export const names: readonly string[] = [
  'predict',
  'revise',
  'reads',
  'fanout',
  'sockets',
  'calls',
  'webhooks',
  'resolve',
  'originality',
  'pools',
  'export',
  'comments',
  'boards',
  'pages',
  'scale',
  'mcp',
  'slices',
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
  const [name = '', ...others] = positionals;
  const { quick, only } = values;
  const rounds = Number(values.rounds ?? (quick ? 1 : 5));
  const seconds = Number(values.seconds ?? (quick ? 2 : 8));
  const is_whole = [rounds, seconds].every((n) => Number.isInteger(n) && n >= 1 && n <= 600);
  if (!names.includes(name) || others.length > 0 || !is_whole) throw new Error(usage);
  return { name, rounds, seconds, quick, ...(only === undefined ? {} : { only: only.split(',') }) };
};

/** True when every floor is met. */
export const runCommand = async (argv: readonly string[]): Promise<boolean> => {
  const { name, ...options } = readArguments(argv);
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => stop.abort(new Error('Interrupted.')));
  }
  const folder = mkdtempSync(path.join(os.tmpdir(), `pf-bench-${name}-`));
  // Postgres runs as another user under root and has to pass through.
  chmodSync(folder, 0o711);
  const closers: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
  const context: BenchContext = {
    ...options,
    folder,
    stop: stop.signal,
    log: (line) => void process.stderr.write(`${line}\n`),
    onClose: (close) => void closers.push(close),
  };
  try {
    const bench = await loadBench(name);
    const result = await runBench(bench, context);
    process.stdout.write(`${name}: ${bench.question}\n${printable(result, context)}\n`);
    return result.met;
  } finally {
    for (const close of closers.reverse()) {
      // One that fails must not keep the others from ending their processes.
      await (async () => close())().catch((error) => context.log(`Closing: ${error}`));
    }
  }
};

const figureLine = ({
  name,
  value,
  min,
  max,
  has_bound,
  met,
}: Result['figures'][number]): string => {
  const bound = max < Infinity ? `at most ${max}` : `at least ${min}`;
  const verdict = has_bound ? `  ${met ? 'met' : 'NOT MET'}: ${bound}` : '';
  return `${name.padEnd(32)}${(value === null ? '–' : formatNumber(value)).padStart(10)}${verdict}`;
};

/** From this many cores of other work on, the figures say little about the service. */
const quiet_cores = 0.25;

/** The result as text for a terminal. */
export const printable = (
  { subjects, figures, met }: Result,
  { rounds, seconds, quick }: Pick<BenchContext, 'rounds' | 'seconds' | 'quick'>,
): string => {
  const samples = Object.entries(subjects).map(([name, sample = {}]) => ({ name, sample }));
  const is_disturbed = samples.some(({ sample }) => sample['others_cores']! > quiet_cores);
  return [
    `${os.cpus()[0]?.model}, ${os.availableParallelism()} cores, Node ${process.version}; ` +
      `medians of ${rounds} rounds of ${seconds} s${quick ? ' (quick)' : ''}\n`,
    ...samples.map(({ name, sample }) => formatSample(name, sample)),
    '',
    ...figures.map(figureLine),
    '',
    ...(is_disturbed ? ['Other work used the machine meanwhile; measure again.'] : []),
    met ? 'All floors are met.' : 'A floor is not met.',
  ].join('\n');
};
