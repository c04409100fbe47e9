import { type Static, Type } from '@sinclair/typebox';
import { limit_query, named, nullable, textEnum, time_schema } from '../../http/schemas.js';
import { defineFaults } from '../../kit/fault.js';
import { frame_id } from '../../socket/frames.js';
import { filter_members, filter_query } from '../events/filter.js';
import { event_schema, wait_most_s } from '../log/schema.js';

/** Requests and responses of durable consumers, over HTTP and over the socket. */

export const consumer_faults = defineFaults({
  CONSUMER_LIMIT_REACHED: [
    409,
    'limit',
    'You have 10 consumers, which is the maximum. Delete one first.',
  ],
  INVALID_CONSUMER_NAME: [
    400,
    'validation',
    'Invalid name. Use up to 64 of a–z, 0–9, `_` and `-`, and begin with a letter or digit.',
  ],
  OFFSET_AHEAD: [400, 'validation', 'The log has not reached this offset. Use one up to its head.'],
});

export const consumer_limit = 10;

/** Maximum number of unacknowledged events of a consumer. */
export const max_unacknowledged = 1_000;
/** A consumer with this many parked events is offered no new ones. */
export const max_parked = 10_000;
const max_taken = 100;

export const name_pattern = '^[a-z0-9][a-z0-9_-]{0,63}$';
const name = Type.String({
  pattern: name_pattern,
  description: 'must be up to 64 of a–z, 0–9, `_` and `-`, and begin with a letter or digit',
});
const member = Type.String({
  pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$',
  description: 'must name one worker, with up to 64 letters, digits, `.`, `_` and `-`',
});
const offset = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const offsets = Type.Array(offset, { minItems: 1, maxItems: max_unacknowledged });

export const name_params = Type.Object({ name });
/**
 * Parameters for a new consumer. Any name is accepted here, so that the handler can explain a bad
 * name.
 */
export const new_params = Type.Object({
  name: Type.String({ description: name.description ?? '' }),
});

const filter = Type.Object({ events: filter_query.events, ...filter_members });

/** The position at which a consumer starts. */
const start = Type.Union([textEnum(['now', 'beginning'] as const), offset], {
  description: '`now`, `beginning` (the oldest stored event), or the offset after which it starts.',
});
export type Start = Static<typeof start>;

const topics = Type.Array(Type.String({ minLength: 1, maxLength: 200 }), {
  minItems: 1,
  maxItems: 50,
});
const ack_wait_seconds = Type.Integer({
  minimum: 1,
  maximum: 3_600,
  description: 'An event that is not acknowledged within this time is delivered again.',
});

const max_deliveries = nullable(
  Type.Integer({
    minimum: 1,
    maximum: 100,
    description:
      'After this many failed deliveries, an event is parked, so that its question can go on. ' +
      'Null means never. Each retry waits longer: 1 s, doubled up to 10 minutes.',
  }),
);

export const put_body = Type.Object({
  topics: Type.Optional(topics),
  filter: Type.Optional(nullable(filter)),
  ack_wait_seconds: Type.Optional(ack_wait_seconds),
  max_deliveries: Type.Optional(max_deliveries),
  start: Type.Optional(start),
});

/** Defaults for members that the request leaves out. */
export const usual = {
  topics: ['all'],
  ack_wait_seconds: 30,
  max_deliveries: null,
  start: 'now',
  limit: 10,
  in_flight: 20,
} as const;

const gap_members = { after: offset, until: offset };

export const consumer_schema = named(
  'Consumer',
  'A named reader of the log. The service stores its position.',
  Type.Object({
    name,
    topics,
    filter: nullable(Type.Object(filter_query)),
    ack_wait_seconds,
    max_deliveries,
    cursor: Type.Integer({ description: 'All events up to here are acknowledged or parked.' }),
    head: offset,
    lag: Type.Integer({
      description:
        'Events that are neither acknowledged nor parked. New events are counted up to ' +
        '10,000, within 100,000 offsets.',
    }),
    parked: Type.Integer({ description: 'Events that failed too often.' }),
    oldest_unacknowledged_at: nullable(time_schema),
    members: Type.Array(Type.Object({ member, in_flight: Type.Integer() })),
    gap: nullable(
      Type.Object(
        { ...gap_members, at: time_schema },
        { description: 'The last range of events deleted before the consumer reached them.' },
      ),
    ),
    created_at: time_schema,
    updated_at: time_schema,
  }),
);

export const list_schema = Type.Object({
  total: Type.Integer(),
  consumers: Type.Array(consumer_schema),
  next_cursor: Type.Null(),
});

export const take_body = Type.Object({
  member,
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: max_taken })),
  wait: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: wait_most_s,
      description: 'Seconds to wait for an event.',
    }),
  ),
});

export const take_answer = Type.Object({
  events: Type.Array(
    Type.Object({
      ...event_schema.properties,
      deliveries: Type.Integer({ description: 'Number of deliveries, including this one.' }),
    }),
  ),
  ack_by: nullable(time_schema),
  gap: nullable(Type.Object({ reason: textEnum(['expired'] as const), ...gap_members })),
});

export const ack_body = Type.Object({ member, offsets });
export const ack_answer = Type.Object({
  acknowledged: Type.Array(offset),
  not_held: Type.Array(offset, {
    description: 'Already acknowledged, never delivered, or now held by another member.',
  }),
});

export const nack_body = Type.Object({
  member,
  offsets,
  delay_seconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 3_600,
      description:
        'Seconds until the next delivery. Default: 0, or the delay described at `max_deliveries`.',
    }),
  ),
  tried: Type.Optional(
    Type.Boolean({
      default: true,
      description: 'False if the member did not try. Then this is not a failed delivery.',
    }),
  ),
});
export const nack_answer = Type.Object({
  released: Type.Array(offset, {
    description: "Includes the member's later events of the same questions.",
  }),
  not_held: Type.Array(offset),
});

export const extend_body = Type.Object({
  member,
  offsets,
  seconds: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 3_600,
      description: 'Counted from now. Default: `ack_wait_seconds` of the consumer.',
    }),
  ),
});
export const extend_answer = Type.Object({
  extended: Type.Array(offset),
  not_held: Type.Array(offset),
});

export const parked_query = Type.Object({
  limit: limit_query,
  cursor: Type.Optional(Type.String({ maxLength: 20 })),
});
export const parked_answer = Type.Object({
  total: Type.Integer(),
  events: Type.Array(
    Type.Object({
      offset,
      deliveries: Type.Integer(),
      parked_at: time_schema,
      event: nullable(event_schema),
    }),
  ),
  next_cursor: nullable(Type.String()),
});
export const parked_body = Type.Object({ offsets });
const not_parked = Type.Array(offset);
export const requeue_answer = Type.Object({ requeued: Type.Array(offset), not_parked });
export const drop_answer = Type.Object({ dropped: Type.Array(offset), not_parked });

export const seek_body = Type.Object({ start });

/** Frames that a client sends. */
export const consume_frame = Type.Object({
  id: frame_id,
  consumer: name,
  member,
  in_flight: Type.Optional(Type.Integer({ minimum: 1, maximum: max_taken })),
});
export type ConsumeFrame = Static<typeof consume_frame>;
export const cancel_frame = Type.Object({ id: frame_id, consumer: name });
