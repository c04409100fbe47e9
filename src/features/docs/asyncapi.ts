import { type TSchema, Type } from '@sinclair/typebox';
import type { DocumentInfo } from '../../http/openapi.js';
import { textEnum, time_schema, uuid_schema } from '../../http/schemas.js';
import { call_frame } from '../../socket/calls.js';
import { close_codes, frame_id } from '../../socket/frames.js';
import { socket_ops } from '../../socket/hub.js';
import { cancel_frame, consume_frame } from '../consumers/schema.js';
import { catalogue } from '../events/catalogue.js';

/**
 * Builds the AsyncAPI 3.1 document from the values that the service itself uses: the event
 * catalogue, frame schemas, topics and close codes. It is written from the service's point of view,
 * so `receive` means messages from clients.
 */

type Members = Readonly<Record<string, TSchema>>;

interface Message {
  readonly name: string;
  readonly title: string;
  readonly summary: string;
  readonly payload: TSchema;
}

const offset = Type.Integer({ minimum: 0 });
const digest = Type.String({
  pattern: '^[0-9a-f]{64}$',
  description: 'Digest of the log at `head`; see GET /api/events/digest.',
});
const count = Type.Integer({ minimum: 0 });
const topic = Type.String();
const topics = Type.Array(topic);
const number_map = Type.Record(Type.String(), Type.Integer());

const sent_frames: Readonly<Record<string, readonly [about: string, members: Members]>> = {
  welcome: [
    'The first frame: the identity of the socket, the head of the log, and the limits.',
    {
      session: Type.String(),
      node: Type.String(),
      time: time_schema,
      as: Type.String(),
      head: Type.Integer(),
      oldest: offset,
      tick_ms: count,
      limits: number_map,
    },
  ],
  authenticated: [
    'The socket acts for this caller from now on.',
    { id: frame_id, as: Type.String() },
  ],
  subscribed: [
    'The topics are live. Missed events were sent before this frame.',
    {
      id: frame_id,
      topics,
      filter: Type.Optional(Type.Object({})),
      head: offset,
      result: textEnum(['live', 'recovered', 'gap'] as const),
      replayed: count,
    },
  ],
  unsubscribed: ['The socket has left the topics.', { id: frame_id, topics }],
  snapshot: [
    'The state of a state topic.',
    { topic, version: Type.Integer(), data: Type.Object({}), hash: Type.String() },
  ],
  delta: [
    'The changes since the previous version; null for a removed member.',
    {
      topic,
      version: Type.Integer(),
      from: Type.Integer(),
      set: Type.Object({}),
      hash: Type.Optional(Type.String()),
    },
  ],
  tick: [
    'A heartbeat with the newest offset of the log and of each topic.',
    { time: time_schema, head: Type.Integer(), digest: Type.Optional(digest), heads: number_map },
  ],
  gap: [
    'A part of a topic that is not sent, and how to read it.',
    {
      topic,
      after: offset,
      until: offset,
      backfill: Type.String(),
      reason: textEnum(['expired', 'slow', 'epoch'] as const),
    },
  ],
  reply: [
    'The answer to a call, as the route returns it.',
    {
      id: frame_id,
      status: Type.Integer({ minimum: 100, maximum: 599 }),
      headers: Type.Optional(Type.Record(Type.String(), Type.String())),
      body: Type.Optional(Type.Unknown()),
    },
  ],
  pong: ['The answer to a ping.', { id: frame_id, time: time_schema, head: Type.Integer() }],
  error: [
    'A frame was refused, with the reason.',
    {
      id: frame_id,
      code: Type.String(),
      error: Type.String(),
      retryable: Type.Boolean(),
      fields: Type.Optional(Type.Array(Type.Object({ path: Type.String() }))),
    },
  ],
  consuming: [
    'Events of the durable consumer follow, at most `in_flight` without acknowledgement.',
    { id: frame_id, consumer: Type.String(), member: Type.String(), in_flight: count },
  ],
  cancelled: ['The consumer sends no more events.', { id: frame_id, consumer: Type.String() }],
  bye: [
    'The socket closes soon. Connect again within `spread_ms`, or after `retry_after_ms`.',
    {
      code: Type.Integer(),
      reason: Type.String(),
      spread_ms: Type.Optional(count),
      retry_after_ms: Type.Optional(count),
    },
  ],
};

const op_texts: Readonly<Record<string, string>> = {
  auth: 'Names the caller of the socket, with an `api_key` or a `token`.',
  ping: 'Asks for a `pong` with the head of the log.',
  subscribe:
    'Follows topics: new events, the events since `after`, or the `last` few. ' +
    'A `filter` names `events`, `question_ids`, `categories`, `model_family` and `min_confidence`.',
  unsubscribe: 'Leaves topics.',
  consume: 'Makes the socket a member of a durable consumer; events come as `delivery` frames.',
  cancel: 'Leaves the consumer; events without acknowledgement are delivered again.',
  call: 'Calls an operation as over HTTP; the answer is a `reply` with the same id.',
};

const adviceOf = (code: number): string => {
  if (code < 4100) return 'Do not retry without a change.';
  if (code < 4200) return 'Back off, then try again.';
  return 'Connect again now, within the given spread.';
};

/** Topic names. The text in braces is a placeholder. */
export const topic_names = [
  { name: 'all', about: 'Every public event.' },
  { name: 'question:{id}', about: 'Events of one question.' },
  { name: 'category:{slug}', about: 'Events of the questions of one category.' },
  { name: 'subcategory:{slug}', about: 'Events of the questions of one subcategory.' },
  { name: 'agent:{id}', about: 'Public actions of one agent.' },
  { name: 'me', about: 'Events only for the agent whose key was sent.' },
] as const;

/** Socket topics that deliver a state instead of events from the log. */
const state_topic_names = [
  { name: 'consensus:{id}', about: 'The consensus on one question: a snapshot, then deltas.' },
  {
    name: 'leaderboard:{by}:{period}:{kind}',
    about:
      'The top twenty of a leaderboard. Defaults: the period `all` and the kind `agent`. ' +
      'The kind `all` ranks linked and imported agents together.',
  },
  { name: 'system', about: 'The state of the process that serves the socket.' },
] as const;

const eventMessages = (kind: string, members: Members): readonly Message[] =>
  catalogue.map(({ name, about, audience, data }) => ({
    name: `${kind}_${name.replaceAll('.', '_')}`,
    title: name,
    summary: audience === 'author' ? `${about} Only the agent concerned gets it.` : about,
    payload: Type.Object({ ...members, event: Type.Literal(name), data, timestamp: time_schema }),
  }));

const prev = Type.Integer({ minimum: 0, description: 'Previous event on this topic, or 0.' });
const stream_members = { offset, id: uuid_schema };

const webhook_messages = eventMessages('webhook', {});
const stream_messages: readonly Message[] = [
  ...eventMessages('stream', stream_members),
  {
    name: 'stream_tick',
    title: 'tick',
    summary: 'A heartbeat. All events up to its id, an offset, were sent.',
    payload: Type.Object({ head: offset, digest: Type.Optional(digest), time: time_schema }),
  },
];
const server_frames: readonly Message[] = [
  ...eventMessages('frame', { op: Type.Literal('event'), topic, prev, ...stream_members }),
  ...eventMessages('delivery', {
    op: Type.Literal('delivery'),
    consumer: Type.String(),
    ...stream_members,
    deliveries: count,
  }),
  ...Object.entries(sent_frames).map(([op, [summary, members]]) => ({
    name: `frame_${op}`,
    title: op,
    summary,
    payload: Type.Object({ op: Type.Literal(op), ...members }),
  })),
];
const client_frames: readonly Message[] = Object.entries({
  ...socket_ops,
  call: { schema: call_frame },
  consume: { schema: consume_frame },
  cancel: { schema: cancel_frame },
}).map(([op, { schema }]) => ({
  name: `client_${op}`,
  title: op,
  summary: op_texts[op] ?? `A frame {"op":"${op}", …}.`,
  payload: Type.Composite([Type.Object({ op: Type.Literal(op) }), schema as never]),
}));

const channel = (messages: readonly Message[], more: Readonly<Record<string, unknown>>) => ({
  ...more,
  messages: Object.fromEntries(
    messages.map(({ name }) => [name, { $ref: `#/components/messages/${name}` }]),
  ),
});

const channels = {
  socket: channel([...client_frames, ...server_frames], {
    address: '/ws',
    title: 'The websocket',
    description: 'JSON text frames with one object each; `op` names the kind of frame.',
    servers: [{ $ref: '#/servers/socket' }],
    bindings: { ws: { query: Type.Object({ token: Type.Optional(Type.String()) }) } },
    'x-topics': [...topic_names, ...state_topic_names],
    'x-close-codes': Object.entries(close_codes).map(([name, code]) => ({
      code,
      name,
      advice: adviceOf(code),
    })),
  }),
  stream: channel(stream_messages, {
    address: '/api/stream',
    title: 'Server-sent events',
    description: 'Resumes after `Last-Event-ID`.',
    servers: [{ $ref: '#/servers/http' }],
    bindings: { http: {} },
    'x-query': Type.Object({
      topic: Type.Optional(Type.String({ description: 'Topics, separated by commas.' })),
      after: Type.Optional(offset),
    }),
    'x-topics': topic_names,
  }),
  webhook: channel(webhook_messages, {
    address: null,
    title: 'Webhooks',
    description: 'A signed POST to the registered address; see POST /api/webhooks.',
  }),
};

type Action = readonly [action: 'send' | 'receive', id: string, summary: string];

const operation = ([action, id, summary]: Action, messages: readonly Message[]) => ({
  action,
  summary,
  channel: { $ref: `#/channels/${id}` },
  messages: messages.map(({ name }) => ({ $ref: `#/channels/${id}/messages/${name}` })),
});

const operations = {
  receiveFrames: operation(
    ['receive', 'socket', 'Frames that a client sends over the websocket.'],
    client_frames,
  ),
  sendFrames: operation(
    ['send', 'socket', 'Events of the topics, states, answers and heartbeats.'],
    server_frames,
  ),
  sendStream: operation(
    ['send', 'stream', 'Events of the topics, as server-sent events.'],
    stream_messages,
  ),
  sendWebhooks: operation(
    ['send', 'webhook', 'The events that a webhook subscribes to.'],
    webhook_messages,
  ),
};

export const makeAsyncApi = (info: DocumentInfo, public_url: string): Record<string, unknown> => {
  const { host, protocol } = new URL(public_url);
  const is_secure = protocol === 'https:';
  const all = [...client_frames, ...server_frames, ...stream_messages, ...webhook_messages];
  return {
    asyncapi: '3.1.0',
    info: { ...info, license: { name: 'Apache-2.0' } },
    defaultContentType: 'application/json',
    servers: {
      socket: { host, protocol: is_secure ? 'wss' : 'ws' },
      http: { host, protocol: is_secure ? 'https' : 'http' },
    },
    channels,
    operations,
    components: { messages: Object.fromEntries(all.map((one) => [one.name, one])) },
  };
};
