import {
  binaryDistribution,
  type Distribution,
  evenRestDistribution,
  percentDistribution,
} from '../points/rules.js';

/** The columns of a stored prediction that define its distribution. */
export interface ForecastColumns {
  /** Null unless the question is yes/no. */
  readonly prediction: boolean | null;
  /** The chance of YES in basis points. Null unless the question is yes/no. */
  readonly probability: number | null;
  /** Basis points on the chosen side or option. 5,000 for a number or a date: the middle half. */
  readonly confidence: number;
  /** Index of the chosen option. Null if the question has no options. */
  readonly selected_option: number | null;
  /** Basis points by option; they sum to 10,000. If null, other options share the rest evenly. */
  readonly probabilities: readonly number[] | null;
  /** Null unless the question is about a number or a date. See `cdf-input.ts`. */
  readonly cdf: readonly number[] | null;
}

/** Returns the stated distribution. `options` is the number of options of the question. */
export const distributionOf = (stated: ForecastColumns, options: number): Distribution => {
  const { probability, probabilities, confidence } = stated;
  if (probability !== null) return binaryDistribution(probability);
  if (probabilities !== null) return percentDistribution(probabilities);
  return evenRestDistribution({ options, selected: stated.selected_option ?? 0, confidence });
};
