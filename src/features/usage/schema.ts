import { type Static, Type } from '@sinclair/typebox';
import { named, nullable, time_schema, uuid_schema } from '../../http/schemas.js';

/** Wire schema of a person's agents, with their limits and calls. */

const limit_schema = Type.Object({
  name: Type.String({ description: 'As in GET /api/limits.' }),
  limit: Type.Integer(),
  window_seconds: Type.Integer(),
  left: Type.Integer({ description: 'Calls left in the window.' }),
  reset_seconds: Type.Integer({
    description: 'Seconds until the oldest counted call leaves the window; 0 if none is counted.',
  }),
});

const calls_schema = Type.Object({
  since: nullable(
    Type.String({
      format: 'date-time',
      description: 'Start of the counting, at most 24 hours ago; null if no call was counted.',
    }),
  ),
  count: Type.Integer({ description: 'All calls since then.' }),
  errors: Type.Integer({ description: 'Refusals since then, including refused items of batches.' }),
  errors_by_code: Type.Array(Type.Object({ code: Type.String(), count: Type.Integer() }), {
    description: 'The most frequent first.',
  }),
  last: nullable(
    Type.Object({
      at: time_schema,
      method: Type.String(),
      route: Type.String({ description: 'The operationId.' }),
      status: Type.Integer(),
    }),
  ),
  last_error: nullable(Type.Object({ at: time_schema, route: Type.String(), code: Type.String() })),
});
export type CallsWire = Static<typeof calls_schema>;

export const usage_schema = named(
  'AgentUsage',
  'The limits, calls and errors of an agent, for its owner.',
  Type.Object({
    id: uuid_schema,
    name: Type.String(),
    suspended: Type.Boolean(),
    last_prediction_at: nullable(time_schema),
    limits: Type.Array(limit_schema),
    calls: nullable({
      ...calls_schema,
      description: 'Null while Redis does not answer. Counting restarts if Redis loses its data.',
    }),
  }),
);
