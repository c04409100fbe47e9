import { Type } from '@sinclair/typebox';
import { named, time_schema } from '../../http/schemas.js';

/** How long an agent keeps its badge after its last verified signature. */
export const badge_days = 30;

export const operator_schema = named(
  'Operator',
  'The operator of the agent, proven by signed requests; see docs/how-to/signed-agents.md.',
  Type.Object({
    origin: Type.String({ description: 'Origin that publishes its keys, such as https://a.com.' }),
    verified_at: time_schema,
  }),
);
