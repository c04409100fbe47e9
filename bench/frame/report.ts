import type { Floor } from './floors.js';
import type { Machine } from './machine.js';
import type { Missing, Sample, Summaries } from './types.js';

/** What `--json FILE` holds. */
export interface Result {
  readonly bench: string;
  readonly question: string;
  readonly machine: Machine;
  readonly rounds: number;
  readonly seconds: number;
  readonly quick: boolean;
  /** Other work used the machine while it was measured. */
  readonly disturbed: boolean;
  readonly subjects: Summaries;
  readonly missing: readonly Missing[];
  readonly ratios: Readonly<Record<string, number | null>>;
  readonly floors: Readonly<Record<string, Floor>>;
  readonly met: boolean;
}

/** Columns in this order; further figures follow in the order in which subjects name them. */
const columns: readonly (readonly [name: string, title: string, digits: number])[] = [
  ['per_second', 'per second', 0],
  ['p50_ms', 'p50 ms', 2],
  ['p99_ms', 'p99 ms', 2],
  ['rss_mb', 'RSS MB', 0],
  ['cpu_cores', 'CPU cores', 2],
];

export const formatNumber = (value: number, digits: number): string =>
  value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });

const pad = (rows: readonly (readonly string[])[]): string[] => {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
      .join('  ')
      .trimEnd(),
  );
};

const known = new Set(columns.map(([name]) => name));

const extras = (sample: Sample): string =>
  Object.entries(sample)
    .filter(([name]) => !known.has(name))
    .map(([name, value]) => `${name} ${formatNumber(value, value >= 100 ? 0 : 2)}`)
    .join(', ');

const subjectLines = (subjects: Summaries): string[] => {
  const used = columns.filter(([name]) =>
    Object.values(subjects).some((sample) => sample?.[name] !== undefined),
  );
  const head = ['subject', ...used.map(([, title]) => title)];
  const rows = Object.entries(subjects).map(([name, sample]) => [
    name,
    ...used.map(([key, , digits]) => {
      const value = sample?.[key];
      return value === undefined ? '–' : formatNumber(value, digits);
    }),
  ]);
  const [title = '', ...lines] = pad([head, ...rows]);
  const names = Object.values(subjects);
  return [
    title,
    ...lines.flatMap((line, i) => {
      const more = extras(names[i] ?? {});
      return more === '' ? [line] : [line, `    ${more}`];
    }),
  ];
};

const floorText = (floor: Floor | undefined): string => {
  if (floor === undefined) return '';
  const bound = floor.min === undefined ? `at most ${floor.max}` : `at least ${floor.min}`;
  return `  ${floor.met ? 'met' : 'NOT MET'}: ${bound}`;
};

/** From this many cores of other work on, figures of one machine are not its own any more. */
const quiet_cores = 0.25;

export const isDisturbed = (subjects: Summaries): boolean =>
  Object.values(subjects).some((sample) => (sample?.['others_cores'] ?? 0) > quiet_cores);

const verdictOf = ({ floors, met }: Result): string => {
  if (Object.keys(floors).length === 0) return 'No floor was measured.';
  return met ? 'All floors are met.' : 'A floor is not met.';
};

/** The result as lines for a terminal. */
export const printable = (result: Result): readonly string[] => {
  const names = [...new Set([...Object.keys(result.ratios), ...Object.keys(result.floors)])];
  const width = Math.max(0, ...names.map((name) => name.length));
  const { machine } = result;
  return [
    `${result.bench}: ${result.question}`,
    `${machine.cpu}, ${machine.cores} cores, Node ${machine.node}; ` +
      `medians of ${result.rounds} rounds of ${result.seconds} s${result.quick ? ' (quick)' : ''}`,
    '',
    ...subjectLines(result.subjects),
    ...result.missing.map(({ name, why }) => `${name}: not measured. ${why}`),
    '',
    ...names.map((name) => {
      const value = result.ratios[name] ?? result.floors[name]?.value ?? null;
      const shown = value === null ? '–' : formatNumber(value, 2);
      return `${name.padEnd(width)}  ${shown.padStart(8)}${floorText(result.floors[name])}`;
    }),
    '',
    ...(result.disturbed
      ? ['Other work used the machine meanwhile (others_cores); measure again when it is quiet.']
      : []),
    verdictOf(result),
  ];
};
