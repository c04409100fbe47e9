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
const brierOverOptions = ({ units, whole }: Distribution, correct: ReadonlySet<number>): number => {
  let sum = 0;
  for (const [index, unit] of units.entries()) {
    sum += (unit / whole - (correct.has(index) ? 1 / correct.size : 0)) ** 2;
  }
  return sum / 2;
};

/** ln of the probability put on what happened, which is clipped to 0.0001..0.9999. 0 is best. */
export const logScore = (forecast: number): number => Math.log(clip(forecast));

/** 100 · (1 + log_n p), p clipped as in the log score: 0 for the even forecast, at most 100. */
export const baselineScore = (forecast: number, options = 2): number =>
  100 * (1 + Math.log(clip(forecast)) / Math.log(options));

/** The others who predicted on the same question: how many, and the sum of their log scores. */
export interface Others {
  readonly count: number;
  readonly log_sum: number;
}

/** 100 · (own log score − mean of the others); null when alone. They sum to 0. */
export const relativeScore = (log_score: number, others: Others): number | null =>
  others.count === 0 ? null : 100 * (log_score - others.log_sum / others.count);

export interface StatedForecast {
  readonly distribution: Distribution;
  /** Indices of the correct options, at least one. Yes/no: 0 is YES, 1 is NO. */
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

export const scoreForecast = (stated: StatedForecast): ForecastScore => {
  const { units, whole } = stated.distribution;
  const correct = new Set(stated.correct);
  if (correct.size === 0) throw new RangeError('a resolution needs a correct option');
  let hit_units = 0;
  for (const index of correct) {
    const unit = units[index];
    if (unit === undefined) throw new RangeError(`option ${index} is not one of ${units.length}`);
    hit_units += unit;
  }
  const forecast = hit_units / (whole * correct.size);
  return {
    forecast,
    brier: brierOverOptions(stated.distribution, correct),
    log_score: logScore(forecast),
    baseline: baselineScore(forecast, units.length),
    // In whole numbers, so that a share of exactly 1/n is never above it by rounding.
    correct: hit_units * units.length > whole * correct.size,
    hit: correct.has(stated.selected),
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
