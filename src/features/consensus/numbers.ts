import { type Curve, quantilesOf, sharesBelow } from '../points/cdf-rules.js';
import { curveOf } from '../predictions/cdf-input.js';
import { exactValue, type RangeColumns, showValue } from '../questions/range.js';
import type { Value } from '../questions/schema.js';
import { mix, type Weights } from './mixture.js';

/**
 * The consensus of forecasts of a number or a date. It is computed in two ways. In both, all
 * forecasts have equal weights:
 *
 *   quantile average   at each level of probability, the mean of the values stated for it
 *                      (Vincent averaging; R. Ratcliff, "Group reaction time distributions", 1979)
 *   linear pool        at each value, the mean of the probabilities (M. Stone, "The opinion pool",
 *                      1961). It is wider, because it reflects how much the forecasters disagree
 *
 * The headline is the median of a mixture of the two: at 201 evenly spaced values of the range, the
 * weighted mean of their probabilities (`mixture.ts`).
 *
 * Each forecast is converted to whole numbers, so that sums are exact. These are the probabilities
 * at 201 evenly spaced values of the range, in units of 1e-10, and the values at 1, 2, … 99 %, in
 * units of 1e-10 of the range. Between these points a forecast is linear. Sums of 900,000 forecasts
 * are still exact in a JavaScript number.
 */

const grid = 200;
const levels = 99;
/** Number of units in a probability of 1, and in the whole range. */
export const units = 1e10;

/** Length of the array that `givenByCdf` returns. */
export const number_parts = grid + 1 + levels;

const grid_values = Array.from({ length: grid + 1 }, (_, n) => n / grid);
const level_shares = Array.from({ length: levels }, (_, n) => (n + 1) / 100);

export const givenByCdf = (cdf: readonly number[]): readonly number[] => {
  const curve = curveOf(cdf);
  const given = [...sharesBelow(curve, grid_values), ...quantilesOf(curve, level_shares)];
  return given.map((part) => Math.round(units * part));
};

type Ends = Pick<RangeColumns, 'range_min' | 'range_max'>;
type NumberShape = Ends & { readonly question_type: string };

/** Index of the median in the array that `givenByCdf` returns. */
export const median_part = grid + 50;

/** Returns whether a question asks for a number or a date. */
export const isNumber = ({ range_min }: Pick<Ends, 'range_min'>): boolean => range_min !== null;

/** Returns the conversion of summed units to a mean value. Null without forecasts or a range. */
const unitsOf = ({ range_min: min, range_max: max }: NumberShape, count: number) =>
  min === null || max === null || count === 0
    ? null
    : (part: number): number => min + (part / (units * count)) * (max - min);

/** Converts a value to percent of the range. */
export const placeOf = ({ range_min, range_max }: Ends, value: number): number =>
  (100 * (value - range_min!)) / (range_max! - range_min!);

/** Percentiles that a fan chart and a consensus show. */
export const fan_levels = [5, 25, 50, 75, 95] as const;
const fan_shares = fan_levels.map((level) => level / 100);

/** Returns the quantile average at `fan_levels`. `sums` are the sums over `count` forecasts. */
export const fanOf = (
  shape: NumberShape,
  sums: readonly number[],
  count: number,
): readonly number[] | null => {
  const toUnits = unitsOf(shape, count);
  return toUnits && fan_levels.map((level) => toUnits(sums[grid + level] ?? 0));
};

const rangeIn = ({ question_type, range_min, range_max }: NumberShape) => {
  return { is_date: question_type === 'date', min: range_min!, max: range_max! };
};

export const showFan = (shape: NumberShape, fan: readonly number[]) => {
  const range = rangeIn(shape);
  const show = (n: number): Value => showValue(fan[n]!, range);
  return { p5: show(0), p25: show(1), p50: show(2), p75: show(3), p95: show(4) };
};

/**
 * Returns the quantile average as a distribution on the range scaled to 0–1. It ends where it first
 * reaches the upper end of the range, because the rest of the probability is beyond that end.
 */
const averageCurve = (sums: readonly number[], count: number): Curve => {
  const points = sums.slice(grid + 1).map((sum, n) => {
    return { x: sum / (units * count), f: (n + 1) / 100 };
  });
  const all = [{ x: 0, f: 0 }, ...points, { x: 1, f: 1 }];
  return all.slice(0, all.findIndex(({ x }) => x >= 1) + 1);
};

/** Returns the linear pool as a distribution on the range scaled to 0–1. */
const poolCurve = (sums: readonly number[], count: number): Curve =>
  sums.slice(0, grid + 1).map((sum, n) => ({ x: n / grid, f: sum / (units * count) }));

/** Returns the candidates of the headline, in the order of `number_candidates`. */
export const numberCandidates = (sums: readonly number[], count: number): readonly Curve[] => [
  averageCurve(sums, count),
  poolCurve(sums, count),
];

/** Returns the mixture of curves. With one curve, it is that curve. */
export const mixCurves = (curves: readonly Curve[], weights: readonly number[]): Curve => {
  const shares = mix(
    curves.map((curve) => sharesBelow(curve, grid_values)),
    weights,
  );
  return shares.map((f, n) => ({ x: n / grid, f }));
};

/** Returns the headline's values at `fan_levels`. Null without forecasts or a range. */
export const headlineFan = (
  shape: NumberShape,
  {
    sums,
    count,
    weights,
  }: { readonly sums: readonly number[]; readonly count: number; readonly weights: Weights | null },
): readonly number[] | null => {
  const toUnits = unitsOf(shape, count);
  if (toUnits === null || weights === null) return fanOf(shape, sums, count);
  const mixture = mixCurves(numberCandidates(sums, count), weights.number);
  return quantilesOf(mixture, fan_shares).map((value) => toUnits(units * count * value));
};

/** Returns the members of the API response. Probabilities are in percent. */
export const numberConsensus = (shape: NumberShape, sums: readonly number[], count: number) => {
  const toUnits = unitsOf(shape, count);
  if (toUnits === null) return null;
  const range = rangeIn(shape);
  const curve = poolCurve(sums, count);
  const pooled = quantilesOf(curve, fan_shares).map((value) => toUnits(units * count * value));
  const percent = (f: number): number => Math.round(f * 1e6) / 1e4;
  return {
    quantile_average: {
      ...showFan(shape, fanOf(shape, sums, count)!),
      quantiles: sums.slice(grid + 1).map((sum) => showValue(toUnits(sum), range)),
    },
    linear_pool: {
      ...showFan(shape, pooled),
      min: exactValue(range.min, range),
      max: exactValue(range.max, range),
      cdf: curve.map(({ f }) => percent(f)),
    },
  };
};
