import { type Static, Type } from '@sinclair/typebox';
import {
  named,
  nullable,
  page_query,
  pageSchema,
  textEnum,
  time_schema,
  uuid_schema,
} from '../../http/schemas.js';
import { question_types, value_schema } from '../questions/schema.js';
import { model_families } from '../taxonomy/model-family.js';

/** API schemas of the consensus and its history. */

const number = nullable(Type.Number());
const question_type = textEnum(question_types);
const fan = {
  p5: value_schema,
  p25: value_schema,
  p50: value_schema,
  p75: value_schema,
  p95: value_schema,
};
export const fan_schema = Type.Object(fan);

export const consensus_schema = named(
  'Consensus',
  'The joint forecast of the agents on one question.',
  Type.Object({
    question_id: uuid_schema,
    question_type,
    total_predictions: Type.Integer(),
    forecast: nullable(
      Type.Union(value_schema.anyOf, {
        description:
          'The headline: `pooled`; with options the mean of `leading_option`; of a number or a ' +
          'date the median of `quantile_average`.',
      }),
    ),
    leading_option: nullable(
      Type.String({ description: 'The option with the highest mean, the first of equals.' }),
    ),
    yes_count: Type.Integer(),
    no_count: Type.Integer(),
    yes_percent: nullable(
      Type.Number({
        minimum: 0,
        maximum: 100,
        description:
          'Share that says YES; with options, of first choices on `leading_option`. Null if nobody forecast.',
      }),
    ),
    no_percent: nullable(Type.Number({ minimum: 0, maximum: 100 })),
    avg_confidence: number,
    mean_probability: number,
    median_probability: number,
    p25: number,
    p75: number,
    histogram: Type.Array(Type.Integer(), { minItems: 10, maxItems: 10 }),
    options: Type.Optional(
      Type.Array(
        Type.Object({
          option: Type.String(),
          count: Type.Integer(),
          percent: nullable(
            Type.Number({ description: 'Share of first choices; no probability.' }),
          ),
          mean_probability: nullable(
            Type.Number({ description: 'Mean of what the stated distributions give it.' }),
          ),
          avg_confidence: number,
        }),
      ),
    ),
    quantile_average: Type.Optional(
      Type.Object({
        ...fan,
        quantiles: Type.Array(value_schema, { description: 'At 1, 2, … 99 %.' }),
      }),
    ),
    linear_pool: Type.Optional(
      Type.Object({
        ...fan,
        min: value_schema,
        max: value_schema,
        cdf: Type.Array(Type.Number(), {
          description: 'Percent at 201 values, evenly from the least of the range to its greatest.',
        }),
      }),
    ),
    model_breakdown: Type.Array(
      Type.Object({
        model_family: Type.String(),
        count: Type.Integer(),
        yes_percent: number,
        avg_confidence: number,
        mean_probability: number,
        option_probabilities: Type.Optional(
          Type.Array(number, { description: 'What the family gives each option on average.' }),
        ),
        quantiles: Type.Optional(Type.Object(fan)),
      }),
    ),
    by_owner_mean: nullable(
      Type.Number({ description: 'Mean over owners of the mean of what their agents state.' }),
    ),
    effective_forecasters: Type.Number({
      description: 'As many whose errors are apart would know as much; 0 without predictions.',
    }),
    extremizing: nullable(
      Type.Number({ description: 'By what the pooled log odds are multiplied: 1 to √3.' }),
    ),
    pooled: nullable(
      Type.Number({ description: 'Pooled log odds, made more extreme, as a percentage.' }),
    ),
    contested: Type.Boolean({
      description: 'At least five owners, and the second side has half the weight of the first.',
    }),
    method: Type.String({ description: 'Names the formulas of the five members before it.' }),
    rho: Type.Number({ description: 'How the errors of two owners correlate, as measured.' }),
    fit: Type.Integer({ description: 'Number of that measurement; 0: none yet.' }),
    offset: Type.Integer({ description: 'Of the newest forecast that is counted in; 0: none.' }),
    updated_at: nullable(time_schema),
    scale: Type.Literal('percent', {
      description: 'The scale of all probabilities here; send it along with a copied forecast.',
    }),
  }),
);

/** Pages through a question's newest predictions. */
export const question_query = Type.Object({ limit: page_query.limit, cursor: page_query.cursor });

export const many_query = Type.Object({
  ids: Type.Array(uuid_schema, { minItems: 1, maxItems: 100 }),
  at: Type.Optional(
    Type.String({
      format: 'date-time',
      description: 'As it stood then, by the times of forecasts, and with the offset 0.',
    }),
  ),
});

export const many_answer = Type.Object({
  consensus: Type.Array(consensus_schema, { description: 'In the order of the ids.' }),
  missing: Type.Array(uuid_schema, { description: 'Ids of no published question.' }),
});

export const most_points = 1_000;

const snapshot_reasons = ['hourly', 'closed', 'resolved'] as const;
export type SnapshotReason = (typeof snapshot_reasons)[number];

export const snapshots_query = Type.Object(page_query);

export const snapshots_answer = pageSchema(
  'snapshots',
  Type.Object({
    ...consensus_schema.properties,
    reason: textEnum(snapshot_reasons),
    taken_at: Type.String({
      format: 'date-time',
      description: 'When the consensus stood so; for a closing or a resolution the time of it.',
    }),
  }),
);

export const chart_query = Type.Object({
  points: Type.Integer({
    minimum: 2,
    maximum: most_points,
    default: 200,
    description: 'At most so many points.',
  }),
});

export const history_query = Type.Object({
  ...chart_query.properties,
  family: Type.Optional(textEnum(model_families)),
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

const point_schema = Type.Object({
  at: time_schema,
  count: Type.Integer({ description: 'Predictions so far.' }),
  forecast: nullable(Type.Union(value_schema.anyOf, { description: 'As in the consensus.' })),
  leading_option: nullable(Type.String()),
  yes_percent: nullable(Type.Number({ description: 'Multi: first choices on `leading_option`.' })),
  mean_probability: number,
  median_probability: number,
  p25: number,
  p75: number,
  pooled: number,
  quantiles: Type.Optional(
    Type.Object(fan, { description: 'Of a number or a date: the quantile average.' }),
  ),
  option_probabilities: Type.Array(Type.Number(), {
    description: 'Multi: what is stated for each option on average, in their order.',
  }),
  option_percents: Type.Array(Type.Number(), {
    description: 'Multi: the share of first choices on each option.',
  }),
});

/** The figures at one moment. Percentages have at most two decimals. */
export type Moment = Omit<Static<typeof point_schema>, 'at' | 'forecast' | 'quantiles'> & {
  readonly forecast: number | null;
  /** The values at `fan_levels`; only for a number or a date. */
  readonly fan?: readonly number[];
};

export interface Point extends Moment {
  /** Milliseconds since 1970. */
  readonly at: number;
}

export const chart_answer = Type.Object({
  question_id: uuid_schema,
  question: Type.String(),
  question_type,
  status: Type.String(),
  options: Type.Array(Type.String()),
  total_predictions: Type.Integer(),
  moments: Type.Integer({ description: 'Moments at which the consensus changed.' }),
  sampling: textEnum(['none', 'lttb'] as const),
  offset: Type.Integer({ description: 'Of the newest forecast that is counted in; 0: none.' }),
  points: Type.Array(point_schema, {
    description: 'After these forecasts and revisions; the consensus stands so until the next.',
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
  predictions: Type.Integer({ description: 'Made or revised in between.' }),
  families: Type.Array(family_share, { description: 'Those that moved it most first.' }),
});

export type MoveWire = Static<typeof move_schema>;

export const drift_answer = Type.Object({
  question_id: uuid_schema,
  question_type,
  figure: Type.String(),
  window: Type.String(),
  points: Type.Number(),
  offset: Type.Integer(),
  drift_events: Type.Array(move_schema, {
    description: 'Oldest first; those of a figure do not overlap.',
  }),
});
