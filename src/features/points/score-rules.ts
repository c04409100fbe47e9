import type { Distribution } from './rules.js';

/**
 * The scores of a forecast after its question is resolved. Pure functions. Probabilities are 0..1.
 *
 * With the stated shares p over n options and k correct options (outcome vector o, 1/k on each of
 * them), `forecast` is the mean share on a correct option, so the even forecast has 1/n for any k.
 * All resolutions of yes/no questions and nearly all others have k = 1. Then `forecast` is the
 * probability given to the actual outcome.
 *
 * Sources: G. W. Brier, "Verification of forecasts expressed in terms of probability", 1950; the
 * one-term form is the same as in scikit-learn's `brier_score_loss`. I. J. Good, "Rational
 * decisions", 1952, for the log score. Baseline and relative score: Metaculus, "Scores FAQ".
 */

/** Answers with Brier scores contain this text. The two-term form would be twice as large. */
export const brier_convention =
  'one-term: (p - o)^2 for yes/no questions, half the sum over options for others; 0 best, 1 worst';

/** Minimum resolved predictions of an agent for a rank by accuracy, Brier score or calibration. */
export const min_resolved = 10;

/** 0 and 100 % move by one basis point, so that a sure but wrong forecast has a finite score. */
const min_share = 0.0001;
const clip = (share: number): number => Math.min(Math.max(share, min_share), 1 - min_share);

/** Returns (p − o)² for a probability of YES. `happened` is true if the outcome was YES. */
export const brier = (chance: number, happened: boolean): number =>
  (chance - (happened ? 1 : 0)) ** 2;

/** Returns half of Σ(pᵢ − oᵢ)², which is 0..1 and equals `brier` for two options. */
const brierOverOptions = (shares: readonly number[], correct: readonly number[]): number => {
  const o = 1 / correct.length;
  let sum = 0;
  for (const [index, p] of shares.entries()) sum += (p - (correct.includes(index) ? o : 0)) ** 2;
  return sum / 2;
};

/** True if `forecast` is above the even forecast. Tolerates rounding errors of an equal mean. */
export const isCorrect = (forecast: number, options: number): boolean =>
  forecast - 1 / options > 1e-12;

/** Returns ln of the share on the actual outcome, clipped to 0.0001..0.9999. 0 is best. */
export const logScore = (forecast: number): number => Math.log(clip(forecast));

/** Returns 100 · (1 + log_n p), with p clipped as in the log score. The even forecast gets 0. */
export const baselineScore = (forecast: number, options = 2): number =>
  100 * (1 + Math.log(clip(forecast)) / Math.log(options));

export interface StatedForecast {
  readonly distribution: Distribution;
  /** Distinct indices of the correct options, at least one. For yes/no, 0 is YES and 1 is NO. */
  readonly correct: readonly number[];
  readonly selected: number;
}

export interface ForecastScore {
  readonly forecast: number;
  readonly brier: number;
  readonly log_score: number;
  readonly baseline: number;
  /** The forecast gave the actual outcome a larger share than the even forecast does. */
  readonly correct: boolean;
  /** The selected side or option was correct. Calibration uses this. */
  readonly hit: boolean;
}

export const scoreForecast = ({ distribution, ...of }: StatedForecast): ForecastScore => {
  const { units, whole } = distribution;
  return scoreShares({ ...of, shares: units.map((unit) => unit / whole) });
};

/** Like `scoreForecast`, for shares that sum to 1. */
export const scoreShares = ({
  shares,
  correct,
  selected,
}: Omit<StatedForecast, 'distribution'> & {
  readonly shares: readonly number[];
}): ForecastScore => {
  if (correct.length === 0) throw new RangeError('a resolution needs a correct option');
  let hit = 0;
  for (const index of correct) {
    const share = shares[index];
    if (share === undefined) throw new RangeError(`option ${index} is not one of ${shares.length}`);
    hit += share;
  }
  const forecast = hit / correct.length;
  return {
    forecast,
    brier: brierOverOptions(shares, correct),
    log_score: logScore(forecast),
    baseline: baselineScore(forecast, shares.length),
    correct: isCorrect(forecast, shares.length),
    hit: correct.includes(selected),
  };
};

export interface Streak {
  /** Length of the run that is still going on, or 0 without one. */
  readonly current: number;
  readonly best: number;
}

/** Counts correct results in a row. Results are in the order of resolution, oldest first. */
export const streakOf = (results: readonly boolean[]): Streak => {
  let current = 0;
  let best = 0;
  for (const correct of results) {
    current = correct ? current + 1 : 0;
    best = Math.max(best, current);
  }
  return { current, best };
};

/**
 * Counts days in a row with a prediction. `days` are distinct UTC days since 1970, ascending. A run
 * still goes on if its last day is today or yesterday, because today is not over.
 */
export const dayStreakOf = (days: readonly number[], today: number): Streak => {
  let run = 0;
  let best = 0;
  let before: number | undefined;
  for (const day of days) {
    run = before !== undefined && day === before + 1 ? run + 1 : 1;
    best = Math.max(best, run);
    before = day;
  }
  return { current: before !== undefined && before >= today - 1 ? run : 0, best };
};
