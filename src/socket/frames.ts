import { type Static, type TSchema, Type } from '@sinclair/typebox';
import {
  type Check,
  compileCheck,
  findJsonProblem,
  readJson,
  sayFirst,
} from '../http/validation.js';
import { defineFaults, type Fault, refuse } from '../kit/fault.js';
import type { Session } from './session.js';

/** The protocol of the socket: JSON objects, one a frame, told apart by `op`. */

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

/**
 * Why a socket was closed. The code alone tells a client what to do: 400x, do not try again
 * unchanged; 410x, back off and try again; 420x, connect again now, within the spread given.
 */
export const close_codes = {
  BAD_FRAME: 4000,
  UNAUTHENTICATED: 4001,
  FORBIDDEN: 4003,
  TOO_MANY_CONNECTIONS: 4005,
  AUTH_TIMEOUT: 4008,
  OVERLOAD: 4100,
  SLOW: 4101,
  RATE: 4102,
  CREDENTIAL_EXPIRED: 4103,
  DRAINING: 4200,
  LIFETIME: 4202,
} as const;

export type CloseCode = (typeof close_codes)[keyof typeof close_codes];

/** What a refused credential or a refused connection closes with. */
export const closeCodeOf = (fault: Fault): CloseCode => {
  const { status, code } = fault.def;
  if (code === 'TOO_MANY_CONNECTIONS') return close_codes.TOO_MANY_CONNECTIONS;
  if (code === 'AUTH_TIMEOUT') return close_codes.AUTH_TIMEOUT;
  if (status === 429) return close_codes.RATE;
  if (status >= 500) return close_codes.OVERLOAD;
  return status === 403 ? close_codes.FORBIDDEN : close_codes.UNAUTHENTICATED;
};

/** The member `id` of a frame: its answer carries the same. */
export const frame_id = Type.Optional(
  Type.Union([Type.Integer({ minimum: 0 }), Type.String({ maxLength: 64 })]),
);
export type FrameId = string | number | undefined;

/** The text of a frame to a client; an `id` that is undefined is left out. */
export const makeFrame = (
  op: string,
  id: FrameId,
  members: Readonly<Record<string, unknown>>,
): string => JSON.stringify({ op, id, ...members });

/** `id` is that of the frame that it answers. */
export const errorFrame = ({ def, message, fields }: Fault, id?: FrameId): string =>
  makeFrame('error', id, { code: def.code, error: message, retryable: def.retryable, fields });

/** Lets pass what a client wants of a topic. */
export interface Filter {
  /** Equal for filters that let the same pass. */
  readonly key: string;
  /** As the client is shown it. */
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

export const passes = ({ filter }: TopicRef, publication: Publication): boolean =>
  filter === undefined || filter.matches(publication);

/** The end of an event frame, made once for all topics of the publication. */
export const frameTail = ({ id, body }: Publication): string => `"id":"${id}",${body.slice(1)}`;

/** `prev` is the offset of the event before on this topic, as far as the filter lets it pass. */
export const eventFrame = (label: string, prev: number, offset: number, tail: string): string =>
  `{"op":"event","topic":${JSON.stringify(label)},"offset":${offset},"prev":${prev},${tail}`;

/**
 * An op is what clients may say. A frame is parsed, counted against the frame limit and checked
 * before `take` gets it. `take` must not throw and must not wait. It returns the text of the
 * answer, or a fault, which becomes an error frame with the id of the frame, or '' when the answer
 * comes later, by `session.send(text)`.
 */
export interface Op<F = unknown> {
  readonly schema: TSchema;
  /** Largest frame of this op; without it, that of all others. */
  readonly most_bytes?: number;
  /** Its contents are checked later: only the syntax of the frame is looked at. */
  readonly is_envelope?: boolean;
  /** False: it has a limit of its own, and is not counted against that of frames. */
  readonly is_counted?: boolean;
  /** `text` is that of the whole frame. */
  readonly take: (session: Session, frame: F, text: string) => string | Fault;
}

export type Ops = Readonly<Record<string, Op>>;

/** Gives `take` the type of the schema. */
export const defineOp = <S extends TSchema>(op: Op<Static<S>> & { readonly schema: S }): Op =>
  op as unknown as Op;

export type ReadFrame =
  | {
      readonly kind: 'frame';
      readonly op: Op;
      readonly id: FrameId;
      readonly value: unknown;
      readonly text: string;
    }
  /** Well-formed, but refused: the socket stays open. */
  | { readonly kind: 'refused'; readonly id: FrameId; readonly fault: Fault }
  /** Not a frame at all: the sender is broken, and the socket is closed. */
  | { readonly kind: 'broken'; readonly problem: string };

const checkId = compileCheck(Type.Object({ id: frame_id }), 'frame');
const broken = (problem: string): ReadFrame => ({ kind: 'broken', problem });

/** Reads one text frame; never throws. `frame_bytes` bounds frames of ops that say nothing else. */
export const makeFrameReader = (ops: Ops, frame_bytes: number) => {
  const checks = new Map<string, Check>();
  for (const [name, op] of Object.entries(ops)) checks.set(name, compileCheck(op.schema, 'frame'));
  const most_of_all = Math.max(...Object.values(ops).map((op) => op.most_bytes ?? frame_bytes));
  const too_large = broken(`A frame has at most ${frame_bytes} bytes.`);

  return (raw: Buffer): ReadFrame => {
    if (raw.byteLength > most_of_all) return too_large;
    const parsed = readJson(raw);
    if (!parsed.ok) return broken(parsed.problem);
    const { value, text } = parsed;
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      return broken('A frame is a JSON object.');
    }
    const { op: name, id: given_id } = value as { op?: unknown; id?: unknown };
    if (typeof name !== 'string') return broken('A frame has an "op".');
    const id = checkId(value) === null ? (given_id as FrameId) : undefined;
    const check = checks.get(name);
    const op = check === undefined ? undefined : ops[name];
    const problem = op?.is_envelope === true ? null : findJsonProblem(value);
    if (problem !== null) return broken(problem);
    if (raw.byteLength > (op?.most_bytes ?? frame_bytes)) return too_large;
    if (check === undefined || op === undefined) {
      const message = `There is no op "${name.slice(0, 40)}".`;
      return { kind: 'refused', id, fault: refuse(ws_faults.UNKNOWN_OP, { message }) };
    }
    const fields = check(value);
    if (fields === null) return { kind: 'frame', op, id, value, text };
    const fault = refuse(ws_faults.INVALID_FRAME, { message: sayFirst('frame', fields), fields });
    return { kind: 'refused', id, fault };
  };
};
