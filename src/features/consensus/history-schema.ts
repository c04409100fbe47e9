import { type Static, Type } from '@sinclair/typebox';
import { nullable, textEnum, time_schema, uuid_schema } from '../../http/openapi.js';
import { page_query } from '../../http/page.js';
import { consensus_schema } from './schema.js';

export const most_points = 1_000;

export const snapshot_reasons = ['hourly', 'closed', 'resolved'] as const;
export type SnapshotReason = (typeof snapshot_reasons)[number];

export const snapshots_query = Type.Object(page_query);

const snapshot_schema = Type.Object({
  ...consensus_schema.properties,
  reason: textEnum(snapshot_reasons),
  taken_at: Type.String({
    format: 'date-time',
    description: 'When the consensus stood so; for a closing or a resolution the time of it.',
  }),
});

export const snapshots_answer = Type.Object({
  total: Type.Integer(),
  snapshots: Type.Array(snapshot_schema),
  next_cursor: nullable(Type.String()),
});

export const chart_query = Type.Object({
  points: Type.Integer({
    minimum: 2,
    maximum: most_points,
    default: 200,
    description: 'At most so many points.',
  }),
});

export const picture_query = Type.Object({
  ...chart_query.properties,
  theme: Type.Optional(textEnum(['light', 'dark', 'auto'] as const)),
  width: Type.Integer({
    minimum: 320,
    maximum: 1_200,
    default: 800,
    description: 'Units of the picture, each two pixels as PNG; its letters stay as large.',
  }),
});

const number = nullable(Type.Number());

const point_schema = Type.Object({
  at: time_schema,
  count: Type.Integer({ description: 'Predictions so far.' }),
  forecast: nullable(Type.Number({ description: 'As in the consensus.' })),
  leading_option: nullable(Type.String()),
  yes_percent: Type.Number({ description: 'Multi: first choices on `leading_option`.' }),
  mean_probability: number,
  median_probability: number,
  p25: number,
  p75: number,
  extremized: number,
  option_probabilities: Type.Array(Type.Number(), {
    description: 'Multi: what is stated for each option on average, in their order.',
  }),
  option_percents: Type.Array(Type.Number(), {
    description: 'Multi: the share of first choices on each option.',
  }),
});

/** The figures of a moment; percentages with at most two decimals. */
export type Moment = Omit<Static<typeof point_schema>, 'at'>;

export interface Point extends Moment {
  /** Milliseconds since 1970. */
  readonly at: number;
}

export const chart_answer = Type.Object({
  question_id: uuid_schema,
  question: Type.String(),
  question_type: textEnum(['binary', 'multi'] as const),
  status: Type.String(),
  options: Type.Array(Type.String()),
  total_predictions: Type.Integer(),
  moments: Type.Integer({ description: 'Moments at which the consensus changed.' }),
  sampling: textEnum(['none', 'lttb'] as const),
  offset: Type.Integer({ description: 'Of the newest prediction that is counted in; 0: none.' }),
  points: Type.Array(point_schema, {
    description: 'After each of these predictions; the consensus stands so until the next.',
  }),
});

const stand_schema = Type.Object({
  at: time_schema,
  percent: Type.Number(),
  count: Type.Integer({ description: 'Predictions so far.' }),
});

const family_share = Type.Object({
  model_family: Type.String(),
  predictions: Type.Integer(),
  contribution: nullable(Type.Number({ description: 'Points of the change; they sum to it.' })),
});

export type FamilyShare = Static<typeof family_share>;

const move_schema = Type.Object({
  option: nullable(Type.String({ description: 'Multi: whose mean moved.' })),
  from: stand_schema,
  to: stand_schema,
  change: Type.Number({ description: 'Percentage points; negative: down.' }),
  predictions: Type.Integer({ description: 'Made in between.' }),
  families: Type.Array(family_share, { description: 'Those that moved it most first.' }),
});

export type MoveWire = Static<typeof move_schema>;

export const drift_answer = Type.Object({
  question_id: uuid_schema,
  question_type: textEnum(['binary', 'multi'] as const),
  figure: Type.String(),
  window: Type.String(),
  points: Type.Number(),
  offset: Type.Integer(),
  drift_events: Type.Array(move_schema, {
    description: 'Oldest first; those of a figure do not overlap.',
  }),
});
