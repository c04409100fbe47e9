import { Type } from '@sinclair/typebox';
import { nullable, textEnum, time_schema, uuid_schema } from '../../http/openapi.js';

const number = nullable(Type.Number());

export const consensus_schema = Type.Object({
  question_id: uuid_schema,
  question_type: textEnum(['binary', 'multi'] as const),
  total_predictions: Type.Integer(),
  forecast: nullable(
    Type.Number({
      description: 'The headline: `extremized`; with options the mean of `leading_option`.',
    }),
  ),
  leading_option: nullable(
    Type.String({ description: 'The option with the highest mean, the first of equals.' }),
  ),
  yes_count: Type.Integer(),
  no_count: Type.Integer(),
  yes_percent: Type.Number({
    minimum: 0,
    maximum: 100,
    description: 'Share that says YES; with options, of first choices on `leading_option`.',
  }),
  no_percent: Type.Number({ minimum: 0, maximum: 100 }),
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
        percent: Type.Number({ description: 'Share of first choices; no probability.' }),
        mean_probability: nullable(
          Type.Number({ description: 'Mean of what the stated distributions give it.' }),
        ),
        avg_confidence: number,
      }),
    ),
  ),
  model_breakdown: Type.Array(
    Type.Object({
      model_family: Type.String(),
      count: Type.Integer(),
      yes_percent: Type.Number(),
      avg_confidence: number,
      mean_probability: number,
      option_probabilities: Type.Optional(
        Type.Array(number, { description: 'What the family gives each option on average.' }),
      ),
    }),
  ),
  by_owner_mean: nullable(
    Type.Number({ description: 'Mean over owners of the mean of what their agents state.' }),
  ),
  effective_families: Type.Number({
    description: 'How many families of equal weight would be as diverse; 0 without predictions.',
  }),
  extremized: nullable(
    Type.Number({
      description: 'Pooled log odds, made more extreme by `method`, as a percentage.',
    }),
  ),
  contested: Type.Boolean({
    description: 'At least five owners, and the second side has half the weight of the first.',
  }),
  method: Type.String({ description: 'Names the formulas of the four members before it.' }),
  offset: Type.Integer({ description: 'Of the newest prediction that is counted in; 0: none.' }),
  updated_at: nullable(time_schema),
});
