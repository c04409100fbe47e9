import { net as netOf, relativeScore, type Settlement, scoreForecast } from '../points/index.js';
import { distributionOf, type Stated } from '../predictions/index.js';
import { correctIndices, countOptions } from './rules.js';
import type { Job, ScoreRow, SettledPrediction, StatedCount } from './settle-store.js';

/** What one revision of a question means for each of its predictions. */

/** Index of the side or option that was taken. */
const selectedOf = ({ prediction, selected_option }: Stated): number =>
  prediction === null ? (selected_option ?? 0) : prediction ? 0 : 1;

/**
 * How many forecast, and the sum of their log scores; added up in a fixed order, so that the sum is
 * the same to the last bit whenever and wherever it is made.
 */
export const sumForecasts = (
  job: Pick<Job, 'options' | 'outcome' | 'correct_options'>,
  stated: readonly StatedCount[],
) => {
  const correct = correctIndices(job, job.options);
  const terms = stated.map((one) => {
    const distribution = distributionOf(one, countOptions(job.options));
    return one.count * scoreForecast({ distribution, correct, selected: 0 }).log_score;
  });
  return {
    forecasters: stated.reduce((sum, { count }) => sum + count, 0),
    log_sum: terms.sort((a, b) => a - b).reduce((sum, one) => sum + one, 0),
  };
};

export interface Settled {
  readonly settlement: Settlement;
  /** None for a voided question. */
  readonly score: ScoreRow | null;
}

/**
 * The net; where an earlier revision paid something else, that is reversed first. What it paid
 * already, to the point, moves nothing: the score alone gets the new revision.
 */
export const settlePrediction = (job: Job, prediction: SettledPrediction): Settled => {
  const { agent_id, id: prediction_id, confidence: stated, paid_net } = prediction;
  const nothing = { agent_id, prediction_id, reversal: 0, net: 0 };
  if (job.kind === 'void') return { settlement: nothing, score: null };
  const correct = correctIndices(job, job.options);
  const distribution = distributionOf(prediction, countOptions(job.options));
  const net = netOf({ weight: job.weight, distribution, correct, rule: job.points_rule });
  const settlement =
    paid_net === net ? nothing : { ...nothing, net, reversal: 0 - (paid_net ?? 0) };
  const score = scoreForecast({ distribution, correct, selected: selectedOf(prediction) });
  const others = { count: job.forecasters - 1, log_sum: job.log_sum - score.log_score };
  const relative = relativeScore(score.log_score, others);
  return { settlement, score: { agent_id, prediction_id, stated, net, relative, ...score } };
};
