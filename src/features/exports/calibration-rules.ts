import { type Bin, calibrationError, logScore, wilson } from '../scores/index.js';

/**
 * Calibration of one group, from how often each whole percent was stated and came about. Pure.
 *
 * With N forecasts f, outcomes o (1 or 0), their means f_k and o_k in bin k of n_k, and the mean
 * outcome ō:
 *
 *   Brier       = Σ (f − o)² / N
 *   reliability = Σ n_k (f_k − o_k)² / N
 *   resolution  = Σ n_k (o_k − ō)² / N
 *   uncertainty = ō (1 − ō)
 *   within_bins = Σ ((f − f_k)² − 2 (f − f_k)(o − o_k)) / N
 *
 * and Brier = reliability − resolution + uncertainty + within_bins. The last term is 0 where a bin
 * holds one forecast only, which is the case A. H. Murphy considered.
 *
 * Sources: A. H. Murphy, "A new vector partition of the probability score", 1973. D. B.
 * Stephenson, C. A. S. Coelho and I. T. Jolliffe, "Two extra components in the Brier score
 * decomposition", 2008.
 */

export interface StatedCell {
  /** Whole percent, 0 to 100. */
  readonly value: number;
  readonly n: number;
  readonly hits: number;
}

export interface CalibrationBin {
  readonly from: number;
  readonly to: number;
  readonly n: number;
  readonly mean_forecast: number | null;
  readonly frequency: number | null;
  /** Wilson's 95 % interval of the frequency. */
  readonly low: number | null;
  readonly high: number | null;
}

export interface Calibration {
  readonly n: number;
  readonly brier: number;
  readonly log_score: number;
  readonly ece: number;
  readonly mce: number;
  readonly reliability: number;
  readonly resolution: number;
  readonly uncertainty: number;
  readonly within_bins: number;
  readonly bins: readonly CalibrationBin[];
}

/** Nine places: more than the data carry, fewer than the order of a sum could change. */
const rounded = (value: number): number => Math.round(value * 1e9) / 1e9;

/** Whole percents, so that no boundary is a matter of rounding; the last bin holds 100 too. */
const binOf = (value: number, count: number): number =>
  Math.min(Math.floor((value * count) / 100), count - 1);

const sumUp = (cells: readonly StatedCell[]): Bin => {
  let n = 0;
  let percents = 0;
  let hits = 0;
  for (const cell of cells) {
    n += cell.n;
    percents += cell.n * cell.value;
    hits += cell.hits;
  }
  return { n, stated: percents / 100, hits };
};

/** Of one bin: Σ (f − f_k)² − 2 (f − f_k)(o − o_k). */
const withinBin = (cells: readonly StatedCell[], { n, stated, hits }: Bin): number => {
  let sum = 0;
  for (const cell of cells) {
    const off = cell.value / 100 - stated / n;
    sum += cell.n * off ** 2 - 2 * off * (cell.hits - (cell.n * hits) / n);
  }
  return sum;
};

const showBin = ({ n, stated, hits }: Bin, index: number, count: number): CalibrationBin => {
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
    brier += hits * (100 - value) ** 2 + (n - hits) * value ** 2;
    log_score += hits * logScore(value / 100) + (n - hits) * logScore(1 - value / 100);
  }
  return { brier: rounded(brier / 1e4 / total), log_score: rounded(log_score / total) };
};

/** Null for a group without forecasts. */
export const calibrate = (cells: readonly StatedCell[], count: number): Calibration | null => {
  const sorted = Array.from({ length: count }, (_, index) =>
    cells.filter(({ value }) => binOf(value, count) === index),
  );
  const bins = sorted.map(sumUp);
  const all = sumUp(cells);
  const error = calibrationError(bins);
  if (error === null) return null;
  const base = all.hits / all.n;
  let reliability = 0;
  let resolution = 0;
  let within_bins = 0;
  for (const [index, bin] of bins.entries()) {
    const { n, stated, hits } = bin;
    if (n === 0) continue;
    reliability += (stated - hits) ** 2 / n;
    resolution += n * (hits / n - base) ** 2;
    within_bins += withinBin(sorted[index] ?? [], bin);
  }
  return {
    n: all.n,
    ...scoresOf(cells, all.n),
    ece: rounded(error.ece),
    mce: rounded(error.mce),
    reliability: rounded(reliability / all.n),
    resolution: rounded(resolution / all.n),
    uncertainty: rounded(base * (1 - base)),
    within_bins: rounded(within_bins / all.n),
    bins: bins.map((bin, index) => showBin(bin, index, count)),
  };
};
