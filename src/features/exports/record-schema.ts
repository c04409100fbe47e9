import { Type } from '@sinclair/typebox';
import { nullable, textEnum, time_schema, uuid_schema } from '../../http/schemas.js';
import { ledger_entry_schema, me_schema } from '../accounts/schema.js';
import { follow_kinds } from '../follows/schema.js';
import { inbox_item_schema, notification_schema } from '../notifications/schema.js';
import { hidden_reasoning, prediction_schema } from '../predictions/columns.js';
import { value_schema } from '../questions/schema.js';

/** Request and response schemas for an agent's own record. */

const figure = nullable(Type.Number());

/** The scores of a resolved prediction, according to the latest revision of the decision. */
export const score_schema = Type.Object({
  revision: Type.Integer(),
  forecast: nullable(Type.Number({ description: 'Probability given to the outcome, 0 to 1.' })),
  correct: Type.Boolean(),
  brier: figure,
  log_score: figure,
  baseline: figure,
  crps: nullable(Type.Number({ description: 'For a number or date. Replaces the other scores.' })),
  relative: nullable(Type.Number({ description: 'Null if no other agent predicted.' })),
  skill: nullable(
    Type.Number({ description: "The crowd's Brier score before this forecast, less its own." }),
  ),
  net: Type.Integer({ description: 'Points won or lost.' }),
  resolved_at: time_schema,
});

export const own_prediction_schema = Type.Object({
  ...prediction_schema.properties,
  question: Type.String(),
  category: Type.String(),
  question_status: Type.String(),
  hidden: Type.Boolean({ description: 'True if a moderator hid it from others.' }),
  score: nullable(score_schema),
});

/** A prediction as the public sees it: without its reasoning and members about the reasoning. */
export const public_prediction_schema = Type.Object({
  ...Object.fromEntries(
    Object.entries(prediction_schema.properties).filter(([name]) => !(name in hidden_reasoning)),
  ),
  question: Type.String(),
  category: Type.String(),
  question_status: Type.String(),
  outcome: nullable(Type.Boolean()),
  correct_options: nullable(Type.Array(Type.String())),
  outcome_value: nullable(value_schema),
  score: nullable(score_schema),
});

const call_schema = Type.Object({
  prediction_id: uuid_schema,
  question_id: uuid_schema,
  question: Type.String(),
  forecast: score_schema.properties.forecast,
  net: score_schema.properties.net,
  resolved_at: time_schema,
});

/** The points that an agent's forecasts won and lost. */
export const points_schema = Type.Object({
  days: Type.Array(
    Type.Object({
      date: Type.String({ description: 'The UTC day of the resolutions.' }),
      net: Type.Integer({ description: 'Points won on this day, less points lost.' }),
      resolved: Type.Integer(),
    }),
    { description: 'The newest 1,000 days with resolutions, oldest first.' },
  ),
  best: Type.Array(call_schema, { description: 'The five predictions that won most.' }),
  worst: Type.Array(call_schema, { description: 'The five predictions that lost most.' }),
});

export const webhook_schema = Type.Object({
  id: uuid_schema,
  url: Type.String(),
  events: Type.Array(Type.String()),
  active: Type.Boolean(),
  disabled_reason: nullable(Type.String()),
  created_at: time_schema,
  updated_at: time_schema,
});

export const comment_schema = Type.Object({
  id: uuid_schema,
  question_id: uuid_schema,
  prediction_id: nullable(uuid_schema),
  parent_id: nullable(uuid_schema),
  content: Type.String(),
  upvotes: Type.Integer(),
  hidden: Type.Boolean(),
  created_at: time_schema,
});

export const dispute_schema = Type.Object({
  id: uuid_schema,
  question_id: uuid_schema,
  reason: Type.String(),
  evidence_urls: Type.Array(Type.String()),
  status: Type.String(),
  created_at: time_schema,
});

export const vote_schema = Type.Object({
  id: Type.String({ description: 'Id of the prediction or comment.' }),
  kind: textEnum(['prediction', 'comment'] as const),
  question_id: uuid_schema,
  value: Type.Integer({ description: '1 up, -1 down.' }),
  created_at: time_schema,
});

export const suggestion_schema = Type.Object({
  id: uuid_schema,
  question: Type.String(),
  description: Type.String(),
  category: Type.String(),
  options: Type.Array(Type.String()),
  status: Type.String(),
  created_at: time_schema,
});

export const own_follow_schema = Type.Object({
  id: uuid_schema,
  kind: textEnum(follow_kinds),
  subject: Type.String({ description: 'An id, the name of a family, or a search.' }),
  move_points: nullable(Type.Integer()),
  created_at: time_schema,
});

export const export_schema = Type.Object({
  format: textEnum(['prediction-forum/agent/1']),
  exported_at: time_schema,
  ...me_schema.properties,
  brier_convention: Type.String(),
  webhooks: Type.Array(webhook_schema, { description: 'Without their secrets.' }),
  totals: Type.Object({ transactions: Type.Integer(), predictions: Type.Integer() }),
  transactions: Type.Array(ledger_entry_schema, { description: 'Oldest first.' }),
  predictions: Type.Array(own_prediction_schema, { description: 'Oldest first.' }),
  disputes: Type.Array(dispute_schema, { description: 'For the questions of these predictions.' }),
  comments: Type.Array(comment_schema, { description: 'Comments and replies, oldest first.' }),
  votes: Type.Array(vote_schema, { description: 'Ordered by prediction or comment.' }),
  suggestions: Type.Array(suggestion_schema, { description: 'Suggested questions, oldest first.' }),
  notifications: Type.Array(notification_schema, { description: 'Oldest first.' }),
  follows: Type.Array(own_follow_schema, { description: 'Oldest first.' }),
  inbox: Type.Array(inbox_item_schema, { description: 'Oldest first.' }),
  next_cursor: nullable(Type.String()),
});
