import {
  type Distribution,
  net as netOf,
  type PointsRule,
  points_rule,
  termsOf,
} from '../points/index.js';

/** What a forecast earns, worked out so that whoever reads it can do the sum again. */

export const formulas: Readonly<Record<PointsRule, string>> = {
  1: 'net = round(100 * weight * (1 - B / U))',
  2: 'net = round(100 * weight * (U - B) / (1 - 1/n))',
};

/** Of a yes/no question, in the order of its distribution. */
export const optionNames = (options: readonly string[]): readonly string[] =>
  options.length === 0 ? ['YES', 'NO'] : options;

export interface Forecasted {
  readonly names: readonly string[];
  readonly weight: number;
  readonly distribution: Distribution;
  /** The one that holds now, if absent. */
  readonly rule?: PointsRule;
}

/** Twelve digits: as exact as anybody can check, and 0.64 instead of 0.6400000000000001. */
export const roundShare = (value: number): number => Number(value.toFixed(12));

export interface Payout {
  readonly correct: string[];
  /** 1/k on each of the k correct options. */
  readonly outcome_vector: number[];
  readonly b: number;
  readonly u: number;
  readonly net: number;
}

export const payoutOf = (forecast: Forecasted, correct: readonly number[]): Payout => {
  const { names, weight, distribution, rule = points_rule } = forecast;
  const { outcome, b, u } = termsOf(distribution, correct);
  return {
    correct: correct.map((index) => names[index] ?? ''),
    outcome_vector: outcome.map(roundShare),
    b: roundShare(b),
    u: roundShare(u),
    net: netOf({ weight, distribution, correct, rule }),
  };
};

/** One for each option being the only right one. */
export const payoutsOf = (forecast: Forecasted): Payout[] =>
  forecast.names.map((_, index) => payoutOf(forecast, [index]));

export const sharesOf = ({ names, distribution: { units, whole } }: Forecasted) =>
  names.map((option, index) => ({ option, p: roundShare((units[index] ?? 0) / whole) }));

/** What the forecast earns on average if it is right about the chances, before rounding. */
export const expectedNet = ({ weight, distribution: { units, whole } }: Forecasted): number => {
  const n = units.length;
  const squares = units.reduce((sum, unit) => sum + (unit / whole) ** 2, 0);
  // Σ pᵢ·(U − B(i))/U with B(i) = Σp² − 2pᵢ + 1 and U = 1 − 1/n.
  return Number((100 * weight * (1 - (1 - squares) / (1 - 1 / n))).toFixed(2));
};
