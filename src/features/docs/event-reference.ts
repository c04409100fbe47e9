import { makeHeaders } from '../webhooks/index.js';
import {
  event_examples,
  event_ids,
  event_time,
  example_delivery_id,
  example_secret,
  frame_examples,
} from './event-examples.js';
import type { Value } from './examples.js';
import { type Member, membersOf, type Schema } from './shape.js';

/** The reference of events as a value, read from the AsyncAPI document. */

export interface EventLine {
  readonly name: string;
  readonly about: string;
  readonly data: readonly Member[];
  /** A frame of the socket, and the delivery to a webhook, as text. */
  readonly frame: string;
  readonly delivery: Delivery;
}

export interface Delivery {
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string;
}

export interface FrameLine {
  readonly op: string;
  readonly about: string;
  readonly members: readonly Member[];
  readonly example: string | null;
}

export interface Closing {
  readonly code: number;
  readonly name: string;
  readonly advice: string;
}

export interface Topic {
  readonly name: string;
  readonly about: string;
}

export interface EventReference {
  readonly version: string;
  readonly events: readonly EventLine[];
  readonly asked: readonly FrameLine[];
  readonly told: readonly FrameLine[];
  readonly topics: readonly Topic[];
  readonly closings: readonly Closing[];
  readonly prefix: string;
}

const none = new Map<string, string>();

const show = (value: Value): string => JSON.stringify(value, null, 2);

/** Unix seconds of the attempt that is shown. */
const attempt_s = Math.floor(Date.parse(event_time) / 1_000) + 1;

/** What a webhook with the example's secret receives. */
export const makeDelivery = (event: string, prefix: string): Delivery => {
  const data = event_examples[event] ?? {};
  const body = JSON.stringify({ event, data, timestamp: event_time });
  const headers = makeHeaders({
    ...{ key: Buffer.from(example_secret), old_key: null, event, prefix },
    ...{ body: Buffer.from(body), event_id: event_ids.id, timestamp_s: attempt_s },
    ...{ delivery_id: example_delivery_id, attempt: 1, offset: event_ids.offset },
  });
  return { body, headers: Object.entries(headers) };
};

const topicOf = (event: string, data: Readonly<Record<string, Value>>): string =>
  event === 'comment.reply' ? 'me' : `question:${data['question_id']}`;

const eventOf = (message: Schema, prefix: string): EventLine => {
  const name = String(message.title);
  const data = event_examples[name] ?? {};
  const { offset, prev, id } = event_ids;
  const frame = { op: 'event', topic: topicOf(name, data), offset, prev, id, event: name, data };
  return {
    ...{ name, about: String(message.summary) },
    data: membersOf(message.payload.properties.data, none),
    frame: show({ ...frame, timestamp: event_time }),
    delivery: makeDelivery(name, prefix),
  };
};

const frameOf = ({ title, summary, payload }: Schema): FrameLine => {
  const example = frame_examples[title];
  return {
    ...{ op: String(title), about: String(summary) },
    members: membersOf(payload, none).filter(({ name }) => name !== 'op'),
    example: example === undefined ? null : show(example),
  };
};

export const readEvents = (document: Schema, prefix: string): EventReference => {
  const messages = Object.entries(document.components.messages as Record<string, Schema>);
  const starting = (start: string): readonly Schema[] =>
    messages.filter(([name]) => name.startsWith(start)).map(([, message]) => message);
  const frames = starting('frame_');
  const isEvent = ({ payload }: Schema): boolean => payload.properties.op?.const === 'event';
  const { socket } = document.channels;
  return {
    version: document.info.version,
    events: frames.filter(isEvent).map((message) => eventOf(message, prefix)),
    asked: starting('client_').map(frameOf),
    told: frames.filter((message) => !isEvent(message)).map(frameOf),
    topics: socket['x-topics'],
    closings: socket['x-close-codes'],
    prefix,
  };
};
