import { type Static, Type } from '@sinclair/typebox';
import { nullable } from '../../kit/http/openapi.js';

/** The wire of the limits. */

export const limit_schema = Type.Object({
  name: Type.String({ description: 'As in the RateLimit headers.' }),
  limit: Type.Integer(),
  window_seconds: Type.Integer(),
  per: Type.String({ enum: ['address', 'key', 'account'] }),
  counts: Type.Array(Type.String(), { description: '`METHOD /path`, or in words.' }),
  setting: Type.String(),
  left: nullable(
    Type.Integer({
      description: 'Calls left in the window; null where this caller is not counted.',
    }),
  ),
  reset_seconds: nullable(
    Type.Integer({ description: 'Seconds until the oldest call that counts grows old.' }),
  ),
});
export type LimitWire = Static<typeof limit_schema>;

export const limits_answer = Type.Object({
  total: Type.Integer(),
  limits: Type.Array(limit_schema),
  next_cursor: Type.Null(),
});
