import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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

/**
 * The command `npm run bench -- NAME …`: parses its arguments and formats its result. With
 * `--write`, the result of each bench replaces its section of `RESULTS.md`, unless the machine was
 * disturbed.
 */

export const names: readonly string[] = [
  'predict',
  'revise',
  'reads',
  'fanout',
  'sockets',
  'widgets',
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
  'search',
];

export const loadBench = async (name: string): Promise<Bench> =>
  ((await import(`../${name}.js`)) as { readonly bench: Bench }).bench;

const usage =
  'Usage: npm run bench -- NAME … [--rounds N] [--seconds S] [--only SUBJECT,…] [--quick] [--write]\n' +
  `Benches: all, ${names.join(', ')}`;

/** Parses the arguments. Throws an error with a readable sentence if they are invalid. */
export const readArguments = (argv: readonly string[]) => {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      only: { type: 'string' },
      quick: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
    },
  });
  const wanted = positionals.includes('all') ? names : positionals;
  const { quick, only, write } = values;
  const rounds = Number(values.rounds ?? (quick ? 1 : 5));
  const seconds = Number(values.seconds ?? (quick ? 2 : 8));
  const is_whole = [rounds, seconds].every((n) => Number.isInteger(n) && n >= 1 && n <= 600);
  const is_known = wanted.length > 0 && wanted.every((name) => names.includes(name));
  if (!is_known || !is_whole) throw new Error(usage);
  const of_some = only === undefined ? {} : { only: only.split(',') };
  return { wanted, write, options: { rounds, seconds, quick, ...of_some } };
};

/** Returns true if every bound is met. */
export const runCommand = async (argv: readonly string[]): Promise<boolean> => {
  const { wanted, write, options } = readArguments(argv);
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => stop.abort(new Error('Interrupted.')));
  }
  let are_met = true;
  for (const name of wanted) {
    const result = await runOne(name, options, stop.signal);
    are_met &&= result.met;
    if (write) writeSection(name, result, [`npm run bench --`, ...argv].join(' '));
  }
  return are_met;
};

type Options = Pick<BenchContext, 'rounds' | 'seconds' | 'quick' | 'only'>;

const runOne = async (name: string, options: Options, stop: AbortSignal): Promise<Result> => {
  const folder = mkdtempSync(path.join(os.tmpdir(), `pf-bench-${name}-`));
  // If this process is root, Postgres runs as another user and has to be able to enter the folder.
  chmodSync(folder, 0o711);
  const closers: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
  const context: BenchContext = {
    ...options,
    folder,
    stop,
    log: (line) => void process.stderr.write(`${line}\n`),
    onClose: (close) => void closers.push(close),
  };
  try {
    const bench = await loadBench(name);
    const result = await runBench(bench, context);
    process.stdout.write(`${name}: ${bench.question}\n${printable(result, context)}\n`);
    return result;
  } finally {
    for (const close of closers.reverse()) {
      // If one closer fails, the others must still end their processes.
      await (async () => close())().catch((error) => context.log(`Closing: ${error}`));
    }
  }
};

const sampleLines = ({ subjects }: Result): readonly string[] =>
  Object.entries(subjects).map(([name, sample = {}]) => formatSample(name, sample));

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

/** If other work uses at least this many cores, the figures say little about the service. */
const quiet_cores = 0.25;
const isDisturbed = ({ subjects }: Result): boolean =>
  Object.values(subjects).some((sample) => (sample?.['others_cores'] ?? 0) > quiet_cores);

const machine = (): string =>
  `${os.cpus()[0]?.model}, ${os.availableParallelism()} cores, Node ${process.version}`;

/** The result as text for a terminal. */
export const printable = (
  result: Result,
  { rounds, seconds, quick }: Pick<BenchContext, 'rounds' | 'seconds' | 'quick'>,
): string => {
  const { figures, met } = result;
  return [
    `${machine()}; medians of ${rounds} rounds of ${seconds} s${quick ? ' (quick)' : ''}\n`,
    ...sampleLines(result),
    '',
    ...figures.map(figureLine),
    '',
    ...(isDisturbed(result) ? ['Other work used the machine during the run. Measure again.'] : []),
    met ? 'All floors are met.' : 'A floor is not met.',
  ].join('\n');
};

const results_file = path.resolve(import.meta.dirname, '../../../bench/RESULTS.md');

/** Replaces the section with the same heading, or appends the section. */
export const replaceSection = (text: string, name: string, section: string): string => {
  const [head = '', ...sections] = text.split(/^(?=## )/m);
  const others = sections.filter((one) => !one.startsWith(`## ${name}\n`));
  const all = [...others, section].sort((a, b) => a.localeCompare(b));
  return `${[head, ...all].map((one) => one.trim()).join('\n\n')}\n`;
};

/** Replaces the section of a bench. Throws without writing if other work ran in the meantime. */
const writeSection = (name: string, result: Result, command: string): void => {
  if (isDisturbed(result)) throw new Error(`${name}: other work used the machine; not written.`);
  const git = (...words: string[]) => spawnSync('git', words, { encoding: 'utf8' });
  const commit = git('rev-parse', '--short', 'HEAD').stdout?.trim() || 'unknown';
  const is_changed = git('diff', '--quiet', 'HEAD', '--', 'src', 'sql').status !== 0;
  const day = new Date().toISOString().slice(0, 10);
  const section = [
    `## ${name}`,
    '',
    `\`${command}\`, ${day}, commit ${commit}${is_changed ? ' with changes' : ''}, ${machine()}.`,
    '',
    '```text',
    ...result.figures.map(figureLine),
    '',
    ...sampleLines(result),
    '```',
  ];
  const text = readFileSync(results_file, 'utf8');
  writeFileSync(results_file, replaceSection(text, name, section.join('\n')));
};
