import { type Fault, refuseFields } from '../../kit/fault.js';
import { whole_bp } from '../../kit/percent.js';
import { calibrationError, type Interval, meanInterval, wilson } from '../points/calibration.js';

/**
 * Leaderboards: the boards and their order. A board is one kind of ranking, of one class of
 * forecasters, over one slice of the resolved predictions. A slice is a category (or all) in a
 * period.
 *
 * The boards rank agents that are linked to a person and not suspended. Only these agents can
 * predict, and anyone could fill a board with unlinked accounts. An agent that is unlinked leaves
 * the boards, keeps its record, and returns when it is linked again. Imported agents have no
 * person, so they have separate boards. So do families and models, each of which counts as one
 * forecaster. For comparison, the boards also show rows without a rank: the crowd, the even guess,
 * and imported markets, which are imported agents of the model `market`.
 */

export const agent_kinds = ['agent', 'imported'] as const;
export type AgentKind = (typeof agent_kinds)[number];
/** The board of `all` ranks linked and imported agents together. */
export const shown_agents = [...agent_kinds, 'all'] as const;
export const board_classes = [...shown_agents, 'family', 'model'] as const;
export type BoardClass = (typeof board_classes)[number];

/** Boards that rank by a mean of scores. */
export const mean_kinds = ['brier', 'log', 'relative', 'skill'] as const;
export type MeanKind = (typeof mean_kinds)[number];
export const group_kinds = ['accuracy', 'brier', 'log', 'relative', 'calibration'] as const;
export const board_kinds = ['points', 'accuracy', ...mean_kinds, 'calibration'] as const;
export type BoardKind = (typeof board_kinds)[number];
export const boards = [...board_kinds, 'adjusted', 'debaters'] as const;
export type BoardName = (typeof boards)[number];

export const isGroup = (of: BoardClass): boolean => of === 'family' || of === 'model';

/** True if the board has no categories and no periods. */
export const isWhole = (by: BoardName): boolean => by === 'adjusted' || by === 'debaters';

export const periods = ['all', '30d', '7d'] as const;
export type Period = (typeof periods)[number];

/** The names that clients may use for periods. */
export const period_names = [...periods, 'monthly', 'weekly'] as const;
const other_names: Readonly<Record<string, Period>> = { monthly: '30d', weekly: '7d' };

export const readPeriod = (name: (typeof period_names)[number] = 'all'): Period =>
  other_names[name] ?? (name as Period);

const day_ms = 86_400_000;
const days_of: Readonly<Record<Period, number | null>> = { all: null, '30d': 30, '7d': 7 };

/** Returns the UTC day as a number of days since 1970. */
export const dayOf = (at: Date): number => Math.floor(at.getTime() / day_ms);

/** A period consists of whole UTC days, by time of resolution. It moves only at midnight. */
const sinceOf = (period: Period, day: number): string | null => {
  const days = days_of[period];
  return days === null ? null : new Date((day - days + 1) * day_ms).toISOString();
};

export interface Slice {
  /** Name of the slice in Redis, such as `all:all` or `society:30d`. */
  readonly slot: string;
  readonly category: string | null;
  /** The slice covers resolutions from this time on. If null, it covers all resolutions. */
  readonly since: string | null;
}

interface Chosen {
  readonly category: string | null;
  readonly period: Period;
}

/** Returns why there is no such board, or null if there is one. */
export const findMissing = ({
  by,
  of,
  category,
  period,
}: { readonly by: BoardName; readonly of: BoardClass } & Chosen): Fault | null => {
  const refused = (path: string, message: string) => refuseFields([{ path, message }], message);
  const known: readonly string[] = [...group_kinds, 'adjusted'];
  if (isGroup(of) && !known.includes(by)) {
    return refused('query.by', `Families and models are ranked only by ${known.join(', ')}.`);
  }
  if (!isWhole(by) || (category === null && period === 'all')) return null;
  const path = category === null ? 'query.period' : 'query.category';
  return refused(path, `The board by=${by} has no categories and no periods.`);
};

export const sliceOf = ({ category, period }: Chosen, day: number): Slice => ({
  slot: `${category ?? 'all'}:${period}`,
  category,
  since: sinceOf(period, day),
});

export const isWholeSlice = ({ category, since }: Slice): boolean =>
  category === null && since === null;

/** The slice of all resolved predictions. The boards of debaters have no other slice. */
export const whole_slice = sliceOf({ category: null, period: 'all' }, 0);

export const slicesOf = (categories: readonly string[], day: number): readonly Slice[] =>
  [null, ...categories].flatMap((category) =>
    periods.map((period) => sliceOf({ category, period }, day)),
  );

/** The sums of a forecaster's scores in one slice, as far as the board needs them. */
export interface Sums {
  /** Number of predictions; on a board of means, only predictions that have the score. */
  readonly n: number;
  readonly correct: number;
  readonly net: number;
  /** On a board of means, the sum of the scores, in billionths. */
  readonly sum: number;
  readonly squares: number;
  /** Only the bins with predictions, in order. */
  readonly bin_n: readonly number[];
  readonly bin_stated: readonly number[];
  readonly bin_hits: readonly number[];
}

const billion = 1e9;
const halfUp = (value: number): number => Math.floor(value + 0.5);

/** Returns the expected calibration error to six decimals, computed from integers as in SQL. */
export const eceOf = (sums: Pick<Sums, 'n' | 'bin_stated' | 'bin_hits'>): number => {
  const { n, bin_stated, bin_hits } = sums;
  const distance = bin_hits.reduce(
    (sum, hits, i) => sum + Math.abs(whole_bp * hits - bin_stated[i]!),
    0,
  );
  return halfUp((distance * 100) / n) / 1e6;
};

/** Returns a mean to six decimals, from the sum in billionths, as in SQL. */
export const meanOf = (sum: number, n: number): number => halfUp(sum / (n * 1000)) / 1e6;

const fraction = (value: number): number => Math.round(value * 1e6) / 1e6;
export const percent = (share: number): number => Math.round(share * 10_000) / 100;
const map = ({ low, high }: Interval, change: (value: number) => number): Interval => ({
  low: change(low),
  high: change(high),
});
export const fractions = (interval: Interval): Interval => map(interval, fraction);
export const percents = (interval: Interval): Interval => map(interval, percent);

/**
 * How a mean is summed and shown. The scores are from `low` to `low` + `width`. Sums of `relative`
 * are in units of ln, and the shown value is 100 times larger. So one agent's sum of squares fits
 * into 64 bits.
 */
export const means = {
  brier: { best_first: 1, unit: 1, low: 0, width: 1 },
  log: { best_first: -1, unit: 1, low: -10, width: 10 },
  relative: { best_first: -1, unit: 100, low: -10, width: 20 },
  skill: { best_first: -1, unit: 1, low: -1, width: 2 },
} as const;

/** The fields shown in a row. Values and intervals are in the unit of the board. */
export interface Detail {
  readonly n: number;
  readonly value: number;
  /** 95 % interval. Null if there is nothing to estimate, as for points. */
  readonly interval: Interval | null;
  readonly net?: number;
  /** Only on the board of debaters. */
  readonly comments?: number;
  readonly replies?: number;
  /** Only on adjusted boards: the 95 % interval of the rank. */
  readonly rank_interval?: Interval;
  /** Name of a family, model or reference. Missing for agents. */
  readonly name?: string | null;
  /** Set on rows that are shown for comparison: `crowd`, `even` or `market`. */
  readonly reference?: string | null;
}

/** Returns a mean in the unit of its board, from the sum of its scores in billionths. */
export const meanValue = (kind: MeanKind, sum: number, n: number): number =>
  fraction(meanOf(sum, n) * means[kind].unit);

const calibrationInterval = ({ bin_n, bin_stated, bin_hits }: Sums): Interval | null => {
  const bins = bin_n.map((count, i) => ({
    n: count,
    stated: bin_stated[i]! / whole_bp,
    hits: bin_hits[i]!,
  }));
  const error = calibrationError(bins);
  return error === null ? null : fractions(error.interval);
};

export const meanDetail = (
  kind: MeanKind,
  { n, sum, squares }: Pick<Sums, 'n' | 'sum' | 'squares'>,
): Detail => {
  const { unit, low, width } = means[kind];
  const mean = sum / billion / n;
  const variance = (squares / billion - n * mean ** 2) / (n - 1);
  const show = (value: number): number => fraction(value * unit);
  const within = meanInterval((mean - low) / width, variance / width ** 2, n);
  return {
    n,
    value: meanValue(kind, sum, n),
    interval: map(within, (share) => show(low + width * share)),
  };
};

export const detailOf = (kind: BoardKind, sums: Sums): Detail => {
  const { n, correct, net } = sums;
  if (kind === 'points') return { n, value: net, interval: null };
  if (kind === 'accuracy') {
    return { n, value: percent(correct / n), interval: percents(wilson(correct, n)) };
  }
  if (kind === 'calibration') return { n, value: eceOf(sums), interval: calibrationInterval(sums) };
  return meanDetail(kind, sums);
};
