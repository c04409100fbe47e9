import { type Static, type TSchema, Type } from '@sinclair/typebox';
import type { Logger } from 'pino';
import { defineFaults, type Fault, refuse } from '../fault.js';
import type { Credentials } from '../http/pipeline.js';
import type { Address, AddressReader } from '../http/request.js';
import type { Caller } from '../http/route.js';
import {
  type Check,
  compileCheck,
  findJsonProblem,
  readJson,
  sayFirst,
} from '../http/validation.js';
import type { Core } from './hub.js';
import type { Recent } from './recent.js';
import type { Seats, Session } from './session.js';
import type { StateSource } from './states.js';

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

/** What a hub is told by the feature that mounts it. */

export interface HubLimits {
  readonly frames_per_s: number;
  readonly frames_burst: number;
  readonly frame_bytes: number;
  /** Calls of one socket that may wait for their answers. */
  readonly calls: number;
  /** Topics of all sockets of a caller, and of one socket without a credential. */
  readonly topics: number;
  readonly topics_anonymous: number;
  /** Different filters on one topic, in this process. */
  readonly filters: number;
  /** Sockets of a caller and of an address, as `seats` counts them. */
  readonly connections_key: number;
  readonly connections_ip: number;
  readonly lifetime_ms: number;
  /** A socket without a credential must send a first frame within this time. */
  readonly hello_ms: number;
  readonly tick_ms: number;
  /** Shortest time between two states of one topic. */
  readonly state_gap_ms: number;
  /** Unread bytes of one socket above which messages are dropped. */
  readonly backpressure_bytes: number;
  /** The same of all sockets of this process: above it each of them may leave little unread. */
  readonly unread_bytes: number;
  /** How long a socket may leave what was sent unread before it is cut. */
  readonly unread_ms: number;
  /** Events that one subscribe frame may have replayed, and how far back it may look. */
  readonly replay_events: number;
  readonly replay_span: number;
  /** Longest that a replay may take; a client that reads slower than the log grows never ends. */
  readonly replay_ms: number;
  /** How long to wait for an offset that the client has seen and this process has not. */
  readonly ahead_ms: number;
  /** Closing all sockets takes this long at most. */
  readonly drain_ms: number;
}

export const default_limits: HubLimits = {
  frames_per_s: 20,
  frames_burst: 100,
  frame_bytes: 16_384,
  calls: 64,
  topics: 1_000,
  topics_anonymous: 20,
  filters: 1_000,
  connections_key: 20,
  connections_ip: 200,
  lifetime_ms: 4 * 3_600_000,
  hello_ms: 5_000,
  tick_ms: 15_000,
  state_gap_ms: 250,
  backpressure_bytes: 262_144,
  unread_bytes: 134_217_728,
  unread_ms: 10_000,
  replay_events: 10_000,
  replay_span: 100_000,
  replay_ms: 60_000,
  ahead_ms: 5_000,
  drain_ms: 5_000,
};

export interface LogSpan {
  /** Exclusive. */
  readonly after: number;
  /** Inclusive. */
  readonly until: number;
  readonly limit: number;
}

/** The record behind the sockets, for replays. May throw while its store is away. */
export interface LogSource {
  /** Publications of the span that any of the topics lets pass, in order, at most `limit`. */
  read(refs: readonly TopicRef[], span: LogSpan): Promise<readonly Publication[]>;
  /** How many `read` would find, counted no further than `limit`. */
  count(refs: readonly TopicRef[], span: LogSpan): Promise<number>;
  /** The offset of the `limit`-th newest that `read` would find; null when there are fewer. */
  nthNewest(refs: readonly TopicRef[], span: LogSpan): Promise<number | null>;
  /** The offset of the newest of each topic, by `keyOf`; one without events is left out. */
  newest(
    refs: readonly TopicRef[],
    span: Pick<LogSpan, 'after' | 'until'>,
  ): Promise<ReadonlyMap<string, number>>;
  /** The oldest offset still kept. */
  oldest(): number;
}

export interface HubOptions {
  readonly path: string;
  readonly node: string;
  readonly log: Logger;
  readonly limits?: Partial<HubLimits>;
  readonly readAddress: AddressReader;
  /** As for a request; a value of `?token=` arrives as one of the two credentials. */
  readonly authenticate: (credentials: Credentials) => Caller | Fault | Promise<Caller | Fault>;
  /** Splits a `token` into the credential it is. */
  readonly readToken: (token: string) => Credentials;
  /** Counts connections over all processes; without it, those of this one. */
  readonly seats?: Seats;
  /** Whether another connection may be opened at all; without it everybody may. */
  readonly admit?: (address: Address) => Promise<Fault | null>;
  /** The filter that a client asks for; null for one that lets everything pass. */
  readonly readFilter: (given: unknown) => Filter | Fault | null;
  readonly resolveTopic: (label: string, caller: Caller) => TopicRef | Fault;
  /** Topics of a socket with `?token=` that does not subscribe. */
  readonly defaultTopics: (caller: Caller) => readonly TopicRef[];
  readonly source: LogSource;
  /** Where the newest publications are kept; it may be shared. */
  readonly recent: Recent<Publication>;
  /** Topics that are a state; see `states.ts`. */
  readonly states?: readonly StateSource[];
  /** What clients may say beside the ops of every socket; see `ops.ts`. */
  readonly ops?: Ops;
  /** Where a client finds by itself what cannot be replayed. */
  readonly backfill: (ref: TopicRef, after: number) => string;
}

/**
 * What clients may say: a registry of ops. Those of every socket stand in `inbound.ts`; a feature
 * adds its own through `ops` of the hub's options.
 *
 *   const ops = {
 *     shout: defineOp({
 *       schema: Type.Object({ id: frame_id, text: Type.String() }),
 *       take: (core, session, { id, text }) => makeFrame('shouted', id, { text }),
 *     }),
 *   };
 *
 * A frame is parsed, counted against the frame limit and checked before `take` gets it; frames
 * that come while a credential is looked up arrive after it. `take` must not throw and must not
 * wait. It returns the text of the answer, or a fault, which becomes an error frame with the id of
 * the frame, or '' when the answer comes later: by `sendText(core, session, text)`, which does
 * nothing once the socket is gone. `session.caller` says who asks at that moment, `session.address`
 * from where. What an op keeps for each socket goes into a `WeakMap` under the session.
 */
export interface Op<F = unknown> {
  readonly schema: TSchema;
  /** Largest frame of this op; without it, that of all others. At most `payload_bytes`. */
  readonly most_bytes?: number;
  /** What it carries is somebody else's: only the syntax of the frame has been looked at. */
  readonly is_envelope?: boolean;
  /** False: it has a limit of its own, and is not counted against that of frames. */
  readonly is_counted?: boolean;
  /** `text` is that of the whole frame. */
  readonly take: (core: Core, session: Session, frame: F, text: string) => string | Fault;
}

export type Ops = Readonly<Record<string, Op>>;

/** Gives `take` the type of the schema. */
export const defineOp = <S extends TSchema>(op: {
  readonly schema: S;
  readonly most_bytes?: number;
  readonly is_envelope?: boolean;
  readonly is_counted?: boolean;
  readonly take: (core: Core, session: Session, frame: Static<S>, text: string) => string | Fault;
}): Op => op as unknown as Op;

interface Frame {
  readonly op: Op;
  readonly id: FrameId;
  readonly value: unknown;
  readonly text: string;
}

export type ReadFrame =
  | { readonly kind: 'frame'; readonly frame: Frame }
  /** Well-formed, but refused: the socket stays open. */
  | { readonly kind: 'refused'; readonly id: FrameId; readonly fault: Fault }
  /** Not a frame at all: the sender is broken, and the socket is closed. */
  | { readonly kind: 'broken'; readonly problem: string };

export type FrameReader = (raw: Buffer) => ReadFrame;

const checkId = compileCheck(Type.Object({ id: frame_id }), 'frame');
const broken = (problem: string): ReadFrame => ({ kind: 'broken', problem });

const tooLarge = (most: number) => broken(`A frame has at most ${most} bytes.`);

/** Reads one text frame; never throws. `frame_bytes` bounds frames of ops that say nothing else. */
export const makeFrameReader = (ops: Ops, frame_bytes: number): FrameReader => {
  const checks = new Map<string, Check>();
  for (const [name, op] of Object.entries(ops)) checks.set(name, compileCheck(op.schema, 'frame'));
  const most_of_all = Math.max(...Object.values(ops).map((op) => op.most_bytes ?? frame_bytes));

  return (raw) => {
    if (raw.byteLength > most_of_all) return tooLarge(frame_bytes);
    const parsed = readJson(raw);
    if (!parsed.ok) return broken(parsed.problem);
    const { value, text } = parsed;
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      return broken('A frame is a JSON object.');
    }
    const { op: name, id } = value as { op?: unknown; id?: unknown };
    if (typeof name !== 'string') return broken('A frame has an "op".');
    const known_id = checkId(value) === null ? (id as FrameId) : undefined;
    const check = checks.get(name);
    const op = ops[name];
    const problem = op?.is_envelope === true ? null : findJsonProblem(value);
    if (problem !== null) return broken(problem);
    const most_bytes = op?.most_bytes ?? frame_bytes;
    if (raw.byteLength > most_bytes) return tooLarge(most_bytes);
    if (check === undefined || op === undefined) {
      const message = `There is no op "${name.slice(0, 40)}".`;
      return { kind: 'refused', id: known_id, fault: refuse(ws_faults.UNKNOWN_OP, { message }) };
    }
    const fields = check(value);
    if (fields !== null) {
      const fault = refuse(ws_faults.INVALID_FRAME, { message: sayFirst('frame', fields), fields });
      return { kind: 'refused', id: known_id, fault };
    }
    return { kind: 'frame', frame: { op, id: known_id, value, text } };
  };
};
