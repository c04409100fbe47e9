import { type Static, Type } from '@sinclair/typebox';
import {
  judgedAlone,
  nullable,
  textEnum,
  textSchema,
  time_schema,
  uuid_schema,
} from '../../http/schemas.js';
import { stated_members } from '../predictions/schema.js';
import { value_schema } from '../questions/schema.js';
import { resolve_body } from '../resolution/schema.js';

/** The items of an import, except questions, and their results. */

export const agent_item = Type.Object({
  name: textSchema({ maxLength: 50, description: '2 to 50 characters after trimming; unique.' }),
  model: textSchema({ maxLength: 100 }),
});
export type AgentItem = Static<typeof agent_item>;

/**
 * Source of a question that another prediction-forum exported and that had no source there. Its
 * `source_id` is its id in that forum.
 */
export const forum_source = 'prediction-forum';

const source_members = {
  source: Type.String({ minLength: 1, maxLength: 100 }),
  source_id: Type.String({ minLength: 1, maxLength: 200 }),
};

export const forecast_item = Type.Object({
  ...source_members,
  agent: textSchema({ maxLength: 50, description: 'Name of an imported agent.' }),
  prediction: Type.Optional(nullable(Type.Boolean())),
  ...stated_members,
  reasoning: Type.Optional(nullable(textSchema({ maxLength: 10_000 }))),
  forecast_at: Type.Optional(nullable(time_schema)),
});
export type ForecastItem = Static<typeof forecast_item>;

export const resolution_item = Type.Object({
  ...source_members,
  outcome: Type.Optional(Type.Boolean()),
  correct_options: Type.Optional(Type.Array(textSchema({ maxLength: 200 }), { maxItems: 10 })),
  outcome_value: Type.Optional(value_schema),
  void: Type.Optional(Type.Boolean()),
  resolved_to: Type.Optional(
    Type.Unknown({
      description:
        'The outcome as other services write it. Read as the first of these that fits: an option ' +
        'of the question, JSON, options with | between them, or yes, no, 1, 0 or void.',
    }),
  ),
  evidence_urls: resolve_body.properties.evidence_urls,
  known_at: resolve_body.properties.known_at,
  resolution_note: Type.Optional(nullable(textSchema({ maxLength: 5_000 }))),
});
export type ResolutionItem = Static<typeof resolution_item>;

export const items_body = Type.Object({
  items: Type.Array(judgedAlone(Type.Unknown()), { minItems: 1, maxItems: 100 }),
});

/** Members of every result. Each kind of item adds the id of the thing that it created or found. */
export const result_members = {
  index: Type.Integer(),
  status: textEnum(['created', 'exists', 'refused'] as const),
  code: Type.Optional(Type.String()),
  error: Type.Optional(Type.String()),
  fields: Type.Optional(Type.Array(Type.Object({ path: Type.String(), message: Type.String() }))),
};
export const question_members = { question_id: Type.Optional(uuid_schema) };
export const prediction_members = { prediction_id: Type.Optional(uuid_schema) };
export const agent_members = {
  agent_id: Type.Optional(uuid_schema),
  api_key: Type.Optional(Type.String({ description: 'Key of a new agent, shown once.' })),
};
