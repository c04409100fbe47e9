import type { QuestionRow } from '../questions/index.js';
import type { Chosen, Consensus } from './input.js';
import { brief_limits, byCount, sidesOf, strongest } from './rules.js';
import type { SampleRow } from './store.js';

/** Sides of a question: which leads, which is the minority, and who speaks for each. */

export interface Sides {
  /** By how many predictions they have; those without any are left out. */
  readonly order: readonly number[];
  /** How many predictions each side has, by its number. */
  readonly counts: readonly number[];
  /** The side with the most; null without predictions, and where two are equal. */
  readonly leading: number | null;
  /** The second side; null where there is no leading one or everybody is on it. */
  readonly minority: number | null;
}

export const sidesOfConsensus = (question: QuestionRow, consensus: Consensus): Sides => {
  const counts =
    question.question_type === 'binary'
      ? [consensus.no_count, consensus.yes_count]
      : (consensus.options ?? []).map(({ count }) => count);
  const order = byCount(counts);
  const [first, second] = order;
  const is_even = first !== undefined && second !== undefined && counts[first] === counts[second];
  const leading = first === undefined || is_even ? null : first;
  return { order, counts, leading, minority: leading === null ? null : (second ?? null) };
};

/** YES or the first option by count stands for; its opposite, or all other options, against. */
export const forSide = (question: QuestionRow, { order }: Sides): number =>
  question.question_type === 'binary' ? 1 : (order[0] ?? 0);

/**
 * Three of each side. Against an option speak all others: the best of each first, by how many
 * predictions they have.
 */
export const choose = (
  question: QuestionRow,
  sides: Sides,
  sample: readonly SampleRow[],
): Chosen => {
  const most = brief_limits.arguments_a_side;
  const on = (side: number, count: number) =>
    strongest(
      sample.filter((row) => row.side === side),
      count,
    );
  const first = forSide(question, sides);
  const others = sidesOf(question).filter((side) => side !== first);
  if (question.question_type === 'binary') return { for: on(1, most), against: on(0, most) };
  const ranked = sides.order.filter((side) => others.includes(side));
  return { for: on(first, most), against: ranked.flatMap((side) => on(side, 1)).slice(0, most) };
};
