import { Type } from '@sinclair/typebox';
import { defineFaults, type Fault } from '../fault.js';

/** The frames of the socket: JSON objects, one a frame, told apart by `op`. */

export const ws_faults = defineFaults({
  INVALID_FRAME: [400, 'validation', 'The frame does not have the expected shape.'],
  UNKNOWN_OP: [400, 'validation', 'There is no such op.'],
  INVALID_TOPIC: [400, 'validation', 'There is no such topic.'],
  INVALID_FILTER: [400, 'validation', 'The filter is not right.'],
  TOO_MANY_TOPICS: [400, 'limit', 'There are as many topics as there may be; leave one first.'],
  TOO_MANY_FILTERS: [429, 'limit', 'Too many different filters are in use; use a simpler one.'],
  ALREADY_AUTHENTICATED: [409, 'conflict', 'This socket is already authenticated.'],
  AUTH_TIMEOUT: [408, 'auth', 'The socket said neither who it is nor what it wants.'],
  TOO_MANY_CALLS: [
    429,
    'limit',
    'As many calls wait for their answers as may; read the answers, then call again.',
    true,
  ],
  CREDENTIALS_IN_CALL: [
    400,
    'auth',
    'A call is made by whoever opened the socket; leave credentials out of its headers.',
  ],
  TOO_MANY_CONNECTIONS: [429, 'limit', 'There are too many sockets open; close one first.'],
});

/** The member `id` of a frame: its answer carries the same. */
export const frame_id = Type.Optional(
  Type.Union([Type.Integer({ minimum: 0 }), Type.String({ maxLength: 64 })]),
);
export type FrameId = string | number | undefined;

/** The text of an error frame; `id` is that of the frame it answers. */
export const errorFrame = (fault: Fault, id?: FrameId): string =>
  JSON.stringify({
    op: 'error',
    ...(id === undefined ? {} : { id }),
    code: fault.def.code,
    error: fault.message,
    retryable: fault.def.retryable,
    ...(fault.fields === undefined ? {} : { fields: fault.fields }),
  });

/** Any other frame to a client. */
export const makeFrame = (
  op: string,
  id: FrameId,
  members: Readonly<Record<string, unknown>>,
): string => JSON.stringify({ op, ...(id === undefined ? {} : { id }), ...members });

/** Lets pass what a client wants of a topic. */
export interface Filter {
  /** Equal for filters that let the same pass. */
  readonly key: string;
  /** As it is told to the client. */
  readonly shown: Readonly<Record<string, unknown>>;
  readonly matches: (publication: Publication) => boolean;
}

/** A topic: `topic` is unique in the process, `label` is what the client calls it. */
export interface TopicRef {
  readonly topic: string;
  readonly label: string;
  /** Without one everything on the topic is wanted. */
  readonly filter?: Filter;
}

/** Equal for equal topics with equal filters. */
export const keyOf = ({ topic, filter }: TopicRef): string =>
  filter === undefined ? topic : `${topic} ${filter.key}`;

/** Something of the log that goes to sockets. */
export interface Publication {
  readonly offset: number;
  readonly id: string;
  readonly topics: readonly TopicRef[];
  /** A JSON object with at least one member; its members become members of the frame. */
  readonly body: string;
  /** What the feature's filters look at. */
  readonly about?: unknown;
}

/** The end of an event frame, made once for all topics of the publication. */
export const frameTail = ({ id, body }: Publication): string => `"id":"${id}",${body.slice(1)}`;

/** `prev` is the offset of the event before on this topic, as far as the filter lets it pass. */
export const eventFrame = (
  { label, prev }: { readonly label: string; readonly prev: number },
  offset: number,
  tail: string,
): string =>
  `{"op":"event","topic":${JSON.stringify(label)},"offset":${offset},"prev":${prev},${tail}`;
