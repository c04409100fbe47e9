import os from 'node:os';
import type { BenchContext, Sample } from './bench.js';
import type { Figure, Result } from './run-bench.js';

/** Columns in this order; further figures of a subject follow on a line of their own. */
const columns = [
  ['per_second', 'per second', 0],
  ['p50_ms', 'p50 ms', 2],
  ['p99_ms', 'p99 ms', 2],
  ['rss_mb', 'RSS MB', 0],
] as const;

const format = (value: number, digits: number): string =>
  value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });

const align = (cells: readonly string[]): string =>
  cells.map((cell, n) => (n === 0 ? cell.padEnd(24) : cell.padStart(11))).join('');

const subjectLines = (name: string, sample: Sample): string[] => {
  const cells = columns.map(([figure, , digits]) =>
    sample[figure] === undefined ? '–' : format(sample[figure], digits),
  );
  const others = Object.entries(sample)
    .filter(([figure]) => !columns.some(([column]) => column === figure))
    .map(([figure, value]) => `${figure} ${format(value, value >= 100 ? 0 : 2)}`);
  return [align([name, ...cells]), ...(others.length === 0 ? [] : [`    ${others.join(', ')}`])];
};

const figureLine = (name: string, { value, min, max, met }: Figure): string => {
  const bound = min === undefined ? `at most ${max}` : `at least ${min}`;
  const verdict = (min ?? max) ? `  ${met ? 'met' : 'NOT MET'}: ${bound}` : '';
  const shown = value === null ? '–' : format(value, 2);
  return `${name.padEnd(32)}${shown.padStart(10)}${verdict}`;
};

/** From this many cores of other work on, the figures say little about the service. */
const quiet_cores = 0.25;

const verdictOf = ({ figures, met }: Result): string => {
  const has_floor = Object.values(figures).some(({ min, max }) => (min ?? max) !== undefined);
  if (!has_floor) return 'No floor was measured.';
  return met ? 'All floors are met.' : 'A floor is not met.';
};

/** The result as text for a terminal. */
export const printable = (
  result: Result,
  { rounds, seconds, quick }: Pick<BenchContext, 'rounds' | 'seconds' | 'quick'>,
): string => {
  const subjects = Object.entries(result.subjects);
  const disturbed = subjects.some(([, sample]) => (sample?.['others_cores'] ?? 0) > quiet_cores);
  return [
    `${result.bench}: ${result.question}`,
    `${os.cpus()[0]?.model}, ${os.availableParallelism()} cores, Node ${process.version}; ` +
      `medians of ${rounds} rounds of ${seconds} s${quick ? ' (quick)' : ''}`,
    '',
    align(['subject', ...columns.map(([, title]) => title)]),
    ...subjects.flatMap(([name, sample = {}]) => subjectLines(name, sample)),
    '',
    ...Object.entries(result.figures).map(([name, figure]) => figureLine(name, figure)),
    '',
    ...(disturbed
      ? ['Other work used the machine meanwhile (others_cores); measure again when it is quiet.']
      : []),
    verdictOf(result),
  ].join('\n');
};
