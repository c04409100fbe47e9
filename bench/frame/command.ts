import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import type { Bench } from './bench.js';
import { printable } from './report.js';
import { type Floor, runBench } from './run-bench.js';

/** The command `npm run bench -- NAME …`. */

export const loadBench = async (name: string): Promise<Bench> =>
  ((await import(`../${name}.js`)) as { readonly bench: Bench }).bench;

export const names: readonly string[] = [
  ...['predict', 'reads', 'fanout', 'sockets', 'calls'],
  ...['webhooks', 'resolve', 'originality', 'export', 'comments'],
];

const usage =
  'Usage: npm run bench -- NAME [--rounds N] [--seconds S] [--only SUBJECT,…] [--quick] ' +
  `[--cpu-prof]\nBenches: ${names.join(', ')}`;

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
      'cpu-prof': { type: 'boolean', default: false },
    },
  });
  const [bench = '', ...others] = positionals;
  const { quick, only } = values;
  const rounds = Number(values.rounds ?? (quick ? 1 : 5));
  const seconds = Number(values.seconds ?? (quick ? 2 : 8));
  const is_whole = [rounds, seconds].every((n) => Number.isInteger(n) && n >= 1 && n <= 600);
  if (!names.includes(bench) || others.length > 0 || !is_whole) throw new Error(usage);
  return {
    ...{ bench, rounds, seconds, quick, cpu_prof: values['cpu-prof'] },
    ...(only === undefined ? {} : { only: only.split(',') }),
  };
};

const floors_file = path.resolve(import.meta.dirname, '../../../bench/floors.json');

export const readFloors = (): Readonly<Record<string, Readonly<Record<string, Floor>>>> =>
  JSON.parse(readFileSync(floors_file, 'utf8'));

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
  const log = (line: string): void => void process.stderr.write(`${line}\n`);
  try {
    const context = { ...args, folder, log, stop: stop.signal };
    const result = await runBench(await loadBench(args.bench), context, readFloors()[args.bench]);
    process.stdout.write(`${printable(result, args)}\n`);
    return result.met;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};
