import { type PointsRule, points_rule } from '../points/rules.js';
import { type QuestionTimes, type ScoringTime, scoringTime } from '../points/time-weighting.js';
import { distributionOf, type ForecastColumns } from '../predictions/distribution.js';

/** Stated forecasts in the form that scoring needs, and the time for which they are scored. */

/** A forecast as it was stated, and its time. */
export interface ForecastAt extends ForecastColumns {
  readonly revision: number;
  readonly at_ms: number;
}

export const toTimed = (one: ForecastAt, n_options: number) => {
  const { prediction, selected_option, confidence: stated, at_ms, revision } = one;
  const selected = prediction === null ? (selected_option ?? 0) : prediction ? 0 : 1;
  return { distribution: distributionOf(one, n_options), selected, stated, at_ms, revision };
};

/** Before revisions existed, a decision paid for every prediction, even for a late one. */
export const scoringTimeOf = (
  decided: QuestionTimes & { readonly points_rule: PointsRule | null },
  forecasts: readonly { readonly at_ms: number }[],
): ScoringTime => {
  const time = scoringTime(decided);
  if ((decided.points_rule ?? points_rule) === points_rule) return time;
  return { ...time, ends_ms: Math.max(time.ends_ms, forecasts.at(-1)!.at_ms), is_known: false };
};
