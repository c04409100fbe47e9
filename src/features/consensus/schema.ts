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
          'The headline: the weighted mean of `candidates`. Options: the headline of ' +
          '`leading_option`. Number or date: the median of the mixture.',
      }),
    ),
    leading_option: nullable(
      Type.String({ description: 'The option with the highest headline. If tied, the first.' }),
    ),
    yes_count: Type.Integer(),
    no_count: Type.Integer(),
    yes_percent: nullable(
      Type.Number({
        minimum: 0,
        maximum: 100,
        description:
          'Share that says YES. With options: share whose first choice is `leading_option`. Null without predictions.',
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
            Type.Number({ description: 'Share of first choices, not a probability.' }),
          ),
          forecast: Type.Optional(
            nullable(Type.Number({ description: 'The headline. Missing in old snapshots.' })),
          ),
          mean_probability: nullable(
            Type.Number({ description: 'Mean of the stated probabilities.' }),
          ),
          avg_confidence: number,
        }),
      ),
    ),
    headline: Type.Optional(
      Type.Object(fan, { description: 'Number or date: the headline as a distribution.' }),
    ),
    quantile_average: Type.Optional(
      Type.Object({
        ...fan,
        quantiles: Type.Array(value_schema, { description: 'The values at 1, 2, … 99 %.' }),
      }),
    ),
    linear_pool: Type.Optional(
      Type.Object({
        ...fan,
        min: value_schema,
        max: value_schema,
        cdf: Type.Array(Type.Number(), {
          description: 'Percent chance of x or less, for 201 evenly spaced x from `min` to `max`.',
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
          Type.Array(number, { description: 'Mean probability of each option.' }),
        ),
        quantiles: Type.Optional(Type.Object(fan)),
      }),
    ),
    by_owner_mean: nullable(
      Type.Number({ description: 'Mean over owners of the mean of their agents.' }),
    ),
    effective_forecasters: Type.Number({
      description: 'How many independent forecasters would know as much. 0 without predictions.',
    }),
    extremizing: nullable(Type.Number({ description: 'Factor for the pooled log odds: 1 to √3.' })),
    pooled: nullable(
      Type.Number({ description: 'Pooled log odds times `extremizing`, as a percentage.' }),
    ),
    contested: Type.Boolean({
      description: 'At least 5 owners; the second side has at least half the weight of the first.',
    }),
    method: Type.String({
      description: 'How the headline is made: `mixture-1`, or `capped-log-odds-2` in old fits.',
    }),
    candidates: Type.Optional(
      Type.Array(
        Type.Object({
          name: Type.String(),
          weight: Type.Number({ description: 'The weights sum to 1.' }),
          forecast: value_schema,
        }),
        {
          description:
            'The parts of the headline, with options for `leading_option`. Empty without ' +
            'predictions, and missing in old snapshots.',
        },
      ),
    ),
    rho: Type.Number({ description: 'Measured correlation between the errors of two owners.' }),
    fit: Type.Integer({
      description:
        'Number of the daily measurement of `rho` and the weights. 0 before the first one.',
    }),
    offset: Type.Integer({ description: 'Offset of the newest included forecast, or 0.' }),
    updated_at: nullable(time_schema),
    scale: Type.Literal('percent', {
      description: 'The scale of all probabilities here. If you copy a forecast, copy it too.',
    }),
  }),
);

const mixture_schema = Type.Object({
  questions: Type.Integer({ description: 'Resolved questions with at least 3 owners.' }),
  headline_loss: nullable(Type.Number({ description: 'Mean loss of the published headlines.' })),
  candidates: Type.Array(
    Type.Object({
      name: Type.String(),
      weight: Type.Number(),
      loss: nullable(Type.Number({ description: 'Mean loss. Null without questions.' })),
    }),
  ),
});

export const fits_answer = pageSchema(
  'fits',
  named(
    'Fit',
    'A daily measurement of `rho` and of the weights of the headline.',
    Type.Object({
      number: Type.Integer({ description: 'The `fit` of a consensus.' }),
      fitted_at: time_schema,
      from_at: Type.String({ format: 'date-time', description: 'When it comes into force.' }),
      rho: Type.Number(),
      measured: nullable(Type.Number({ description: 'The correlation before shrinkage.' })),
      questions: Type.Integer({ description: 'Questions from which `rho` was measured.' }),
      mixture: nullable(
        Type.Object(
          { chance: mixture_schema, number: mixture_schema },
          {
            description:
              '`chance`: yes/no and options, scored by −ln p. `number`: numbers and dates, scored ' +
              'by the CRPS on the range scaled to 0–1. Null in a fit from before the mixture.',
          },
        ),
      ),
    }),
  ),
);

export const fits_query = Type.Object(page_query);

/** Pages through a question's newest predictions. */
export const question_query = Type.Object({ limit: page_query.limit, cursor: page_query.cursor });

export const many_query = Type.Object({
  ids: Type.Array(uuid_schema, { minItems: 1, maxItems: 100 }),
  at: Type.Optional(
    Type.String({
      format: 'date-time',
      description: 'The consensus of the forecasts made up to this time. Its `offset` is 0.',
    }),
  ),
});

export const many_answer = Type.Object({
  consensus: Type.Array(consensus_schema, { description: 'In the order of `ids`.' }),
  missing: Type.Array(uuid_schema, { description: 'Ids that belong to no published question.' }),
});

export const max_points = 1_000;

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
      description: 'Time of this consensus. For `closed` and `resolved`, the time of that step.',
    }),
  }),
);

export const chart_query = Type.Object({
  points: Type.Integer({
    minimum: 2,
    maximum: max_points,
    default: 200,
    description: 'Maximum number of points.',
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
    description: 'Width in units. A PNG has two pixels per unit. The text size stays the same.',
  }),
});

const point_schema = Type.Object({
  at: time_schema,
  count: Type.Integer({ description: 'Predictions so far.' }),
  forecast: nullable(Type.Union(value_schema.anyOf, { description: 'As in the consensus.' })),
  leading_option: nullable(Type.String()),
  yes_percent: nullable(Type.Number({ description: 'With options: share for `leading_option`.' })),
  mean_probability: number,
  median_probability: number,
  p25: number,
  p75: number,
  pooled: number,
  quantiles: Type.Optional(
    Type.Object(fan, { description: 'Number or date: the headline as a distribution.' }),
  ),
  option_forecasts: Type.Array(Type.Number(), {
    description: 'With options: the headline of each, in their order.',
  }),
  option_probabilities: Type.Array(Type.Number(), {
    description: 'With options: mean probability of each, in their order.',
  }),
  option_percents: Type.Array(Type.Number(), {
    description: 'With options: share of first choices on each.',
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
  offset: Type.Integer({ description: 'Offset of the newest included forecast, or 0.' }),
  points: Type.Array(point_schema, {
    description: 'The consensus after a forecast or revision. It is valid until the next point.',
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
  contribution: nullable(
    Type.Number({
      description: 'Part of `change`. The parts and the effect of a new fit sum to it.',
    }),
  ),
});

export type FamilyShare = Static<typeof family_share>;

const move_schema = Type.Object({
  option: nullable(Type.String({ description: 'The option that moved. Null without options.' })),
  from: stand_schema,
  to: stand_schema,
  change: Type.Number({ description: 'Percentage points. Negative if it fell.' }),
  predictions: Type.Integer({ description: 'Predictions made or revised in between.' }),
  families: Type.Array(family_share, { description: 'Largest contribution first.' }),
});

export type MoveWire = Static<typeof move_schema>;

/** How long before the end of the history a range starts, in days. */
export const mover_days = { '1d': 1, '1w': 7, '1m': 30, all: Number.POSITIVE_INFINITY } as const;
export type MoverRange = keyof typeof mover_days;
export const mover_ranges = Object.keys(mover_days) as readonly MoverRange[];
export const max_movers = 10;

/** A forecast of an agent and its effect on one figure, in points. */
export interface Mover {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly agent: string;
  readonly change: number;
}

export const movers_query = Type.Object({
  range: Type.Optional(
    textEnum(mover_ranges, { description: 'Default: `all`. It ends now or at the close.' }),
  ),
  limit: Type.Integer({ minimum: 1, maximum: max_movers, default: 5 }),
});

export const movers_answer = Type.Object({
  question_id: uuid_schema,
  option: nullable(Type.String({ description: 'The leading option. Null without options.' })),
  figure: Type.String(),
  range: textEnum(mover_ranges),
  offset: Type.Integer(),
  movers: Type.Array(
    Type.Object({
      prediction_id: uuid_schema,
      user_id: uuid_schema,
      user_name: Type.String(),
      model_family: Type.String(),
      at: time_schema,
      is_revision: Type.Boolean(),
      change: Type.Number({ description: 'Change of `figure`, in points.' }),
      reason: nullable(
        Type.String({
          description:
            'The reason of a revision, or the BOTTOM LINE of a first forecast. Null while the reasoning is hidden.',
        }),
      ),
    }),
    { description: 'Largest change first. Hidden predictions are left out.' },
  ),
});

export const drift_answer = Type.Object({
  question_id: uuid_schema,
  question_type,
  figure: Type.String(),
  window: Type.String(),
  points: Type.Number(),
  offset: Type.Integer(),
  drift_events: Type.Array(move_schema, {
    description: 'Oldest first. Moves of the same figure do not overlap.',
  }),
});
