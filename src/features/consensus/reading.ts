import type { QuestionRow } from '../questions/index.js';
import { showOutcome } from '../questions/range.js';
import type { Value } from '../questions/schema.js';

/** Reads a computed consensus: its headline as a chance, and whether it was right. */

/** The members of a consensus that are read here. */
interface Computed {
  readonly total_predictions: number;
  readonly forecast: Value | null;
  readonly leading_option: string | null;
  /** Only for a number or a date. */
  readonly headline?: { readonly p5: Value; readonly p95: Value };
}

type Outcome = Pick<
  QuestionRow,
  'status' | 'question_type' | 'outcome' | 'correct_options' | 'outcome_value'
>;

/** Rounds to two decimals; halves are rounded up. */
export const shown = (value: number): number => Math.round(Math.round(value * 1e9) / 1e7) / 100;

/** Returns the headline in percent; null without forecasts, and for a number or a date. */
export const chanceIn = ({
  forecast,
  headline,
}: Pick<Computed, 'forecast' | 'headline'>): number | null =>
  typeof forecast === 'number' && headline === undefined ? forecast : null;

const numberOf = (value: Value): number => (typeof value === 'number' ? value : Date.parse(value));

/**
 * Returns whether the consensus was on the right side. For a number or a date: whether its 90 %
 * interval contained the outcome. Null without an outcome or a forecast, and at exactly 50 %.
 */
export const crowdWasRight = (question: Outcome, consensus: Computed): boolean | null => {
  const { leading_option, headline } = consensus;
  if (question.status !== 'resolved' || consensus.total_predictions === 0) return null;
  const value = showOutcome(question);
  if (value !== null) {
    if (headline === undefined) return null;
    const { p5, p95 } = headline;
    return numberOf(p5) <= numberOf(value) && numberOf(value) <= numberOf(p95);
  }
  if (question.question_type !== 'binary') {
    return leading_option === null
      ? null
      : question.correct_options?.includes(leading_option) === true;
  }
  const chance = chanceIn(consensus);
  return chance === null || chance === 50 ? null : chance > 50 === question.outcome;
};

interface Breakdown {
  readonly question_type: string;
  readonly model_breakdown: readonly {
    readonly model_family: string;
    readonly mean_probability: number | null;
    readonly option_probabilities?: readonly (number | null)[];
  }[];
}

/**
 * Returns a family's mean chance of each outcome, in percent: one number for a yes/no question,
 * otherwise one for each option. Null if the family has not forecast all of them.
 */
export const statedBy = (consensus: Breakdown, family: string): readonly number[] | null => {
  const row = consensus.model_breakdown.find(({ model_family }) => model_family === family);
  if (row === undefined) return null;
  if (consensus.question_type === 'binary') {
    return row.mean_probability === null ? null : [row.mean_probability];
  }
  const stated = row.option_probabilities ?? [];
  return stated.length === 0 || stated.includes(null) ? null : (stated as readonly number[]);
};
