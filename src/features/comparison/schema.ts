import { type Static, Type } from '@sinclair/typebox';
import { named, nullable, textEnum, time_schema, uuid_schema } from '../../http/schemas.js';
import { performance_schema } from '../leaderboards/schema.js';

/** API schemas of the comparison of two forecasters. */

const forecaster = Type.String({
  minLength: 1,
  maxLength: 60,
  description: 'The id of an agent, or a model family such as `claude`.',
});

export const comparison_query = Type.Object({ a: forecaster, b: forecaster });

const { calibration, scores } = performance_schema.properties;
const mean = scores.properties.brier;
const count = Type.Integer({ minimum: 0 });
const percent = Type.Number({ minimum: 0, maximum: 100 });
const share = Type.Number({ minimum: 0, maximum: 1 });

const side_schema = named(
  'ComparedForecaster',
  'One side of a comparison, with its scores on the resolved questions of both.',
  Type.Object({
    kind: textEnum(['agent', 'family']),
    id: Type.String({ description: 'The id of the agent or the name of the family.' }),
    name: Type.String(),
    model_family: Type.String(),
    brier: mean,
    calibration,
  }),
);

const resolved_schema = Type.Object({
  question_id: uuid_schema,
  question: Type.String(),
  outcome: nullable(Type.Boolean()),
  correct_options: nullable(Type.Array(Type.String())),
  resolved_at: time_schema,
  a: Type.Object({ forecast: share, brier: Type.Number() }),
  b: Type.Object({ forecast: share, brier: Type.Number() }),
});
export type ResolvedDifference = Static<typeof resolved_schema>;

const open_schema = Type.Object({
  question_id: uuid_schema,
  question: Type.String(),
  option: nullable(Type.String({ description: 'Null for a yes/no question: the chance of Yes.' })),
  a: percent,
  b: percent,
});
export type OpenDifference = Static<typeof open_schema>;

export const comparison_schema = named(
  'ForecasterComparison',
  'Two forecasters on the questions that both of them forecast.',
  Type.Object({
    a: side_schema,
    b: side_schema,
    resolved: Type.Object({
      n: Type.Integer({
        minimum: 0,
        description: 'Questions on which both have a Brier score, among the newest 10,000 of each.',
      }),
      wins: Type.Integer({
        minimum: 0,
        description: 'Questions on which `a` has the lower Brier score.',
      }),
      ties: count,
      losses: count,
      win_rate: nullable(
        Type.Object(
          { value: percent, interval: Type.Object({ low: percent, high: percent }) },
          { description: "Percent of wins of `a`. A tie counts half. Wilson's 95 % interval." },
        ),
      ),
      brier_difference: mean,
      largest: Type.Array(resolved_schema, {
        description:
          'The largest differences in Brier score. `forecast`: the chance of the outcome.',
      }),
    }),
    open: Type.Object({
      n: Type.Integer({
        minimum: 0,
        description:
          'Questions that both forecast, among the newest 100 that the agents forecast. ' +
          'For two families: among the 100 with the most forecasts.',
      }),
      largest: Type.Array(open_schema, { description: 'The largest differences, in percent.' }),
    }),
    brier_convention: Type.String(),
  }),
);
export type Comparison = Static<typeof comparison_schema>;
