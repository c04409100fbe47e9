import { whole_bp } from '../../kit/percent.js';
import { calibrationError, type Interval, meanInterval, wilson } from '../points/index.js';

/**
 * Leaderboards: the boards and their order. A board is one kind of ranking over one slice of
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
export const boards = [...board_kinds, 'debaters'] as const;
export type BoardName = (typeof boards)[number];

export const periods = ['all', '30d', '7d'] as const;
export type Period = (typeof periods)[number];

/** The names that clients may use for periods. */
export const period_names = [...periods, 'monthly', 'weekly'] as const;
const other_names: Readonly<Record<string, Period>> = { monthly: '30d', weekly: '7d' };

export const readPeriod = (name: (typeof period_names)[number] = 'all'): Period =>
  other_names[name] ?? (name as Period);

const day_ms = 86_400_000;
const days_of: Readonly<Record<Period, number | null>> = { all: null, '30d': 30, '7d': 7 };

/** The whole UTC day, as a number of days since 1970. */
export const dayOf = (at: Date): number => Math.floor(at.getTime() / day_ms);

/** Whole UTC days by the time of resolution, so a board changes by itself only at midnight. */
const sinceOf = (period: Period, day: number): string | null => {
  const days = days_of[period];
  return days === null ? null : new Date((day - days + 1) * day_ms).toISOString();
};

export interface Slice {
  /** Names the slice in Redis: `all:all`, `society:30d`. */
  readonly slot: string;
  readonly category: string | null;
  /** Resolutions from this time on; null: all. */
  readonly since: string | null;
}

interface Chosen {
  readonly category: string | null;
  readonly period: Period;
}

export const sliceOf = ({ category, period }: Chosen, day: number): Slice => ({
  slot: `${category ?? 'all'}:${period}`,
  category,
  since: sinceOf(period, day),
});

/** Of everything; the boards of debaters have no other. */
export const whole_slice = sliceOf({ category: null, period: 'all' }, 0);

export const slicesOf = (categories: readonly string[], day: number): readonly Slice[] =>
  [null, ...categories].flatMap((category) =>
    periods.map((period) => sliceOf({ category, period }, day)),
  );

/** The sums of the resolved predictions of one agent in one slice. */
export interface Sums {
  readonly n: number;
  readonly correct: number;
  readonly net: number;
  readonly brier: number;
  readonly squares: number;
  /** Of the bins that hold anything, in their order. */
  readonly bin_n: readonly number[];
  readonly bin_stated: readonly number[];
  readonly bin_hits: readonly number[];
}

const billion = 1e9;
const halfUp = (value: number): number => Math.floor(value + 0.5);

/** The expected calibration error to six places, from whole numbers alone, as in SQL. */
export const eceOf = (sums: Pick<Sums, 'n' | 'bin_stated' | 'bin_hits'>): number => {
  const { n, bin_stated, bin_hits } = sums;
  const distance = bin_hits.reduce(
    (sum, hits, i) => sum + Math.abs(whole_bp * hits - bin_stated[i]!),
    0,
  );
  return halfUp((distance * 100) / n) / 1e6;
};

/** The mean Brier score to six places, from the sum in billionths, as in SQL. */
export const brierOf = ({ n, brier }: Pick<Sums, 'n' | 'brier'>): number =>
  halfUp(brier / (n * 1000)) / 1e6;

const fraction = (value: number): number => Math.round(value * 1e6) / 1e6;
export const percent = (share: number): number => Math.round(share * 10_000) / 100;
export const fractions = ({ low, high }: Interval): Interval => ({
  low: fraction(low),
  high: fraction(high),
});
export const percents = ({ low, high }: Interval): Interval => ({
  low: percent(low),
  high: percent(high),
});

/** 95 % interval of the estimate of a board; null for points, which are no estimate. */
const intervalOn = (kind: BoardKind, sums: Sums): Interval | null => {
  const { n, correct, bin_n, bin_stated, bin_hits } = sums;
  if (kind === 'points') return null;
  if (kind === 'accuracy') return fractions(wilson(correct, n));
  if (kind === 'brier') {
    const mean = sums.brier / billion / n;
    const variance = (sums.squares / billion - n * mean ** 2) / (n - 1);
    return fractions(meanInterval(mean, variance, n));
  }
  const bins = bin_n.map((count, i) => ({
    n: count,
    stated: bin_stated[i]! / whole_bp,
    hits: bin_hits[i]!,
  }));
  const error = calibrationError(bins);
  return error === null ? null : fractions(error.interval);
};

export interface Detail {
  readonly n: number;
  readonly interval: Interval | null;
  /** On the board of debaters. */
  readonly comments?: number;
  readonly replies?: number;
}

export const detailOf = (kind: BoardKind, sums: Sums): Detail => ({
  n: sums.n,
  interval: intervalOn(kind, sums),
});

/** The value behind a key: points, upvotes, percent, Brier score, calibration error. */
export const shownValue = (kind: BoardName, key: number): number => {
  if (kind === 'points' || kind === 'debaters') return 0 - key;
  return kind === 'accuracy' ? percent(0 - key) : key;
};

export const intervalView = (kind: BoardName, interval: Interval | null): Interval | null =>
  interval === null || kind !== 'accuracy' ? interval : percents(interval);
