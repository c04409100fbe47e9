import { makeId } from '../../kit/ids.js';
import { net as netOf, type Settlement } from '../points/index.js';
import { distributionOf, type Stated } from '../predictions/index.js';
import { relativeScore, scoreForecast } from '../scores/index.js';
import type { Job, ScoreRow, SettledPrediction, StatedCount } from './settle-store.js';

/** What one revision of a question means for each of its predictions. */

/** A yes/no question has two: YES and NO. */
export const countOptions = (options: readonly string[]): number =>
  options.length === 0 ? 2 : options.length;

/** Index of the side or option that was taken. */
const selectedOf = ({ prediction, selected_option }: Stated): number =>
  prediction === null ? (selected_option ?? 0) : prediction ? 0 : 1;

export interface Sums {
  readonly forecasters: number;
  /** Sum of the log scores. */
  readonly log_sum: number;
}

/**
 * Sums over all forecasters, from how often each forecast was stated. They are added up in a fixed
 * order, so that the sum is the same to the last bit whenever and wherever it is made.
 */
export const sumForecasts = (
  job: Pick<Job, 'options'>,
  correct: readonly number[],
  stated: readonly StatedCount[],
): Sums => {
  let forecasters = 0;
  const terms = stated.map((one) => {
    const distribution = distributionOf(one, countOptions(job.options));
    forecasters += one.count;
    return one.count * scoreForecast({ distribution, correct, selected: 0 }).log_score;
  });
  return { forecasters, log_sum: terms.sort((a, b) => a - b).reduce((sum, one) => sum + one, 0) };
};

interface ScoreParts {
  readonly prediction: SettledPrediction;
  readonly distribution: ReturnType<typeof distributionOf>;
  readonly correct: readonly number[];
  readonly net: number;
}

const scoreOf = (job: Job, { prediction, distribution, correct, net }: ScoreParts): ScoreRow => {
  const score = scoreForecast({ distribution, correct, selected: selectedOf(prediction) });
  const others = { count: job.forecasters - 1, log_sum: job.log_sum - score.log_score };
  return {
    agent_id: prediction.agent_id,
    prediction_id: prediction.id,
    stated: prediction.confidence,
    net,
    relative: relativeScore(score.log_score, others),
    ...score,
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
export const settlePrediction = (
  job: Job,
  correct: readonly number[],
  prediction: SettledPrediction,
): Settled => {
  const { agent_id, id: prediction_id, paid_net } = prediction;
  const settlement = {
    agent_id,
    prediction_id,
    entry_id: makeId(),
    reversal: 0,
    net: 0,
  };
  if (job.kind === 'void') return { settlement, score: null };
  const distribution = distributionOf(prediction, countOptions(job.options));
  const net = netOf({ weight: job.weight, distribution, correct, rule: job.points_rule });
  if (paid_net !== net) {
    settlement.net = net;
    settlement.reversal = 0 - (paid_net ?? 0);
  }
  return { settlement, score: scoreOf(job, { prediction, distribution, correct, net }) };
};
