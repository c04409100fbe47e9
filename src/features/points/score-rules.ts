import type { Distribution } from './rules.js';

/**
 * The scores of a forecast once its question is resolved. Pure; probabilities are 0..1.
 *
 * With the stated shares p over n options and k correct options (outcome vector o, 1/k on each of
 * them), `forecast` is the mean share on a correct option, so that the even forecast has 1/n
 * whatever k is. Every resolution of a yes/no question, and nearly every other, has k = 1: there it
 * is the probability put on what happened.
 *
 * Sources: G. W. Brier, "Verification of forecasts expressed in terms of probability", 1950; the
 * one-term form is that of scikit-learn's `brier_score_loss`. I. J. Good, "Rational decisions",
 * 1952, for the log score. Baseline and relative score: Metaculus, "Scores FAQ".
 */

/** Names the convention beside each Brier score; the two-term form would be twice this. */
export const brier_convention =
  'one-term: (p - o)^2 for yes/no questions, half the sum over options for others; 0 best, 1 worst';

/** An agent needs so many resolved predictions for its accuracy, Brier or calibration to rank. */
export const least_resolved = 10;

/** 0 and 100 % stand for anything within a basis point: one sure miss costs not everything. */
const least_share = 0.0001;
const clip = (share: number): number => Math.min(Math.max(share, least_share), 1 - least_share);

/** (p − o)² of a chance of YES, where `happened` says whether YES came about. */
export const brier = (chance: number, happened: boolean): number =>
  (chance - (happened ? 1 : 0)) ** 2;

/** Half of Σ(pᵢ − oᵢ)²: 0..1, and equal to `brier` for two options. */
const brierOverOptions = (shares: readonly number[], correct: readonly number[]): number => {
  const o = 1 / correct.length;
  let sum = 0;
  for (const [index, p] of shares.entries()) sum += (p - (correct.includes(index) ? o : 0)) ** 2;
  return sum / 2;
};

/** More than the even forecast; a mean that comes to exactly that may be above it by rounding. */
export const isCorrect = (forecast: number, options: number): boolean =>
  forecast - 1 / options > 1e-12;

/** ln of the probability put on what happened, which is clipped to 0.0001..0.9999. 0 is best. */
export const logScore = (forecast: number): number => Math.log(clip(forecast));

/** 100 · (1 + log_n p), p clipped as in the log score: 0 for the even forecast, at most 100. */
export const baselineScore = (forecast: number, options = 2): number =>
  100 * (1 + Math.log(clip(forecast)) / Math.log(options));

export interface StatedForecast {
  readonly distribution: Distribution;
  /** Indices of the correct options, each once; at least one. Yes/no: 0 is YES, 1 is NO. */
  readonly correct: readonly number[];
  readonly selected: number;
}

export interface ForecastScore {
  readonly forecast: number;
  readonly brier: number;
  readonly log_score: number;
  readonly baseline: number;
  /** More was put on what happened than the even forecast does. */
  readonly correct: boolean;
  /** The side or the option that was taken came about; calibration goes by it. */
  readonly hit: boolean;
}

export const scoreForecast = ({ distribution, ...of }: StatedForecast): ForecastScore => {
  const { units, whole } = distribution;
  return scoreShares({ ...of, shares: units.map((unit) => unit / whole) });
};

/** The same of shares that sum to 1. */
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
  /** Correct ones in a row up to the latest. */
  readonly current: number;
  readonly best: number;
}

/** Of results in the order of their resolution, the oldest first. */
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
 * Days in a row with a prediction. Days are whole UTC days since 1970, ascending, each once. The
 * row still goes on while its last day is today or yesterday: today is not over.
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
