/**
 * Calibration: how well stated probabilities agree with outcomes. Forecasts are sorted into bins of
 * equal width over 0..1. A boundary belongs to the bin above it, and 1 belongs to the last bin.
 * Empty bins are left out.
 *
 * Sources: M. P. Naeini et al., "Obtaining well calibrated probabilities using Bayesian binning",
 * 2015, for ECE and MCE. E. B. Wilson, "Probable inference, the law of succession, and statistical
 * inference", 1927.
 */

/** The 97.5 % quantile of the normal distribution: 95 % of it lies within ± z deviations. */
export const z = 1.959963984540054;

export interface Interval {
  readonly low: number;
  readonly high: number;
}

/** Returns Wilson's 95 % interval of the share `hits / n`. If n is 0, it is 0..1. */
export const wilson = (hits: number, n: number): Interval => {
  if (n === 0) return { low: 0, high: 1 };
  const share = hits / n;
  const under = 1 + z ** 2 / n;
  const middle = (share + z ** 2 / (2 * n)) / under;
  const half = (z / under) * Math.sqrt((share * (1 - share)) / n + z ** 2 / (4 * n ** 2));
  return {
    low: hits === 0 ? 0 : Math.max(0, middle - half),
    high: hits === n ? 1 : Math.min(1, middle + half),
  };
};

/** Returns a mean's 95 % interval within 0..1, from its standard error. If n < 2, it is 0..1. */
export const meanInterval = (mean: number, variance: number, n: number): Interval => {
  if (n < 2) return { low: 0, high: 1 };
  const half = z * Math.sqrt(Math.max(variance, 0) / n);
  return { low: Math.max(0, mean - half), high: Math.min(1, mean + half) };
};

export interface Bin {
  readonly n: number;
  readonly stated: number;
  readonly hits: number;
}

export const bin_count = 10;

export interface CalibrationError {
  /** Mean distance between stated and observed, weighted by the number of forecasts per bin. */
  readonly ece: number;
  readonly mce: number;
  /**
   * 95 % interval of the ECE, from the variance of each bin's frequency alone (delta method): with
   * f as the centre of Wilson's interval, the variance is Σ (n_b / N)² · f(1 − f) / n_b. This is an
   * approximation. With few forecasts the ECE itself is too large.
   */
  readonly interval: Interval;
}

export const calibrationError = (bins: readonly Bin[]): CalibrationError | null => {
  let total = 0;
  for (const { n } of bins) total += n;
  if (total === 0) return null;
  let ece = 0;
  let mce = 0;
  let variance = 0;
  for (const { n, stated, hits } of bins) {
    if (n === 0) continue;
    const distance = Math.abs(hits - stated) / n;
    const frequency = (hits + z ** 2 / 2) / (n + z ** 2);
    ece += (n / total) * distance;
    mce = Math.max(mce, distance);
    variance += ((n / total) ** 2 * frequency * (1 - frequency)) / n;
  }
  const half = z * Math.sqrt(variance);
  const interval = { low: Math.max(0, ece - half), high: Math.min(1, ece + half) };
  return { ece, mce, interval };
};
