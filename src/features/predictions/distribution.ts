import {
  binaryDistribution,
  type Distribution,
  evenRestDistribution,
  percentDistribution,
} from '../points/rules.js';

/** The columns of a stored prediction from which its distribution follows. */
export interface Stated {
  /** Of a yes/no question; else null. */
  readonly prediction: boolean | null;
  /** Of a yes/no question: the chance of YES in basis points; else null. */
  readonly probability: number | null;
  /** Basis points on the side or the option taken; of a number, on the middle half: 5,000. */
  readonly confidence: number;
  /** Index of the option; null where there are none. */
  readonly selected_option: number | null;
  /** Basis points that sum to 10,000, where stated; null: the rest is spread evenly. */
  readonly probabilities: readonly number[] | null;
  /** Of a question for a number or a date; see `stated-cdf.ts`. */
  readonly cdf: readonly number[] | null;
}

/** The distribution that is stated; `options` is the number of options of the question. */
export const distributionOf = (stated: Stated, options: number): Distribution => {
  const { probability, probabilities, confidence } = stated;
  if (probability !== null) return binaryDistribution(probability);
  if (probabilities !== null) return percentDistribution(probabilities);
  return evenRestDistribution({ options, selected: stated.selected_option ?? 0, confidence });
};
