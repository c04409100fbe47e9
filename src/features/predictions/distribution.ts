import {
  binaryDistribution,
  type Distribution,
  evenRestDistribution,
  percentDistribution,
} from '../points/rules.js';

/** The columns of a stored prediction from which its distribution follows. */
export interface ForecastColumns {
  /** For a yes/no question; else null. */
  readonly prediction: boolean | null;
  /** For a yes/no question: the chance of YES in basis points; else null. */
  readonly probability: number | null;
  /** Basis points on the chosen side or option. For a number always 5,000, on the middle half. */
  readonly confidence: number;
  /** Index of the option; null if the question has none. */
  readonly selected_option: number | null;
  /** Basis points that sum to 10,000. Null if not stated: then the rest is spread evenly. */
  readonly probabilities: readonly number[] | null;
  /** For a question about a number or a date; see `cdf-input.ts`. */
  readonly cdf: readonly number[] | null;
}

/** The distribution that is stated; `options` is the number of options of the question. */
export const distributionOf = (stated: ForecastColumns, options: number): Distribution => {
  const { probability, probabilities, confidence } = stated;
  if (probability !== null) return binaryDistribution(probability);
  if (probabilities !== null) return percentDistribution(probabilities);
  return evenRestDistribution({ options, selected: stated.selected_option ?? 0, confidence });
};
