import { whole_bp } from '../../kit/percent.js';
import { type Bin, calibrationError, wilson } from '../points/calibration.js';
import { logScore } from '../points/score-rules.js';

/**
 * Computes the calibration of one group: how often events happened that were given each
 * probability. Pure.
 *
 * With N forecasts f, outcomes o (1 or 0), their means f_k and o_k in bin k of n_k forecasts, and
 * the mean outcome ō:
 *
 *   Brier       = Σ (f − o)² / N
 *   reliability = Σ n_k (f_k − o_k)² / N
 *   resolution  = Σ n_k (o_k − ō)² / N
 *   uncertainty = ō (1 − ō)
 *
 * Brier = reliability − resolution + uncertainty is exact if all forecasts in a bin are equal, and
 * close otherwise. Source: A. H. Murphy, "A new vector partition of the probability score", 1973.
 */

export interface StatedCell {
  /** Probability in basis points. */
  readonly value: number;
  readonly n: number;
  readonly hits: number;
}

/** Nine decimals are more than the data justify, and few enough to hide the order of summation. */
const rounded = (value: number): number => Math.round(value * 1e9) / 1e9;

/** Uses whole numbers, so that rounding cannot move a boundary. The last bin includes 100 %. */
const binOf = (value: number, count: number): number =>
  Math.min(Math.floor((value * count) / whole_bp), count - 1);

const sumUp = (cells: readonly StatedCell[]): Bin => {
  let n = 0;
  let sum = 0;
  let hits = 0;
  for (const cell of cells) {
    n += cell.n;
    sum += cell.n * cell.value;
    hits += cell.hits;
  }
  return { n, stated: sum / whole_bp, hits };
};

const showBin = ({ n, stated, hits }: Bin, index: number, count: number) => {
  const { low, high } = wilson(hits, n);
  return {
    from: rounded(index / count),
    to: rounded((index + 1) / count),
    n,
    mean_forecast: n === 0 ? null : rounded(stated / n),
    frequency: n === 0 ? null : rounded(hits / n),
    low: n === 0 ? null : rounded(low),
    high: n === 0 ? null : rounded(high),
  };
};

const scoresOf = (cells: readonly StatedCell[], total: number) => {
  let brier = 0;
  let log_score = 0;
  for (const { value, n, hits } of cells) {
    brier += hits * (whole_bp - value) ** 2 + (n - hits) * value ** 2;
    log_score += hits * logScore(value / whole_bp) + (n - hits) * logScore(1 - value / whole_bp);
  }
  return { brier: rounded(brier / whole_bp ** 2 / total), log_score: rounded(log_score / total) };
};

/** Returns null for a group without forecasts. */
export const calibrate = (cells: readonly StatedCell[], count: number) => {
  const bins = Array.from({ length: count }, (_, index) =>
    sumUp(cells.filter(({ value }) => binOf(value, count) === index)),
  );
  const all = sumUp(cells);
  const error = calibrationError(bins);
  if (error === null) return null;
  const base = all.hits / all.n;
  let reliability = 0;
  let resolution = 0;
  for (const { n, stated, hits } of bins) {
    if (n === 0) continue;
    reliability += (stated - hits) ** 2 / n;
    resolution += n * (hits / n - base) ** 2;
  }
  return {
    n: all.n,
    ...scoresOf(cells, all.n),
    ece: rounded(error.ece),
    reliability: rounded(reliability / all.n),
    resolution: rounded(resolution / all.n),
    uncertainty: rounded(base * (1 - base)),
    bins: bins.map((bin, index) => showBin(bin, index, count)),
  };
};
export type Calibration = NonNullable<ReturnType<typeof calibrate>>;
