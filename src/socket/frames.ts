import { type TSchema, Type } from '@sinclair/typebox';
import { compileCheck, findInexactProblem, findJsonProblem, readJson } from '../http/validation.js';
import { defineFaults, type Fault, refuse, sayFirst } from '../kit/fault.js';

/** The protocol of the socket: JSON objects, one per frame, each named by its `op`. */

export const ws_faults = defineFaults({
  INVALID_FRAME: [400, 'validation', 'The frame does not have the expected shape.'],
  UNKNOWN_OP: [400, 'validation', 'There is no such op.'],
  INVALID_TOPIC: [400, 'validation', 'There is no such topic.'],
  INVALID_FILTER: [400, 'validation', 'The filter is invalid.'],
  TOO_MANY_TOPICS: [400, 'limit', 'Too many topics. Unsubscribe from one first.'],
  TOO_MANY_FILTERS: [
    429,
    'limit',
    'Too many different filters are in use. Use a simpler one, or try again later.',
    true,
  ],
  ALREADY_AUTHENTICATED: [409, 'conflict', 'This socket is already authenticated.'],
  AUTH_TIMEOUT: [
    408,
    'auth',
    'The socket sent neither a credential nor a subscription in time. Connect again and send one.',
  ],
  TOO_MANY_CALLS: [429, 'limit', 'Too many calls are in flight. Read the replies first.', true],
  CREDENTIALS_IN_CALL: [
    400,
    'auth',
    'The socket is already authenticated. Do not send credentials in the headers of a call.',
  ],
  TOO_MANY_CONNECTIONS: [
    429,
    'limit',
    'Too many connections are open. Close one, or try again in a few seconds.',
    true,
  ],
});

export const default_limits = {
  frames_per_s: 20,
  frames_burst: 100,
  frame_bytes: 16_384,
  /** Maximum number of unanswered calls of one socket. */
  calls: 64,
  /** Maximum number of topics of all sockets of a caller, or of one anonymous socket. */
  topics: 1_000,
  topics_anonymous: 20,
  /** Maximum number of different filters on one topic, in this process. */
  filters: 1_000,
  /** Maximum number of sockets of a caller and of an address, over all processes. */
  connections_key: 20,
  connections_ip: 200,
  lifetime_ms: 4 * 3_600_000,
  /** A socket that is asked for a sign of life must answer within this time. */
  alive_ms: 3_000,
  /** A socket without a credential must send its first frame within this time. */
  hello_ms: 5_000,
  tick_ms: 15_000,
  /** Minimum time between two states of one topic. */
  state_gap_ms: 250,
  /** A socket with more unread bytes than this leaves the live stream. */
  backpressure_bytes: 262_144,
  /**
   * Unread bytes of all sockets of this process. Above this, each socket may leave little unread.
   */
  unread_bytes: 134_217_728,
  /** How long a socket may leave sent data unread before it is cut. */
  unread_ms: 10_000,
  /** Maximum number of events that one subscribe frame may replay, and how far back it may look. */
  replay_events: 10_000,
  replay_span: 100_000,
  /**
   * Maximum duration of a replay. A client that reads slower than the log grows would never finish.
   */
  replay_ms: 60_000,
  /** How long to wait for an offset that the client has seen and this process has not. */
  ahead_ms: 5_000,
  /** Closing all sockets takes at most this long. */
  drain_ms: 5_000,
};

export type HubLimits = Readonly<typeof default_limits>;

/**
 * Reasons why a socket was closed. The code alone tells a client what to do: 400x, do not try again
 * unchanged; 410x, back off and try again; 420x, connect again now, within the given spread.
 */
export const close_codes = {
  BAD_FRAME: 4000,
  UNAUTHENTICATED: 4001,
  FORBIDDEN: 4003,
  AUTH_TIMEOUT: 4008,
  OVERLOAD: 4100,
  SLOW: 4101,
  RATE: 4102,
  CREDENTIAL_EXPIRED: 4103,
  TOO_MANY_CONNECTIONS: 4104,
  DRAINING: 4200,
  LIFETIME: 4202,
} as const;

export type CloseCode = (typeof close_codes)[keyof typeof close_codes];

/** Returns the close code for a refused credential or a refused connection. */
export const closeCodeOf = (fault: Fault): CloseCode => {
  const { status, code } = fault.def;
  if (code === 'TOO_MANY_CONNECTIONS') return close_codes.TOO_MANY_CONNECTIONS;
  if (code === 'AUTH_TIMEOUT') return close_codes.AUTH_TIMEOUT;
  if (status === 429) return close_codes.RATE;
  if (status >= 500) return close_codes.OVERLOAD;
  return status === 403 ? close_codes.FORBIDDEN : close_codes.UNAUTHENTICATED;
};

/** The member `id` of a frame. Its answer carries the same value. */
export const frame_id = Type.Optional(
  Type.Union([Type.Integer({ minimum: 0 }), Type.String({ maxLength: 64 })]),
);
export type FrameId = string | number | undefined;

/** Returns the text of a frame to a client. An undefined `id` is left out. */
export const makeFrame = (
  op: string,
  id: FrameId,
  members: Readonly<Record<string, unknown>>,
): string => JSON.stringify({ op, id, ...members });

/** `id` is the id of the frame that this frame answers. */
export const errorFrame = ({ def, message, fields }: Fault, id?: FrameId): string =>
  makeFrame('error', id, { code: def.code, error: message, retryable: def.retryable, fields });

/** Selects the publications of a topic that a client wants. */
export interface Filter {
  /** Equal for filters that select the same publications. */
  readonly key: string;
  /** The filter as it is shown to the client. */
  readonly shown: Readonly<Record<string, unknown>>;
  readonly matches: (publication: Publication) => boolean;
}

/** A topic. `topic` is unique in the process; `label` is the client's name for it. */
export interface TopicRef {
  readonly topic: string;
  readonly label: string;
  /** Without a filter, everything on the topic is wanted. */
  readonly filter?: Filter;
}

/** Returns the same key for equal topics with equal filters. */
export const keyOf = ({ topic, filter }: TopicRef): string =>
  filter === undefined ? topic : `${topic} ${filter.key}`;

/** An entry of the log that is sent to sockets. */
export interface Publication {
  readonly offset: number;
  readonly id: string;
  readonly topics: readonly TopicRef[];
  /** A JSON object with at least one member. Its members become members of the frame. */
  readonly body: string;
  /** Data that the feature's filters read. */
  readonly about?: unknown;
}

export const passes = ({ filter }: TopicRef, publication: Publication): boolean =>
  filter === undefined || filter.matches(publication);

/** `prev` is the offset of the previous event on this topic that passes the filter. */
export const eventFrame = (
  { label }: TopicRef,
  prev: number,
  { offset, id, body }: Publication,
): string => {
  const head = `{"op":"event","topic":${JSON.stringify(label)},"offset":${offset},"prev":${prev}`;
  return `${head},"id":"${id}",${body.slice(1)}`;
};

/** Describes the frames of an op. */
export interface FrameShape {
  readonly schema: TSchema;
  /** Maximum size of a frame of this op. Without it, the general limit applies. */
  readonly max_bytes?: number;
  /** True if only the syntax of the frame is checked here, and its contents are checked later. */
  readonly is_envelope?: boolean;
  /** False if the op has its own limit and does not count against the frame limit. */
  readonly is_counted?: boolean;
}

export type ReadFrame<O> =
  | { readonly op: O; readonly id: FrameId; readonly value: unknown; readonly text: string }
  /** A well-formed frame that is refused. The socket stays open. */
  | { readonly id: FrameId; readonly fault: Fault }
  /** Not a frame at all: the sender is broken, and the socket is closed. */
  | { readonly problem: string };

const checkId = compileCheck(Type.Object({ id: frame_id }), 'frame');

/** Reads one text frame; never throws. `frame_bytes` limits frames of ops without `max_bytes`. */
export const makeFrameReader = <O extends FrameShape>(
  ops: Readonly<Record<string, O>>,
  frame_bytes: number,
) => {
  const known = new Map(
    Object.entries(ops).map(([name, op]) => [
      name,
      { op, max_bytes: op.max_bytes ?? frame_bytes, check: compileCheck(op.schema, 'frame') },
    ]),
  );
  const max_total = Math.max(...[...known.values()].map(({ max_bytes }) => max_bytes));
  const too_large = { problem: `The frame is too long. Send at most ${frame_bytes} bytes.` };

  return (raw: Buffer): ReadFrame<O> => {
    if (raw.byteLength > max_total) return too_large;
    const parsed = readJson(raw);
    if (!parsed.ok) return { problem: parsed.problem };
    const { value, text } = parsed;
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      return { problem: 'A frame must be a JSON object.' };
    }
    const { op: name, id: given_id } = value as { op?: unknown; id?: unknown };
    if (typeof name !== 'string') return { problem: 'A frame must have an "op".' };
    const entry = known.get(name);
    const problem =
      entry?.op.is_envelope === true ? null : (findJsonProblem(value) ?? findInexactProblem(text));
    if (problem !== null) return { problem };
    if (raw.byteLength > (entry?.max_bytes ?? frame_bytes)) return too_large;
    const id = checkId(value) === null ? (given_id as FrameId) : undefined;
    if (entry === undefined) {
      const message = `There is no op "${name.slice(0, 40)}".`;
      return { id, fault: refuse(ws_faults.UNKNOWN_OP, { message }) };
    }
    const fields = entry.check(value);
    if (fields === null) return { op: entry.op, id, value, text };
    const message = sayFirst('frame', fields);
    return { id, fault: refuse(ws_faults.INVALID_FRAME, { message, fields }) };
  };
};
