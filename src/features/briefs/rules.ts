import type { Consensus } from '../consensus/rules.js';
import { readCitation } from '../predictions/citations.js';
import type { QuestionRow } from '../questions/index.js';
import { showOutcome, valueText } from '../questions/range.js';
import type { Brief } from './schema.js';

/** Ranks the sides of a question and chooses its arguments and sources. */

export const brief_limits = {
  /** Number of newest predictions read for a brief, besides the most upvoted predictions. */
  newest: 1_000,
  voted_a_side: 20,
  arguments_a_side: 3,
  shared_sources: 5,
  disputes: 5,
  quote: 420,
  short_quote: 280,
} as const;

const hour_ms = 3_600_000;

/**
 * Returns the hour from which time windows are counted back. This is the current hour, or the first
 * full hour after the question stopped taking predictions. So time alone changes a brief at most
 * once an hour.
 */
export const hourOf = (now: Date, ended_at: Date | null): Date => {
  const present = Math.floor(now.getTime() / hour_ms);
  const end = ended_at === null ? present : Math.ceil(ended_at.getTime() / hour_ms);
  return new Date(Math.min(present, end) * hour_ms);
};

export type Shape = Pick<QuestionRow, 'question_type' | 'options'>;

export const positionOf = ({ question_type, options }: Shape, side: number): string =>
  question_type === 'binary' ? (side === 1 ? 'YES' : 'NO') : (options[side] ?? 'the median');

export type Decided = Pick<
  QuestionRow,
  | 'question_type'
  | 'outcome'
  | 'correct_options'
  | 'outcome_value'
  | 'unit'
  | 'range_min'
  | 'range_max'
>;

/** Returns YES, NO, the correct options or the value. Null if there is no outcome yet. */
export const outcomeText = (row: Decided): string | null => {
  const { outcome, correct_options } = row;
  const value = showOutcome(row);
  if (value !== null) return valueText(value, row);
  return outcome === null ? (correct_options?.join(' | ') ?? null) : outcome ? 'YES' : 'NO';
};

export const thousandth = (value: number): number => Math.round(value * 1e3) / 1e3;

export const sidesOf = ({ question_type, options }: Shape): readonly number[] =>
  question_type === 'binary' ? [1, 0] : options.length === 0 ? [0] : [...options.keys()];

/** Sides are numbers: 1 for YES and 0 for NO, or the index of the option. */
export interface Sides {
  /** Sides that have predictions, sorted by their number of predictions, most first. */
  readonly order: readonly number[];
  readonly counts: readonly number[];
  /**
   * For yes/no, the side with the most predictions. For options, the option with the highest
   * headline, which may not have the most predictions. Null if there are no predictions or two sides tie.
   */
  readonly leading: number | null;
  /** The side with the second most predictions. Null if there is none or the first two tie. */
  readonly minority: number | null;
  /** YES or the leading option. Arguments and figures are about this side. */
  readonly first: number;
}

/** Returns the option with the highest headline. Null for numbers and dates, or if options tie. */
const highestOption = ({ options = [], leading_option, forecast }: Consensus): number | null => {
  const highest = options.filter((one) => one.forecast === forecast);
  if (leading_option === null || highest.length > 1) return null;
  return options.findIndex(({ option }) => option === leading_option);
};

export const rankSides = ({ question_type }: Shape, consensus: Consensus): Sides => {
  const is_binary = question_type === 'binary';
  const counts = is_binary
    ? [consensus.no_count, consensus.yes_count]
    : (consensus.options ?? []).map(({ count }) => count);
  const countOf = (side: number): number => counts[side] ?? 0;
  const order = [...counts.keys()]
    .filter((side) => countOf(side) > 0)
    .sort((a, b) => countOf(b) - countOf(a) || a - b);
  const [most = null, second = null] = order;
  const is_even = most !== null && second !== null && countOf(most) === countOf(second);
  const leading = is_binary ? (is_even ? null : most) : highestOption(consensus);
  const first = is_binary ? 1 : (leading ?? most ?? 0);
  return { order, counts, leading, minority: is_even ? null : second, first };
};

export interface SampleRow {
  readonly id: string;
  readonly agent_id: string;
  readonly owner: string;
  readonly model_family: string;
  readonly side: number;
  readonly confidence: number;
  readonly upvotes: number;
  readonly downvotes: number;
  readonly citations: readonly string[];
  /** Length of the reasoning in bytes. */
  readonly length: number;
  readonly created_at: Date;
}

/** Sources and length beyond these limits do not count as stronger support. */
const max_sources = 5;
const max_length = 3_000;

/** Sorts by votes, then by support, then by age with the oldest first. */
const compare = (a: SampleRow, b: SampleRow): number =>
  b.upvotes - b.downvotes - (a.upvotes - a.downvotes) ||
  Math.min(b.citations.length, max_sources) - Math.min(a.citations.length, max_sources) ||
  Math.min(b.length, max_length) - Math.min(a.length, max_length) ||
  (a.id < b.id ? -1 : 1);

/**
 * Returns the strongest arguments, strongest first. Skips predictions that cite fewer than two
 * pages, which only imported predictions can do. Owners who are not quoted yet come first, then
 * model families that are not quoted yet.
 */
const strongest = (rows: readonly SampleRow[], most: number): readonly SampleRow[] => {
  const left = rows.filter(({ citations }) => citations.length >= 2).sort(compare);
  const chosen: SampleRow[] = [];
  const isNew = (key: 'owner' | 'model_family') => (row: SampleRow) =>
    chosen.every((one) => one[key] !== row[key]);
  while (chosen.length < most && left.length > 0) {
    const other_owner = left.findIndex(isNew('owner'));
    const other = other_owner === -1 ? left.findIndex(isNew('model_family')) : other_owner;
    chosen.push(...left.splice(Math.max(0, other), 1));
  }
  return chosen;
};

export interface Chosen<R> {
  readonly for: readonly R[];
  readonly against: readonly R[];
}

/**
 * Chooses up to three arguments for a side and three against it. Against an option, it takes the
 * best argument for each other option, starting with the option that has the most predictions.
 */
export const chooseArguments = (
  { question_type }: Shape,
  { first, order }: Sides,
  sample: readonly SampleRow[],
): Chosen<SampleRow> => {
  const most = brief_limits.arguments_a_side;
  const on = (side: number, count: number) =>
    strongest(
      sample.filter((row) => row.side === side),
      count,
    );
  const others = order.filter((side) => side !== first).flatMap((side) => on(side, 1));
  return {
    for: on(first, most),
    against: question_type === 'binary' ? on(0, most) : others.slice(0, most),
  };
};

interface Page {
  readonly url: string;
  count: number;
  readonly families: Set<string>;
  readonly sides: Map<number, number>;
}

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Counts the pages that the predictions cite, and lists the pages that several of them cite. */
export const sourcesOf = (question: Shape, sample: readonly SampleRow[]): Brief['sources'] => {
  const pages = new Map<string, Page>();
  for (const { citations, model_family, side } of sample) {
    const cited = new Map(citations.map((url) => [readCitation(url).key, url]));
    for (const [key, url] of cited) {
      const page = pages.get(key) ?? { url, count: 0, families: new Set(), sides: new Map() };
      pages.set(key, page);
      page.count += 1;
      page.families.add(model_family);
      page.sides.set(side, (page.sides.get(side) ?? 0) + 1);
    }
  }
  const shared = [...pages.values()]
    .filter(({ count }) => count > 1)
    .sort((a, b) => b.count - a.count || compareText(a.url, b.url));
  return {
    looked_at: sample.length,
    distinct: pages.size,
    unique: pages.size - shared.length,
    shared: shared
      .slice(0, brief_limits.shared_sources)
      .map(({ url, count, families, sides }) => ({
        url,
        predictions: count,
        families: families.size,
        positions: [...sides]
          .sort((a, b) => b[1] - a[1] || b[0] - a[0])
          .map(([side, predictions]) => ({ position: positionOf(question, side), predictions })),
      })),
  };
};
