import { type Static, type TSchema, Type } from '@sinclair/typebox';
import {
  limit_query,
  limitQuery,
  named,
  nullable,
  textEnum,
  time_schema,
  uuid_schema,
} from '../../http/schemas.js';
import { defineFaults } from '../../kit/fault.js';
import { catalogue } from '../events/catalogue.js';
import { filter_query } from '../events/filter.js';

/** Wire schemas of the log over HTTP. */

export const log_faults = defineFaults({
  UPGRADE_REQUIRED: [
    426,
    'validation',
    'This is a websocket. Connect with ws(s)://; proxies must pass Upgrade on. Or use /api/stream.',
  ],
  DIGEST_UNKNOWN: [
    404,
    'not_found',
    'There is no digest at this offset. It is after the head, or older than the stored events.',
  ],
});

/** Maximum time that a call may wait for an event, in seconds. */
export const wait_most_s = 50;

const offset = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

/** The wanted part of the log: topics and filters as on the socket. */
const wanted = {
  after: Type.Optional({
    ...offset,
    description: 'Events after this offset. Default: the oldest for pages, the head for streams.',
  }),
  topic: Type.Array(Type.String({ minLength: 1, maxLength: 200 }), {
    minItems: 1,
    maxItems: 50,
    default: ['all'],
    description: 'all, question:{id}, category:{slug}, subcategory:{slug}, agent:{id}, me, system.',
  }),
  ...filter_query,
};

export const events_query = Type.Object({
  ...wanted,
  /** The same as `after`, under the name that lists use. */
  cursor: Type.Optional(Type.String({ maxLength: 20 })),
  limit: limit_query,
  wait: Type.Integer({
    minimum: 0,
    maximum: wait_most_s,
    default: 0,
    description: 'Seconds to wait for the next event.',
  }),
  format: Type.Optional(textEnum(['json', 'ndjson'] as const)),
});
export type EventsQuery = Static<typeof events_query>;

export const stream_query = Type.Object({
  ...wanted,
  lastEventId: Type.Optional(
    Type.String({
      maxLength: 40,
      description: 'The same as the header `Last-Event-ID`, which is used if both are sent.',
    }),
  ),
});
export type StreamQuery = Static<typeof stream_query>;

/** Why the events do not start right after the requested offset. */
const gap_schema = Type.Object({
  /** `expired`: older events are no longer stored. `epoch`: the log never reached this offset. */
  reason: textEnum(['expired', 'epoch'] as const),
  after: offset,
  /** The answer continues after this offset. */
  until: offset,
});
export type Gap = Static<typeof gap_schema>;

/** Returns the distinct schemas of the members with this name, over all events. */
const schemasOf = (name: string): TSchema[] => {
  const all = catalogue.flatMap(({ data }) => data.properties[name] ?? []);
  return [...new Map(all.map((schema) => [JSON.stringify(schema), schema])).values()];
};

const member_names = new Set(catalogue.flatMap(({ data }) => Object.keys(data.properties)));

/** Members of all events in one type. With a union, clients could not read members directly. */
const event_data = named(
  'EventData',
  'The members depend on the event. `asyncapi.json` describes them.',
  Type.Object(
    Object.fromEntries(
      [...member_names].map((name) => [name, Type.Optional(Type.Union(schemasOf(name)))]),
    ),
    { additionalProperties: true },
  ),
);

export const event_schema = named(
  'Event',
  'An entry of the log.',
  Type.Object({
    offset: Type.Integer({ minimum: 0, description: 'Its position in the log.' }),
    id: uuid_schema,
    event: Type.String({ description: 'Its name, such as `prediction.placed`.' }),
    data: event_data,
    timestamp: time_schema,
  }),
);

export const events_answer = Type.Object({
  events: Type.Array(event_schema),
  gap: nullable(gap_schema),
  /** All events up to this offset were checked. It is the `after` of the next call. */
  next: offset,
  /** The same offset if more events are available now, else null. */
  next_cursor: nullable(Type.String()),
  head: offset,
  oldest: offset,
});

export const digest_query = Type.Object({
  from: Type.Integer({
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    default: 0,
    description: 'Lists digests from this offset on.',
  }),
  /** The same as `from`, under the name that lists use. */
  cursor: Type.Optional(Type.String({ maxLength: 20 })),
  limit: limitQuery(1_000, 100),
  at: Type.Optional({
    ...offset,
    description: 'The offset of the digest in `at`. Default: the head.',
  }),
});
export type DigestQuery = Static<typeof digest_query>;

const digest_point = Type.Object({
  offset,
  digest: Type.String({ pattern: '^[0-9a-f]{64}$', description: 'SHA-256 in hex.' }),
});

export const digest_answer = Type.Object({
  /** Stored digests: at every thousandth offset, and at the start of the stored log. */
  digests: Type.Array(digest_point),
  at: digest_point,
  head: offset,
  oldest: offset,
  next_cursor: nullable(Type.String()),
});
