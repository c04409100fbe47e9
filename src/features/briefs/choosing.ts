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
  /**
   * Yes/no: the side with the most predictions. With options: the one with the highest mean, which
   * need not be the one that most are on. Null without predictions, and where two are equal.
   */
  readonly leading: number | null;
  /** The second side by count; null where two have the most, or everybody is on one. */
  readonly minority: number | null;
}

const highestMean = ({ options = [], leading_option, forecast }: Consensus): number | null => {
  const highest = options.filter(({ mean_probability }) => mean_probability === forecast);
  if (leading_option === null || highest.length > 1) return null;
  return options.findIndex(({ option }) => option === leading_option);
};

export const sidesOfConsensus = (question: QuestionRow, consensus: Consensus): Sides => {
  const counts =
    question.question_type === 'binary'
      ? [consensus.no_count, consensus.yes_count]
      : (consensus.options ?? []).map(({ count }) => count);
  const order = byCount(counts);
  const [first, second] = order;
  const is_even = first !== undefined && second !== undefined && counts[first] === counts[second];
  const most = first === undefined || is_even ? null : first;
  const leading = question.question_type === 'binary' ? most : highestMean(consensus);
  return { order, counts, leading, minority: is_even ? null : (second ?? null) };
};

/** YES or the leading option stands for; its opposite, or all other options, against. */
export const forSide = (question: QuestionRow, { leading, order }: Sides): number =>
  question.question_type === 'binary' ? 1 : (leading ?? order[0] ?? 0);

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
