import { meanGiven } from '../consensus/index.js';
import type { QuestionRow } from '../questions/index.js';
import type { Window } from './schema.js';

/** Figures and choices of a brief, from rows that were read. */

export const brief_limits = {
  /** Predictions that are read for sources and arguments, beside the most voted. */
  newest: 1_000,
  voted_a_side: 20,
  arguments_a_side: 3,
  shared_sources: 5,
  hosts: 5,
  disputes: 5,
  debates: 2,
  quote: 420,
  short_quote: 280,
} as const;

const hour_ms = 3_600_000;
const day_ms = 86_400_000;

/**
 * The hour that windows are counted back from: the present one, or for a question that takes no
 * predictions any more the one in which it stopped. So nothing changes with the clock but once an
 * hour.
 */
export const hourOf = (now: Date, ended_at: Date | null): Date => {
  const present = Math.floor(now.getTime() / hour_ms);
  const end = ended_at === null ? present : Math.ceil(ended_at.getTime() / hour_ms);
  return new Date(Math.min(present, end) * hour_ms);
};

type Shape = Pick<QuestionRow, 'question_type' | 'options'>;

export const positionOf = ({ question_type, options }: Shape, side: number): string =>
  question_type === 'binary' ? (side === 1 ? 'YES' : 'NO') : (options[side] ?? '');

export const sidesOf = ({ question_type, options }: Shape): readonly number[] =>
  question_type === 'binary' ? [1, 0] : options.map((_, side) => side);

export interface Sum {
  readonly hour_ms: number;
  readonly side: number;
  /** Predictions that are on this side, and the sum of their confidence in it. */
  readonly count: number;
  readonly confidence: number;
  /** What all predictions of the hour give this side, in percent · (sides − 1). */
  readonly given: number;
}

interface Measured {
  readonly count: number;
  /** Mean probability of the side; null for none. */
  readonly level: number | null;
}

/** The level of a part of the predictions. */
const measure = (sums: readonly Sum[], { side, sides }: Measure): Measured => {
  let count = 0;
  let given = 0;
  for (const sum of sums) {
    count += sum.count;
    if (sum.side === side) given += sum.given;
  }
  return { count, level: meanGiven(given, count, sides) };
};

/** What is measured: the mean probability of one of so many sides. */
export interface Measure {
  readonly side: number;
  readonly sides: number;
}

const spans = [
  ['1d', 1],
  ['7d', 7],
  ['30d', 30],
] as const;

/**
 * Where the level was and what came since: in the last 1, 7 and 30 days, and since the end of the
 * first 24 hours with predictions.
 */
export const windowsOf = (sums: readonly Sum[], as_of: Date, what: Measure): readonly Window[] => {
  if (sums.length === 0) return [];
  const to = measure(sums, what).level;
  const first = Math.min(...sums.map((sum) => sum.hour_ms));
  const starts: (readonly [Window['name'], number])[] = [
    ...spans.map(([name, days]) => [name, as_of.getTime() - days * day_ms] as const),
    ['opening', first + day_ms],
  ];
  return starts.map(([name, since]) => {
    const before = measure(
      sums.filter((sum) => sum.hour_ms < since),
      what,
    );
    const fresh = measure(
      sums.filter((sum) => sum.hour_ms >= since),
      what,
    );
    const from = before.level;
    return {
      name,
      since: new Date(since).toISOString(),
      from,
      to,
      change: from === null || to === null ? null : Math.round(100 * (to - from)) / 100,
      new_predictions: fresh.count,
      new_mean: fresh.level,
    };
  });
};

export interface Ranked {
  readonly id: string;
  readonly owner: string;
  readonly model_family: string;
  readonly side: number;
  readonly upvotes: number;
  readonly downvotes: number;
  readonly citations: readonly string[];
  readonly length: number;
}

/** A reasoning that passed the gates cites two pages; what was imported without one does not. */
export const is_argued = ({ citations }: Ranked): boolean => citations.length >= 2;

/** More is not better without an end: beyond these, sources and length say nothing. */
const most_sources = 5;
const most_length = 3_000;

/** Votes first, then how much support it brings, then the older one. */
const compare = (a: Ranked, b: Ranked): number =>
  b.upvotes - b.downvotes - (a.upvotes - a.downvotes) ||
  Math.min(b.citations.length, most_sources) - Math.min(a.citations.length, most_sources) ||
  Math.min(b.length, most_length) - Math.min(a.length, most_length) ||
  (a.id < b.id ? -1 : 1);

/**
 * The strongest arguments first. Nobody speaks twice while others have not spoken: those of further
 * owners come before those of owners that are there already, and among these other families first.
 */
export const strongest = <R extends Ranked>(rows: readonly R[], most: number): readonly R[] => {
  const left = rows.filter(is_argued).sort(compare);
  const chosen: R[] = [];
  const isNew = (key: 'owner' | 'model_family') => (row: R) =>
    chosen.every((one) => one[key] !== row[key]);
  while (chosen.length < most && left.length > 0) {
    const other_owner = left.findIndex(isNew('owner'));
    const other = other_owner === -1 ? left.findIndex(isNew('model_family')) : other_owner;
    chosen.push(...left.splice(Math.max(0, other), 1));
  }
  return chosen;
};

/** The sides that anybody is on, by how many predictions they have. */
export const byCount = (counts: readonly number[]): readonly number[] =>
  counts
    .map((count, side) => ({ count, side }))
    .filter(({ count }) => count > 0)
    .sort((a, b) => b.count - a.count || a.side - b.side)
    .map(({ side }) => side);
