import { type TSchema, Type } from '@sinclair/typebox';
import type { EventDef } from '../../kit/event.js';
import type { DocumentInfo } from '../../kit/http/openapi.js';
import { time_schema, uuid_schema } from '../../kit/http/openapi.js';
import { call_frame } from '../../kit/ws/calls.js';
import { socket_ops } from '../../kit/ws/hub.js';
import { catalogue } from '../events/index.js';
import { closings, sent_frames, state_topic_names, topic_names } from './frames.js';

/**
 * AsyncAPI 3.0 from the values that the service works with: the catalogue of events, the schemas of
 * the frames, topics and close codes. It says what the service does: it receives what clients send.
 */

interface Message {
  readonly name: string;
  readonly title: string;
  readonly summary: string;
  readonly payload: TSchema;
}

const offset = Type.Integer({ minimum: 0 });

const bodyOf = ({ name, data }: EventDef) => ({
  event: Type.Literal(name),
  data,
  timestamp: time_schema,
});

const placed = { offset, id: uuid_schema };

/** `question.created` as the last part of a name. */
const wordOf = (name: string): string => name.replaceAll('.', '_');

const messagesOf = (
  kind: string,
  members: (event: EventDef) => Readonly<Record<string, TSchema>>,
): readonly Message[] =>
  catalogue.map((event) => ({
    name: `${kind}_${wordOf(event.name)}`,
    title: event.name,
    summary:
      event.audience === 'author' ? `${event.about} For the author of that alone.` : event.about,
    payload: Type.Object(members(event)),
  }));

const frame_events = messagesOf('frame', (event) => ({
  op: Type.Literal('event'),
  topic: Type.String(),
  offset,
  prev: Type.Integer({ minimum: 0, description: 'The event before on this topic; 0 for none.' }),
  id: uuid_schema,
  ...bodyOf(event),
}));
const stream_events = messagesOf('stream', (event) => ({ ...placed, ...bodyOf(event) }));
const webhook_events = messagesOf('webhook', bodyOf);

const told_frames: readonly Message[] = Object.entries(sent_frames).map(
  ([op, { about, schema }]) => ({
    ...{ name: `frame_${op}`, title: op, summary: about, payload: schema },
  }),
);

/** What each op asks for; a new one does without until it stands here. */
const op_texts: Readonly<Record<string, string>> = {
  auth: 'Says who the socket speaks for, with an `api_key` or a `token`.',
  ping: 'Asks for a `pong` with the head of the log.',
  subscribe:
    'Follows topics: what happens from now on, what is behind `after`, or the `last` so many. ' +
    'A `filter` names `events`, `question_ids`, `categories`, `model_family` and `min_confidence`.',
  unsubscribe: 'Leaves topics.',
  call: 'Calls an operation as over HTTP; the answer is a `reply` with the same id.',
};

const client_frames: readonly Message[] = Object.entries({
  ...socket_ops,
  call: { schema: call_frame },
}).map(([op, { schema }]) => ({
  name: `client_${op}`,
  title: op,
  summary: op_texts[op] ?? `A frame {"op":"${op}", …}.`,
  payload: Type.Composite([Type.Object({ op: Type.Literal(op) }), schema as never]),
}));

const stream_signs: readonly Message[] = [
  {
    name: 'stream_tick',
    title: 'tick',
    summary: 'A sign of life; its id is the offset up to which everything was sent.',
    payload: Type.Object({ head: offset, time: time_schema }),
  },
];

const named = (messages: readonly Message[]): Record<string, unknown> =>
  Object.fromEntries(messages.map((one) => [one.name, one]));

const refsTo = (messages: readonly Message[], where: string) =>
  messages.map(({ name }) => ({ $ref: `#/${where}/${name}` }));

const channel = (messages: readonly Message[], more: Readonly<Record<string, unknown>>) => ({
  ...more,
  messages: Object.fromEntries(
    messages.map(({ name }) => [name, { $ref: `#/components/messages/${name}` }]),
  ),
});

const operation = (
  action: 'send' | 'receive',
  id: string,
  { messages, summary }: { readonly messages: readonly Message[]; readonly summary: string },
) => ({
  action,
  summary,
  channel: { $ref: `#/channels/${id}` },
  messages: refsTo(messages, `channels/${id}/messages`),
});

const log_query = Type.Object({
  topic: Type.Optional(Type.String({ description: 'Names of topics, with commas.' })),
  after: Type.Optional(offset),
});

const channels = (server_messages: readonly Message[]) => ({
  socket: channel([...client_frames, ...server_messages], {
    address: '/ws',
    title: 'The websocket',
    description: 'JSON text frames, one object a frame, told apart by `op`.',
    servers: [{ $ref: '#/servers/socket' }],
    bindings: { ws: { query: Type.Object({ token: Type.Optional(Type.String()) }) } },
    'x-topics': [...topic_names, ...state_topic_names],
    'x-close-codes': closings,
  }),
  stream: channel([...stream_events, ...stream_signs], {
    address: '/api/stream',
    title: 'Server-sent events',
    description: 'Resumes behind `Last-Event-ID`.',
    servers: [{ $ref: '#/servers/http' }],
    bindings: { http: {} },
    'x-query': log_query,
    'x-topics': topic_names,
  }),
  webhook: channel(webhook_events, {
    address: null,
    title: 'Webhooks',
    description: 'A POST to the address that was registered, signed; see POST /api/webhooks.',
  }),
});

export const makeAsyncApi = (info: DocumentInfo, public_url: string): Record<string, unknown> => {
  const { host, protocol } = new URL(public_url);
  const is_secure = protocol === 'https:';
  const server_messages = [...frame_events, ...told_frames];
  const all = [...client_frames, ...server_messages, ...stream_events, ...stream_signs];
  return {
    asyncapi: '3.0.0',
    info: { ...info, license: { name: 'Apache-2.0' } },
    defaultContentType: 'application/json',
    servers: {
      socket: { host, protocol: is_secure ? 'wss' : 'ws' },
      http: { host, protocol: is_secure ? 'https' : 'http' },
    },
    channels: channels(server_messages),
    operations: {
      receiveFrames: operation('receive', 'socket', {
        messages: client_frames,
        summary: 'What a client says on the websocket.',
      }),
      sendFrames: operation('send', 'socket', {
        messages: server_messages,
        summary: 'Events of the topics, states, answers and signs of life.',
      }),
      sendStream: operation('send', 'stream', {
        messages: [...stream_events, ...stream_signs],
        summary: 'Events of the topics, as server-sent events.',
      }),
      sendWebhooks: operation('send', 'webhook', {
        messages: webhook_events,
        summary: 'The events that a webhook asks for.',
      }),
    },
    components: { messages: named([...all, ...webhook_events]) },
  };
};
