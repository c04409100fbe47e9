import { type Static, Type } from '@sinclair/typebox';
import { nullable } from '../../http/schemas.js';
import { crps, netOfCrps, quantileOf } from '../points/cdf-rules.js';
import { meanOverTime, type Span } from '../points/time-weighting.js';
import { curveOf } from '../predictions/cdf-input.js';
import type { ForecastColumns } from '../predictions/distribution.js';
import { exactValue, type Range } from '../questions/range.js';
import { value_schema } from '../questions/schema.js';

/** Scores and payouts for numbers and dates. `x` is the outcome's place in the range, 0 to 1. */

export const number_formula =
  'net = round(100 * weight * (x^3 + (1 - x)^3 - 3 * CRPS)), CRPS weighted by time over the intervals';

interface Decided {
  readonly range: Range;
  readonly outcome_value: number;
  readonly weight: number;
}

/** `cdf` is null only for other question types. */
type Stood = Pick<Span, 'weight_ms'> & Pick<ForecastColumns, 'cdf'>;

/** Returns `x`. An outcome outside the range counts as the nearer end. */
const placeOf = ({ range: { min, max }, outcome_value }: Decided): number =>
  Math.min(1, Math.max(0, (outcome_value - min) / (max - min)));

/** Scores one or more forecasts. `hit`: the outcome is between the last forecast's quartiles. */
export const scoreNumber = (stood: readonly Stood[], decided: Decided) => {
  const x = placeOf(decided);
  const curves = stood.map(({ cdf }) => curveOf(cdf!));
  const parts = curves.map((curve) => crps(curve, x));
  const mean = meanOverTime(stood, parts)!;
  const net = netOfCrps(decided.weight, x, mean);
  const [low, high] = [0.25, 0.75].map((p) => quantileOf(curves.at(-1)!, p)) as [number, number];
  return { crps: mean, net, hit: x >= low && x <= high, correct: net > 0 };
};

export const number_payout_schema = Type.Object({
  outcome_value: value_schema,
  x: Type.Number({ description: 'Position of the outcome in the range, 0 to 1.' }),
  /** Null if no forecast is scored. */
  crps: nullable(Type.Number()),
  net: Type.Integer(),
});

/** `stood` is empty if the prediction came too late. Then the net is 0. */
export const numberPayout = (
  stood: readonly Stood[],
  decided: Decided,
): Static<typeof number_payout_schema> => {
  const score = stood.length === 0 ? null : scoreNumber(stood, decided);
  const outcome_value = exactValue(decided.outcome_value, decided.range);
  return { outcome_value, x: placeOf(decided), crps: score?.crps ?? null, net: score?.net ?? 0 };
};
