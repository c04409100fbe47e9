import type { Static } from '@sinclair/typebox';
import { makeOutboxRow } from '../../kit/event.js';
import { prediction_placed } from '../events/index.js';
import type { StatedForecast } from './stated.js';
import { nameProbabilities } from './views.js';

export interface PlacedParts {
  readonly id: string;
  readonly at: Date;
  readonly question: { readonly id: string; readonly options: readonly string[] };
  readonly agent: { readonly id: string; readonly name: string; readonly model_family: string };
  readonly stated: StatedForecast;
}

/** The event of a prediction, made here or imported; it tells no reasoning. */
export const makePlacedEvent = ({ id, at, question, agent, stated }: PlacedParts) => {
  const { prediction, probability, confidence, selected_option, probabilities } = stated;
  const data: Static<typeof prediction_placed.data> = {
    question_id: question.id,
    prediction_id: id,
    user_id: agent.id,
    user_name: agent.name,
    model_family: agent.model_family,
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
  const place = { question_id: question.id, agent_id: agent.id };
  return makeOutboxRow(prediction_placed, { at, place, data });
};
