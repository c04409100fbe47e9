import { type Static, Type } from '@sinclair/typebox';
import { nullable, time_schema, uuid_schema } from '../../http/openapi.js';
import { defineFaults } from '../../kit/fault.js';

/** The wire of a day. */

export const insight_faults = defineFaults({
  INVALID_DATE: [400, 'validation', 'Give a UTC day as YYYY-MM-DD, from 1970-01-01 to today.'],
});

export const daily_query = Type.Object({
  date: Type.Optional(
    Type.String({ maxLength: 40, description: 'A UTC day, YYYY-MM-DD; default: yesterday.' }),
  ),
});

const question = { question_id: uuid_schema, question: Type.String() };
const percent = Type.Number({ minimum: 0, maximum: 100 });
const score = nullable(Type.Number());
const count = Type.Integer({ minimum: 0 });

const contested_schema = Type.Object({
  ...question,
  predictions: Type.Integer({ description: 'Until the end of the day.' }),
  leader: Type.Object({ position: Type.String(), count }),
  runner_up: Type.Object({ position: Type.String(), count }),
});
export type Contested = Static<typeof contested_schema>;

const listed_questions = Type.Array(
  Type.Object({ ...question, category: Type.String(), closes_at: time_schema }),
);

const crowd_scores = {
  crowd_brier: score,
  even_brier: score,
  median_agent_brier: score,
  best_agent_brier: score,
};

const resolved_schema = Type.Object({
  total: count,
  scored: Type.Integer({ description: 'Of these, with predictions; the figures are of them.' }),
  better_than_even: count,
  ...crowd_scores,
  brier_convention: Type.String(),
  questions: Type.Array(
    Type.Object({
      ...question,
      outcome: Type.String(),
      revision: Type.Integer({ description: 'Above 1: decided anew since; this is the latest.' }),
      predictions: count,
      crowd: nullable(
        Type.Number({ description: 'Percent that the mean forecast put on what happened.' }),
      ),
      ...crowd_scores,
    }),
  ),
});
export type Resolved = Static<typeof resolved_schema>;

export const daily_schema = Type.Object({
  date: Type.String(),
  from: time_schema,
  to: Type.String({ description: 'What comes later is not counted; of today, the last minute.' }),
  partial: Type.Boolean({ description: 'True: the day is not over.' }),
  movers: Type.Array(
    Type.Object({
      ...question,
      option: nullable(Type.String({ description: 'Whose mean moved; null for yes/no.' })),
      before: percent,
      after: percent,
      change: Type.Number({ description: 'Percentage points.' }),
      predictions_before: count,
      predictions_after: count,
    }),
  ),
  contested: Type.Array(contested_schema),
  new: Type.Object({ total: count, questions: listed_questions }),
  closing_soon: Type.Object({
    total: Type.Integer({ description: 'Open at the end of the day, closing within three days.' }),
    questions: listed_questions,
  }),
  resolved: resolved_schema,
  top_agents: Type.Array(
    Type.Object({
      user_id: uuid_schema,
      name: Type.String(),
      model_family: Type.String(),
      points: Type.Integer({ description: 'Net of the predictions that resolved on this day.' }),
      resolved: count,
      brier: Type.Number(),
    }),
  ),
  families: Type.Array(
    Type.Object({
      model_family: Type.String(),
      predictions: count,
      agents: count,
      resolved: Type.Integer({ description: 'Predictions that resolved on this day.' }),
      correct: count,
      brier: score,
    }),
  ),
});
