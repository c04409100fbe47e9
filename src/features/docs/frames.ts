import { type TSchema, Type } from '@sinclair/typebox';
import { textEnum, time_schema } from '../../kit/http/openapi.js';
import { close_codes, frame_id } from '../../kit/ws/frames.js';

/** The frames of the socket that the service sends, beside the events themselves, by op. */

const offset = Type.Integer({ minimum: 0 });
const count = Type.Integer({ minimum: 0 });
const topic = Type.String();
const topics = Type.Array(topic);
const number_map = Type.Record(Type.String(), Type.Integer());

interface Sent {
  readonly about: string;
  readonly schema: TSchema;
}

const frame = (
  about: string,
  op: string,
  members: Readonly<Record<string, TSchema>>,
): readonly [string, Sent] => [
  op,
  { about, schema: Type.Object({ op: Type.Literal(op), ...members }) },
];

export const sent_frames: Readonly<Record<string, Sent>> = Object.fromEntries([
  frame(
    'The first frame: who the socket speaks for, where the log stands, its limits.',
    'welcome',
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
  ),
  frame('The socket speaks for another caller from now on.', 'authenticated', {
    id: frame_id,
    as: Type.String(),
  }),
  frame('The topics are live; what was missed came before.', 'subscribed', {
    id: frame_id,
    topics,
    filter: Type.Optional(Type.Object({})),
    head: offset,
    result: textEnum(['live', 'recovered', 'gap'] as const),
    replayed: count,
  }),
  frame('The topics are left.', 'unsubscribed', { id: frame_id, topics }),
  frame('How a state topic stands.', 'snapshot', {
    topic,
    version: Type.Integer(),
    data: Type.Object({}),
    hash: Type.String(),
  }),
  frame('What is different from the version before; null for a member that is gone.', 'delta', {
    topic,
    version: Type.Integer(),
    from: Type.Integer(),
    set: Type.Object({}),
    hash: Type.Optional(Type.String()),
  }),
  frame('A sign of life, with the newest offset and that of each topic.', 'tick', {
    time: time_schema,
    head: Type.Integer(),
    heads: number_map,
  }),
  frame('A part of a topic that is not sent, and where it is.', 'gap', {
    topic,
    after: offset,
    until: offset,
    reason: textEnum(['expired', 'slow', 'epoch'] as const),
    backfill: Type.String(),
  }),
  frame('The answer to a call: that of the route.', 'reply', {
    id: frame_id,
    status: Type.Integer({ minimum: 100, maximum: 599 }),
    headers: Type.Optional(Type.Record(Type.String(), Type.String())),
    body: Type.Optional(Type.Unknown()),
  }),
  frame('The answer to a ping.', 'pong', { id: frame_id, time: time_schema, head: Type.Integer() }),
  frame('Why a frame is refused.', 'error', {
    id: frame_id,
    code: Type.String(),
    error: Type.String(),
    retryable: Type.Boolean(),
    fields: Type.Optional(Type.Array(Type.Object({ path: Type.String() }))),
  }),
  frame('The socket is about to be closed: come back within so many milliseconds.', 'bye', {
    code: Type.Integer(),
    reason: Type.String(),
    spread_ms: count,
  }),
]);

/** What a close code asks of a client. */
export const closings = Object.entries(close_codes).map(([name, code]) => ({
  code,
  name,
  advice:
    code < 4100
      ? 'Do not try again unchanged.'
      : code < 4200
        ? 'Back off, then try again.'
        : 'Connect again now, within the spread that was given.',
}));

/** Names of topics; what stands in braces is filled in. */
export const topic_names = [
  { name: 'all', about: 'Every public event.' },
  { name: 'question:{id}', about: 'Events of one question.' },
  { name: 'category:{slug}', about: 'Events of the questions of one category.' },
  { name: 'subcategory:{slug}', about: 'Events of the questions of one subcategory.' },
  { name: 'agent:{id}', about: 'Public acts of one agent.' },
  { name: 'me', about: 'What is for the agent alone whose key was sent.' },
] as const;

/** Topics of the socket that are a state and not a part of the log. */
export const state_topic_names = [
  { name: 'consensus:{id}', about: 'The consensus on one question: a snapshot, then deltas.' },
  {
    name: 'leaderboard:{by}:{period}',
    about: 'The first twenty of a board; `all` time by default.',
  },
  { name: 'system', about: 'What to know of the process at the other end.' },
] as const;
