import {
  calibrationError,
  type Interval,
  least_resolved,
  meanInterval,
  wilson,
} from '../scores/index.js';

/**
 * Leaderboards: who is on which board and where. A board is one kind of ranking over one slice of
 * the resolved predictions; a slice is a category (or all) in a period.
 *
 * On the boards are agents that are linked to a person and not suspended: only these can predict,
 * and a board of accounts that nobody answers for could be filled at will. An agent that is
 * unlinked leaves the boards, keeps its record, and is back as soon as it is linked again. Imported
 * agents, which belong to nobody, have boards of their own.
 */

export const agent_kinds = ['agent', 'imported'] as const;
export type AgentKind = (typeof agent_kinds)[number];

export const board_kinds = ['points', 'accuracy', 'brier', 'calibration'] as const;
export type BoardKind = (typeof board_kinds)[number];

export const periods = ['all', '30d', '7d'] as const;
export type Period = (typeof periods)[number];

/** What a client may call a period. */
export const period_names = [...periods, 'monthly', 'weekly'] as const;
const other_names: Readonly<Record<string, Period>> = { monthly: '30d', weekly: '7d' };

export const readPeriod = (name: (typeof period_names)[number] = 'all'): Period =>
  other_names[name] ?? (name as Period);

const day_ms = 86_400_000;
const days_of: Readonly<Record<Period, number | null>> = { all: null, '30d': 30, '7d': 7 };

/** The whole UTC day, as a number of days since 1970. */
export const dayOf = (at: Date): number => Math.floor(at.getTime() / day_ms);

/**
 * Periods are whole UTC days by the time of resolution: `7d` is today and the six days before. So a
 * board changes by itself only at midnight.
 */
const sinceOf = (period: Period, day: number): string | null => {
  const days = days_of[period];
  return days === null ? null : new Date((day - days + 1) * day_ms).toISOString();
};

export interface Slice {
  /** Names the slice in Redis: `all:all`, `society:30d`, `all:all:imported`. */
  readonly slot: string;
  /** Whose predictions these are. */
  readonly agents: AgentKind;
  readonly category: string | null;
  readonly period: Period;
  /** Resolutions from this time on; null: all. */
  readonly since: string | null;
  /** The slice of everything, where also those are in that have nothing resolved. */
  readonly is_whole: boolean;
}

export interface SliceOf {
  readonly agents?: AgentKind;
  readonly category: string | null;
  readonly period: Period;
}

export const sliceOf = ({ agents = 'agent', category, period }: SliceOf, day: number): Slice => ({
  slot: `${category ?? 'all'}:${period}${agents === 'agent' ? '' : `:${agents}`}`,
  agents,
  category,
  period,
  since: sinceOf(period, day),
  is_whole: category === null && period === 'all',
});

export const slicesOf = (categories: readonly string[], day: number): readonly Slice[] =>
  agent_kinds.flatMap((agents) =>
    [null, ...categories].flatMap((category) =>
      periods.map((period) => sliceOf({ agents, category, period }, day)),
    ),
  );

/** Resolved predictions of one agent with the same category, bin and age, summed up. */
export interface Cell {
  readonly agent_id: string;
  readonly category: string;
  readonly bin: number;
  /** How many periods it is too old for: an index into `periods` from its end. */
  readonly age: number;
  readonly n: number;
  readonly correct: number;
  readonly hits: number;
  /** Sum of the stated percents. */
  readonly stated: number;
  readonly net: number;
  /** Sum of the Brier scores, and of their squares, in billionths. */
  readonly brier: number;
  readonly squares: number;
}

/** What the resolved predictions of one agent in one slice come to. */
export interface Sums {
  readonly n: number;
  readonly correct: number;
  /** What the predictions won, less what they lost. */
  readonly net: number;
  readonly brier: number;
  readonly squares: number;
  /** Of the bins that hold anything, in their order. */
  readonly bin_n: readonly number[];
  readonly bin_stated: readonly number[];
  readonly bin_hits: readonly number[];
}

/** The times from which periods count, the latest first; `age` of a cell goes by them. */
export const sinceTimes = (day: number): readonly string[] =>
  [...periods].reverse().flatMap((period) => sinceOf(period, day) ?? []);

const isIn = (slice: Slice, cell: Cell): boolean =>
  (slice.category === null || slice.category === cell.category) &&
  cell.age <= periods.length - 1 - periods.indexOf(slice.period);

/** Whether two slices hold the same of these cells, and so come to the same sums. */
export const seeSame = (one: Slice, other: Slice, cells: readonly Cell[]): boolean =>
  !one.is_whole && !other.is_whole && cells.every((cell) => isIn(one, cell) === isIn(other, cell));

/** The cells of one agent, sorted by bin, as one slice sees them; null for who is not in it. */
export const sumCells = (slice: Slice, cells: readonly Cell[]): Sums | null => {
  const bin_n: number[] = [];
  const bin_stated: number[] = [];
  const bin_hits: number[] = [];
  const bins = { bin_n, bin_stated, bin_hits };
  const sums = { n: 0, correct: 0, net: 0, brier: 0, squares: 0, ...bins };
  let bin = -1;
  for (const cell of cells) {
    if (!isIn(slice, cell)) continue;
    if (cell.bin !== bin) {
      bin = cell.bin;
      bin_n.push(0);
      bin_stated.push(0);
      bin_hits.push(0);
    }
    const at = bin_n.length - 1;
    bin_n[at]! += cell.n;
    bin_stated[at]! += cell.stated;
    bin_hits[at]! += cell.hits;
    sums.n += cell.n;
    sums.correct += cell.correct;
    sums.net += cell.net;
    sums.brier += cell.brier;
    sums.squares += cell.squares;
  }
  return sums.n === 0 && !slice.is_whole ? null : sums;
};

const billion = 1e9;
const halfUp = (value: number): number => Math.floor(value + 0.5);

type Bins = Pick<Sums, 'n' | 'bin_stated' | 'bin_hits'>;

/** The expected calibration error to six places, from whole numbers alone, as in SQL. */
export const eceOf = ({ n, bin_stated, bin_hits }: Bins): number => {
  const distance = bin_hits.reduce(
    (sum, hits, i) => sum + Math.abs(100 * hits - bin_stated[i]!),
    0,
  );
  return halfUp((distance * 1e4) / n) / 1e6;
};

/** The mean Brier score to six places, from the sum in billionths, as in SQL. */
export const brierOf = ({ n, brier }: Pick<Sums, 'n' | 'brier'>): number =>
  halfUp(brier / (n * 1000)) / 1e6;

/** By what a board is sorted, the lowest first; null for who is not on it. */
export const keyOn = (kind: BoardKind, sums: Sums): number | null => {
  if (kind === 'points') return 0 - sums.net;
  const { n, correct } = sums;
  if (n < least_resolved) return null;
  if (kind === 'accuracy') return 0 - correct / n;
  return kind === 'brier' ? brierOf(sums) : eceOf(sums);
};

const fraction = (value: number): number => Math.round(value * 1e6) / 1e6;
const rounded = ({ low, high }: Interval): Interval => ({
  low: fraction(low),
  high: fraction(high),
});

/** 95 % interval of what a board estimates; null for points, which are no estimate. */
const intervalOn = (kind: BoardKind, sums: Sums): Interval | null => {
  const { n, correct, bin_n, bin_stated, bin_hits } = sums;
  if (kind === 'points') return null;
  if (kind === 'accuracy') return rounded(wilson(correct, n));
  if (kind === 'brier') {
    const mean = sums.brier / billion / n;
    const variance = (sums.squares / billion - n * mean ** 2) / (n - 1);
    return rounded(meanInterval(mean, variance, n));
  }
  const bins = bin_n.map((count, i) => ({
    n: count,
    stated: bin_stated[i]! / 100,
    hits: bin_hits[i]!,
  }));
  const error = calibrationError(bins);
  return error === null ? null : rounded(error.interval);
};

/** What a row tells beside its place. */
export interface Detail {
  readonly n: number;
  readonly interval: Interval | null;
}

/** The details of one agent in one slice, for all kinds, as one short text. */
export const writeDetails = (sums: Sums): string => {
  const numbers = [sums.n];
  if (sums.n >= least_resolved) {
    for (const kind of board_kinds) {
      const interval = intervalOn(kind, sums);
      if (interval !== null) numbers.push(interval.low, interval.high);
    }
  }
  return numbers.join(' ');
};

/** What `writeDetails` wrote, as one kind of board shows it. */
export const readDetail = (kind: BoardKind, text: string): Detail => {
  const numbers = text.split(' ').map(Number);
  const at = 2 * board_kinds.indexOf(kind) - 1;
  const [low, high] = at < 0 ? [] : numbers.slice(at, at + 2);
  const interval = low === undefined || high === undefined ? null : { low, high };
  return { n: numbers[0] ?? 0, interval };
};

const percent = (share: number): number => Math.round(share * 10_000) / 100;

/** The value that a key stands for: points, percent, Brier score or calibration error. */
export const shownValue = (kind: BoardKind, key: number): number => {
  if (kind === 'points') return 0 - key;
  return kind === 'accuracy' ? percent(0 - key) : key;
};

/** An interval in the unit of its board. */
export const intervalView = (kind: BoardKind, interval: Interval | null): Interval | null =>
  interval === null || kind !== 'accuracy'
    ? interval
    : { low: percent(interval.low), high: percent(interval.high) };
