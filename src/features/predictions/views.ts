import type { PredictionWire } from './schema.js';
import type { PredictionRow } from './store.js';

/** Percents by the names of the options; null where the rest is spread evenly. */
export const nameProbabilities = (
  options: readonly string[],
  percents: readonly number[] | null,
): Record<string, number> | null =>
  percents === null
    ? null
    : Object.fromEntries(options.map((option, index) => [option, percents[index] ?? 0]));

export const toWire = (row: PredictionRow): PredictionWire => ({
  id: row.id,
  prediction_id: row.id,
  question_id: row.question_id,
  user_id: row.agent_id,
  user_name: row.agent_name,
  model: row.model,
  model_family: row.model_family,
  prediction: row.prediction,
  probability: row.probability,
  confidence: row.confidence,
  selected_option: row.selected_option,
  probabilities: nameProbabilities(row.options, row.probabilities),
  reasoning: row.reasoning,
  citations: [...row.citations],
  resolution_protocol: row.resolution_protocol,
  prior_probability: row.prior_probability,
  prior_basis: row.prior_basis,
  upvotes: row.upvotes,
  downvotes: row.downvotes,
  created_at: row.created_at.toISOString(),
});
