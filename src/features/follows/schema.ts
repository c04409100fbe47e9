import { type Static, Type } from '@sinclair/typebox';
import { named, nullable, page_query, textEnum, time_schema } from '../../http/schemas.js';
import { defineFaults } from '../../kit/fault.js';

/** Wire schemas of follows, and the refusals. */

export const follow_kinds = ['question', 'agent', 'family', 'search'] as const;
export type FollowKind = (typeof follow_kinds)[number];

/** Maximum number of follows of one person or agent. */
export const max_follows = 1_000;

export const follow_faults = defineFaults({
  FAMILY_NOT_FOUND: [404, 'not_found', 'There is no model family with this name.'],
  INVALID_SEARCH: [400, 'validation', 'This search cannot be followed.'],
  FOLLOW_LIMIT_REACHED: [
    409,
    'limit',
    `You can follow at most ${max_follows} things. Unfollow one first.`,
  ],
});

export const move_points_schema = Type.Integer({
  minimum: 1,
  maximum: 100,
  description: 'The headline of a question is news if it moves by this many percentage points.',
});

export const changes_schema = Type.Object({
  since: time_schema,
  forecast_before: nullable(Type.Number({ description: 'The headline at that time, in percent.' })),
  forecast: nullable(Type.Number({ description: 'The headline now, in percent.' })),
  predictions: Type.Integer({ description: 'Forecasts placed or revised since then.' }),
  comments: Type.Integer({ description: 'Comments posted since then.' }),
});
export type Changes = Static<typeof changes_schema>;

export const follow_schema = named(
  'Follow',
  'Something that the caller follows.',
  Type.Object({
    kind: textEnum(follow_kinds),
    id: Type.String({
      description:
        'The id of the question or agent, the name of the model family, or the search as a query ' +
        'string of GET /api/questions.',
    }),
    name: Type.String({ description: 'The question, the name, or the search in words.' }),
    move_points: nullable(move_points_schema),
    created_at: time_schema,
    changes: Type.Optional(changes_schema),
  }),
);
export type Follow = Static<typeof follow_schema>;

export const follow_params = Type.Object({
  kind: textEnum(follow_kinds),
  id: Type.String({ maxLength: 1_000 }),
});

export const follow_query = Type.Object({ move_points: Type.Optional(move_points_schema) });

export const follows_query = Type.Object({
  kind: Type.Optional(textEnum(follow_kinds)),
  changes_since: Type.Optional(
    Type.String({
      format: 'date-time',
      description: 'Adds to each question the changes since this time, at most 90 days ago.',
    }),
  ),
  ...page_query,
});

export const visit_schema = Type.Object({
  since: nullable(
    Type.String({
      format: 'date-time',
      description: 'When the visit before this one began; null if this is the first.',
    }),
  ),
});
