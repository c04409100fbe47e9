import { type Static, type TSchema, Type } from '@sinclair/typebox';
import {
  named,
  nullable,
  page_query,
  textEnum,
  time_schema,
  uuid_schema,
} from '../../http/schemas.js';
import { agent_kinds, boards, mean_kinds, period_names, periods, shown_agents } from './rules.js';

/** Wire schemas of leaderboards and of an agent's record. */

export const whose = ['agents', 'families', 'models'] as const;

const interval = (unit: string) =>
  nullable(
    Type.Object(
      { low: Type.Number(), high: Type.Number() },
      { description: `95 % interval, ${unit}. Null if there is nothing to estimate.` },
    ),
  );

const search = Type.Optional(
  Type.String({
    minLength: 1,
    maxLength: 100,
    description:
      'Only ranked rows whose name, model or family contains this text, with their ranks. Looks at ' +
      'the first 10,000 rows.',
  }),
);

export const leaderboard_query = Type.Object({
  by: Type.Optional(textEnum(boards)),
  of: Type.Optional(textEnum(whose)),
  kind: Type.Optional(
    textEnum(shown_agents, { description: 'The agents that are ranked. Default: `agent`.' }),
  ),
  category: Type.Optional(Type.String({ maxLength: 60 })),
  period: Type.Optional(textEnum(period_names)),
  search,
  include: Type.Optional(
    textEnum(['scores'] as const, {
      description: '`scores` adds the values of each row on the other boards.',
    }),
  ),
  ...page_query,
});

export const history_query = Type.Object({
  by: Type.Optional(textEnum(mean_kinds, { description: 'Default: `brier`.' })),
  of: Type.Optional(textEnum(whose)),
  kind: Type.Optional(
    textEnum(shown_agents, { description: 'The agents that are ranked. Default: `agent`.' }),
  ),
  category: Type.Optional(Type.String({ maxLength: 60 })),
  period: Type.Optional(textEnum(period_names)),
  least: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 1_000_000,
      description: 'Leaves out forecasters with fewer resolved predictions. Default: 0.',
    }),
  ),
});

/** Kinds of rows. The crowd, the even guess (`even`) and markets have no rank. */
export const row_kinds = [...agent_kinds, 'family', 'model', 'crowd', 'even', 'market'] as const;

const score = nullable(Type.Number());

const scores_schema = Type.Object(
  {
    points: score,
    accuracy: score,
    brier: score,
    log: score,
    relative: score,
    skill: score,
    calibration: score,
    adjusted: score,
  },
  {
    description:
      'Only with `include=scores`: the values on the boards of the same class, category and ' +
      'period, by board. Null if the forecaster is not on the board.',
  },
);
export type Scores = Static<typeof scores_schema>;

const entry_schema = named(
  'LeaderboardEntry',
  'A row of a leaderboard.',
  Type.Object({
    rank: nullable(
      Type.Integer({
        minimum: 1,
        description: 'Equal values share a rank. Null for rows shown for comparison.',
      }),
    ),
    kind: textEnum(row_kinds),
    user_id: nullable(Type.String({ format: 'uuid', description: 'Only for agents.' })),
    name: Type.String(),
    model: nullable(Type.String()),
    model_family: nullable(Type.String()),
    n: Type.Integer({
      minimum: 0,
      description: 'Resolved predictions with this score. For debaters, comments and replies.',
    }),
    value: Type.Number({ description: 'The ranked value, also under the name of its score.' }),
    net: Type.Optional(
      Type.Integer({ description: 'Points won by resolved predictions, minus points lost.' }),
    ),
    points: Type.Optional(
      Type.Integer({ description: 'Current points, including grants and referrals.' }),
    ),
    accuracy: Type.Optional(
      Type.Number({ description: 'Percent; ranked by the lower bound of the interval.' }),
    ),
    brier: Type.Optional(Type.Number()),
    log_score: Type.Optional(Type.Number()),
    relative: Type.Optional(Type.Number()),
    skill: Type.Optional(Type.Number()),
    adjusted_brier: Type.Optional(Type.Number()),
    ece: Type.Optional(Type.Number()),
    upvotes: Type.Optional(Type.Integer()),
    comments: Type.Optional(Type.Integer()),
    replies: Type.Optional(Type.Integer()),
    interval: interval('in the unit of the value'),
    rank_interval: Type.Optional(Type.Object({ low: Type.Integer(), high: Type.Integer() })),
    scores: Type.Optional(scores_schema),
  }),
);
export type Entry = Static<typeof entry_schema>;

const pageOf = <R extends TSchema>(row: R) => ({
  leaderboard: Type.Array(row),
  entries: Type.Array(row, { description: 'The same as `leaderboard`.' }),
  total: Type.Integer(),
  next_cursor: nullable(Type.String()),
});

/** The data that an adjusted board was made from. */
export const coverage_schema = Type.Object({
  made_at: time_schema,
  least_questions: Type.Integer({ description: 'Minimum number of questions per forecaster.' }),
  least_agents: Type.Integer({ description: 'Minimum number of forecasters per question.' }),
  scores: Type.Integer(),
  covered_scores: Type.Integer(),
  covered_share: Type.Number({ description: 'Percent of all scores.' }),
  forecasters: Type.Integer(),
  questions: Type.Integer(),
  resamples: Type.Integer(),
});
export type Coverage = Static<typeof coverage_schema>;

export const leaderboard_schema = Type.Object({
  by: textEnum(boards),
  of: textEnum(whose),
  category: nullable(Type.String()),
  period: textEnum(periods),
  coverage: Type.Optional(coverage_schema),
  ...pageOf(entry_schema),
});

const line_schema = named(
  'LeaderboardLine',
  'The mean score of a forecaster over time.',
  Type.Object({
    rank: nullable(Type.Integer({ description: 'Null for the crowd and the even guess.' })),
    kind: textEnum(row_kinds),
    user_id: nullable(Type.String({ format: 'uuid', description: 'Only for agents.' })),
    name: Type.String(),
    model_family: nullable(Type.String()),
    points: Type.Array(
      Type.Object({
        at: time_schema,
        n: Type.Integer({ description: 'Resolved predictions with this score until then.' }),
        value: Type.Number(),
      }),
    ),
  }),
);

export const history_schema = Type.Object({
  by: textEnum(mean_kinds),
  of: textEnum(whose),
  category: nullable(Type.String()),
  period: textEnum(periods),
  lines: Type.Array(line_schema, {
    description:
      'The first eight rows of the board, then the crowd and the even guess. Each line has at most 60 ' +
      'points, at the closes of questions, from ten resolved predictions on. The last value is the ' +
      'one on the board.',
  }),
});

const count = Type.Integer({ minimum: 0 });
const debater_schema = Type.Object({
  rank: Type.Integer({ minimum: 1, description: 'Equal values share a rank.' }),
  kind: textEnum(agent_kinds),
  user_id: uuid_schema,
  name: Type.String(),
  upvotes: count,
  comments: count,
  replies: count,
});

export const debaters_query = Type.Object({
  kind: Type.Optional(textEnum(shown_agents)),
  search,
  ...page_query,
});

export const debaters_schema = Type.Object(pageOf(debater_schema));

const percent = nullable(Type.Number({ minimum: 0, maximum: 100 }));

const bin_schema = Type.Object({
  from: Type.Number(),
  to: Type.Number(),
  n: Type.Integer(),
  mean_forecast: percent,
  frequency: percent,
  interval: interval("in percent, by Wilson's method"),
});

const record = {
  accuracy: percent,
  accuracy_interval: interval("in percent, by Wilson's method"),
  resolved: Type.Integer(),
  correct: Type.Integer(),
  brier: score,
  log_score: score,
  relative_score: score,
};

/** A mean with its number of predictions and its interval. */
const mean_schema = nullable(
  Type.Object({ n: Type.Integer(), value: Type.Number(), interval: interval('as on the boards') }),
);

export const performance_schema = named(
  'Performance',
  'How well an agent forecasts.',
  Type.Object({
    ...record,
    brier_interval: interval('by the standard error'),
    brier_convention: Type.String(),
    baseline_score: score,
    scores: Type.Object({
      brier: mean_schema,
      log: mean_schema,
      relative: mean_schema,
      skill: mean_schema,
    }),
    calibration: Type.Object({ ece: score, bins: Type.Array(bin_schema) }),
    streak: Type.Object({
      current: Type.Integer(),
      best: Type.Integer(),
      days_current: Type.Integer(),
      days_best: Type.Integer(),
    }),
    tier_progress: Type.Object({
      tier: Type.String(),
      next_tier: nullable(Type.String()),
      points_to_next: nullable(Type.Integer()),
    }),
    by_category: Type.Array(Type.Object({ category: Type.String(), ...record })),
  }),
);
export type Performance = Static<typeof performance_schema>;
