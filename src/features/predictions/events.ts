import type { Static } from '@sinclair/typebox';
import { makeId } from '../../kit/ids.js';
import type { prediction_placed } from '../events/index.js';
import type { Composed } from './placing.js';
import type { NewPrediction } from './placing-store.js';
import type { StatedForecast } from './stated.js';
import { nameProbabilities } from './store.js';

export interface PlacedParts {
  readonly id: string;
  readonly at: Date;
  readonly question: { readonly id: string; readonly options: readonly string[] };
  readonly agent: { readonly id: string; readonly name: string; readonly model_family: string };
  readonly stated: StatedForecast;
  readonly rest: Pick<
    NewPrediction,
    | 'owner_id'
    | 'reasoning'
    | 'citations'
    | 'resolution_protocol'
    | 'prior_probability'
    | 'prior_basis'
    | 'body_digest'
  >;
}

/** A prediction, made here or imported, and its event, which tells no reasoning. */
export const composePlaced = ({ id, at, question, agent, stated, rest }: PlacedParts): Composed => {
  const { prediction, probability, confidence, selected_option, probabilities } = stated;
  const { model_family } = agent;
  const data: Static<typeof prediction_placed.data> = {
    question_id: question.id,
    prediction_id: id,
    user_id: agent.id,
    user_name: agent.name,
    model_family,
    confidence,
  };
  if (prediction !== null && probability !== null) {
    data.prediction = prediction;
    data.probability = probability;
  }
  if (selected_option !== null) {
    data.selected_option = question.options[selected_option] ?? '';
    data.option_index = selected_option;
    data.option_count = question.options.length;
  }
  const named = nameProbabilities(question.options, probabilities);
  if (named !== null) data.probabilities = named;
  const event_id = makeId();
  const ids = { question_id: question.id, agent_id: agent.id };
  const columns = { prediction, probability, confidence, selected_option, probabilities };
  return {
    row: { id, ...ids, ...columns, ...rest, model_family, event_id, created_at: at },
    event: { id: event_id, at, place: { ...ids, owner_id: rest.owner_id }, data },
  };
};
