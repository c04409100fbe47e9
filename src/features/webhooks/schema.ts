import { type Static, Type } from '@sinclair/typebox';
import {
  named,
  nullable,
  page_query,
  textEnum,
  time_schema,
  uuid_schema,
} from '../../http/schemas.js';
import { defineFaults } from '../../kit/fault.js';
import { filter_members, shown_filter_members } from '../events/filter.js';

export const webhook_faults = defineFaults({
  INVALID_URL: [400, 'validation', 'The URL cannot be called.'],
  HTTPS_REQUIRED: [400, 'validation', 'The URL must begin with https://.'],
  SSRF_BLOCKED: [400, 'validation', 'The URL names a host, port or address that is not public.'],
  INVALID_EVENT: [400, 'validation', 'There is no event with this name.'],
  WEBHOOK_LIMIT_REACHED: [
    409,
    'limit',
    'You have 10 webhooks, which is the maximum. Delete one first.',
  ],
  WEBHOOK_INACTIVE: [409, 'conflict', 'The webhook is switched off. Switch it on first.'],
  TOO_MANY_SECRETS: [
    409,
    'conflict',
    'This webhook has 20 older secrets that still sign. Wait until one expires, or rotate with overlap_hours 0.',
  ],
  REPLAY_RUNNING: [409, 'conflict', 'A replay to this webhook is running. Wait until it is done.'],
});

/** A table constraint enforces this limit: each webhook takes one slot. */
export const webhook_limit = 10;

const id = uuid_schema;
const time = time_schema;
const nullable_time = nullable(time);

export const id_params = Type.Object({ id });
export const delivery_params = Type.Object({ id, did: uuid_schema });

const url = Type.String({ description: 'A public https:// address.' });
/** More than the number of event types, because duplicates are allowed. */
const events = Type.Array(Type.String(), { minItems: 1, maxItems: 256 });

/** The filter of sockets and streams, without event names, which are a separate member. */
const filter = Type.Object(filter_members);

const narrowing = {
  filter: Type.Optional(nullable(filter)),
  scope_question_id: Type.Optional(
    Type.Union([id, Type.Null()], {
      description: 'The same as `filter` with this one id in `question_ids`.',
    }),
  ),
};

const signature_schemes = ['standard', 'rfc9421'] as const;
export type SignatureScheme = (typeof signature_schemes)[number];
const signature = {
  ...textEnum(signature_schemes),
  description: '`rfc9421` adds an HTTP message signature to the usual signatures.',
};

const delivery_orders = ['none', 'question'] as const;
export type DeliveryOrder = (typeof delivery_orders)[number];
const order = {
  ...textEnum(delivery_orders),
  description:
    '`question`: the events of one question are sent one after another, in the order of the log.',
};

export const create_body = Type.Object({
  url,
  events,
  ...narrowing,
  signature: Type.Optional(signature),
  order: Type.Optional(order),
});
export const update_body = Type.Object({
  url: Type.Optional(url),
  events: Type.Optional(events),
  ...narrowing,
  active: Type.Optional(Type.Boolean()),
  signature: Type.Optional(signature),
  order: Type.Optional(order),
});
export type NarrowingBody = Pick<Static<typeof create_body>, 'filter' | 'scope_question_id'>;

/** How long a replaced secret signs, if the request does not say. */
export const usual_overlap_hours = 24;
export const rotate_body = Type.Object({
  overlap_hours: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 168,
      description: `Hours for which the old secret also signs. Default: ${usual_overlap_hours}.`,
    }),
  ),
});

const webhook_members = {
  id,
  url: Type.String(),
  events: Type.Array(Type.String()),
  filter: nullable(Type.Object(shown_filter_members)),
  active: Type.Boolean(),
  signature,
  order,
  disabled_reason: nullable(Type.String()),
  failing_since: nullable(time_schema),
  paused_until: nullable(
    Type.String({ format: 'date-time', description: 'Paused until then after many failures.' }),
  ),
  old_secret_expires_at: nullable_time,
  created_at: time,
  updated_at: time,
};

export const replay_schema = Type.Object({
  id,
  webhook_id: id,
  status: textEnum(['running', 'done']),
  after: Type.Integer(),
  until_offset: Type.Integer(),
  next_offset: Type.Integer({ description: 'The offset at which it continues.' }),
  queued: Type.Integer({ description: 'Deliveries queued so far.' }),
  started_at: time,
  done_at: nullable_time,
});

export const webhook_schema = named(
  'Webhook',
  'An address that events are sent to.',
  Type.Object({ ...webhook_members, warning: Type.Optional(Type.String()) }),
);

export const webhook_detail_schema = Type.Object({
  ...webhook_members,
  replay: nullable(replay_schema),
});

const secret_members = {
  secret: Type.String({ description: '64 hexadecimal characters. Shown only here.' }),
  signing_secret: Type.String({ description: 'The same key for Standard Webhooks libraries.' }),
};

export const created_schema = Type.Object({ ...webhook_schema.properties, ...secret_members });
export const rotated_schema = Type.Object({ ...webhook_members, ...secret_members });

export const event_types_schema = Type.Object({
  total: Type.Integer(),
  events: Type.Array(Type.String()),
  next_cursor: Type.Null(),
});

export const tested_schema = Type.Object({
  delivered: Type.Boolean(),
  status: Type.Union([Type.Integer(), Type.Null()]),
  latency_ms: Type.Integer(),
  error: Type.Optional(Type.String()),
  message: Type.String(),
});

const delivery_states = [
  'pending',
  'sending',
  'delivered',
  'waiting',
  'exhausted',
  'expired',
  'skipped_disabled',
  'blocked',
  'gap',
] as const;
export type DeliveryState = (typeof delivery_states)[number];

const state = textEnum(delivery_states);

export const deliveries_query = Type.Object({ ...page_query, status: Type.Optional(state) });

const attempt_members = {
  attempt: Type.Integer(),
  at: time,
  status: nullable(Type.Integer()),
  latency_ms: Type.Integer(),
  error: nullable(Type.String()),
};

const delivery_members = {
  id,
  event_id: id,
  event: nullable(Type.String()),
  offset: Type.Integer(),
  status: state,
  attempts: Type.Integer({ description: 'Attempts since it was last queued.' }),
  replays: Type.Integer({ description: 'How many times it was sent again on request.' }),
  next_attempt_at: nullable_time,
  created_at: time,
  delivered_at: nullable_time,
  gap: nullable(
    Type.Object(
      {
        from_offset: Type.Integer(),
        until_offset: Type.Integer(),
        count: Type.Integer(),
        reason: textEnum(['backlog', 'age']),
      },
      { description: 'Events that were left out, if the status is `gap`. A replay sends them.' },
    ),
  ),
};

export const delivery_detail_schema = Type.Object({
  ...delivery_members,
  history: Type.Array(
    Type.Object({
      ...attempt_members,
      answer: nullable(Type.String({ description: 'The first 1,024 bytes of the answer.' })),
    }),
    { description: 'The newest 100 attempts, oldest first.' },
  ),
});

export const deliveries_schema = Type.Object({
  total: Type.Integer({ description: 'Counted up to 100,000.' }),
  deliveries: Type.Array(
    Type.Object({ ...delivery_members, last_attempt: nullable(Type.Object(attempt_members)) }),
  ),
  next_cursor: nullable(Type.String()),
});

export const redelivered_schema = Type.Object(delivery_members);

const offset = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
export const replay_body = Type.Object({
  since: Type.Optional(time),
  until: Type.Optional(time),
  after: Type.Optional(offset),
  until_offset: Type.Optional(offset),
});
export type ReplayBody = Static<typeof replay_body>;
/** Maximum age of the first event of a replay. */
export const replay_days = 7;
