import { randomBytes } from 'node:crypto';
import type { Static, TSchema } from '@sinclair/typebox';
import pLimit from 'p-limit';
import type { Logger } from 'pino';
import type { Address, AddressReader } from '../http/call.js';
import { anonymous, type Caller, callerKey } from '../http/caller.js';
import type { Credentials } from '../http/credentials.js';
import { toBytes, type WebSocket } from '../http/uws.js';
import type { Fault } from '../kit/fault.js';
import { describeError } from '../kit/log.js';
import type { ConnectionCounter } from './connections.js';
import {
  type CloseCode,
  close_codes,
  default_limits,
  type Filter,
  type FrameId,
  type FrameShape,
  type HubLimits,
  keyOf,
  makeFrame,
  makeFrameReader,
  type Publication,
  type ReadFrame,
  type TopicRef,
} from './frames.js';
import type { Recent } from './recent.js';
import { type StateSource, States } from './states.js';

/**
 * One socket with its caller, its topics and its calls, and the state that all sockets of a process
 * share. The work is done in admission (the caller of a socket), subscribe (its topics), calls, and
 * hub (events, ticks, closing).
 */

export interface LogSpan {
  /** Exclusive. */
  readonly after: number;
  /** Inclusive. */
  readonly until: number;
  readonly limit: number;
}

/** The stored log, for replays. Its functions may throw while the store is unavailable. */
export interface LogSource {
  /**
   * Returns the publications of the span that match any of the topics, in order, at most `limit`.
   */
  read(refs: readonly TopicRef[], span: LogSpan): Promise<readonly Publication[]>;
  /** Counts the publications that `read` would find, up to `limit`. */
  count(refs: readonly TopicRef[], span: LogSpan): Promise<number>;
  /**
   * Returns the offset of the `limit`-th newest publication that matches; null if there are fewer.
   */
  nthNewest(refs: readonly TopicRef[], span: LogSpan): Promise<number | null>;
  /**
   * Returns the offset of the newest event per topic, keyed by `keyOf`. Topics without events are
   * left out.
   */
  newest(
    refs: readonly TopicRef[],
    span: Pick<LogSpan, 'after' | 'until'>,
  ): Promise<ReadonlyMap<string, number>>;
  /** The oldest offset that is still stored. */
  oldest(): number;
}

export interface HubOptions {
  readonly path: string;
  readonly node: string;
  readonly log: Logger;
  readonly limits?: Partial<HubLimits>;
  readonly readAddress: AddressReader;
  /** Authenticates like a request. `readToken` has already turned a `?token=` into credentials. */
  readonly authenticate: (credentials: Credentials) => Caller | Fault | Promise<Caller | Fault>;
  /** Turns a `?token=` into credentials of the right kind. */
  readonly readToken: (token: string) => Credentials;
  /** Only a page of this origin may open a socket with the session cookie of its user. */
  readonly origin?: () => string;
  readonly connections: ConnectionCounter;
  /** Returns a fault if no further connection may be opened. If missing, there is no such check. */
  readonly admit?: (address: Address) => Promise<Fault | null>;
  /** Reads the filter of a subscribe frame; null if the filter lets everything pass. */
  readonly readFilter: (frame: { readonly filter?: unknown }) => Filter | Fault | null;
  readonly resolveTopic: (label: string, caller: Caller) => TopicRef | Fault;
  /** Returns the topics of a socket with `?token=` that does not subscribe. */
  readonly defaultTopics: (caller: Caller) => readonly TopicRef[];
  readonly source: LogSource;
  /** Stores the newest publications. It may be shared. */
  readonly recent: Recent<Publication>;
  /** Returns the digest of the log at an offset, if this process has it. */
  readonly digestAt?: (offset: number) => string | undefined;
  /** Sources of state topics. */
  readonly states?: readonly StateSource[];
  /** Ops in addition to `socket_ops`. */
  readonly ops?: Ops;
  /** Returns the address at which a client can fetch events that cannot be replayed. */
  readonly backfill: (ref: TopicRef, after: number) => string;
}

/**
 * An op is a kind of frame that clients may send. A frame is parsed, counted against the frame
 * limit and checked before `take` gets it. `take` must not throw or wait. It returns the text of
 * the answer; or a fault, which becomes an error frame with the same id; or '' if
 * `session.send(text)` sends the answer later.
 */
export interface Op<F = unknown> extends FrameShape {
  /** `text` is the text of the whole frame. */
  readonly take: (session: Session, frame: F, text: string) => string | Fault;
}

export type Ops = Readonly<Record<string, Op>>;

/** Gives `take` the type of the schema. */
export const defineOp = <S extends TSchema>(op: Op<Static<S>> & { readonly schema: S }): Op =>
  op as unknown as Op;

/** The calls of a socket that are in flight (calls.ts). */
interface OpenCalls {
  /** Number of calls whose reply has not been sent. */
  readonly in_flight: number;
  /** Sends the replies that the connection has room for. */
  sendReady(): void;
  /** Calls `done` after the reply to the call that revoked the credentials; now if no call did. */
  whenAnswered(done: () => void): void;
  onClose(): void;
}

/**
 * The subscribers of a topic with one filter, or without a filter. Sockets with equal filters share
 * a channel, and each frame is made once for all of them. The channel stores the offset of its
 * newest event, which the next event carries as `prev`.
 */
export interface Channel extends TopicRef {
  readonly sessions: Set<Session>;
  /** Offset of the newest event on this topic that passes the filter; 0 before the first one. */
  prev: number;
}

/** Topics that are catching up with the head and are not live until then. */
export interface Join {
  /** By topic. If the client leaves a topic or subscribes to it again, the topic is removed. */
  readonly refs: Map<string, TopicRef>;
  /** By topic, the offset of the client's newest event; empty until these offsets are known. */
  prevs: Map<string, number>;
  /** The client has everything on these topics up to this offset. */
  cursor: number;
  /** Start of the replay: the cursor, the head, or the newest `last` events. */
  readonly from: 'cursor' | 'head' | { readonly last: number };
  /**
   * The frame to answer, and the other topics of that answer. Null if the client did not ask for
   * this join.
   */
  readonly answer: {
    readonly id: FrameId;
    readonly labels: readonly string[];
    readonly filter: Filter['shown'] | undefined;
  } | null;
  /** True if the socket read too slowly and left the live stream. */
  readonly is_slow?: boolean;
}

/** The parts of an upgrade request that a session keeps. */
export interface UpgradeRequest {
  readonly address: Address;
  readonly credentials: Credentials;
  /** True if `?token=` was used. The socket then gets the default topics until it subscribes. */
  readonly by_token: boolean;
  /**
   * True if the credentials come from the session cookie. If they have expired, the socket is
   * anonymous.
   */
  readonly by_cookie: boolean;
}

/** The state that the sockets of a process share. */
export type Core = ReturnType<typeof makeCore>;

/** Asks for the newest event of a topic up to an offset. */
export interface PrevRequest {
  readonly ref: TopicRef;
  readonly until: number;
}

interface CoreParts {
  readonly ops: Ops;
  readonly makePrevReader: (
    source: LogSource,
    span_most: number,
  ) => (request: PrevRequest) => Promise<number>;
  /** Sends a frame to the sockets of a channel, by its key. */
  readonly publish: (key: string, frame: Uint8Array) => void;
}

/** Maximum number of replays that read the log at the same time. */
const max_readers = 4;

export const makeCore = (options: HubOptions, parts: CoreParts) => {
  const { ops, makePrevReader, publish } = parts;
  const { log, recent, source, connections } = options;
  const limits: HubLimits = { ...default_limits, ...options.limits };
  /** Logs an error that should never be thrown. The process goes on. */
  const onBug = (error: unknown): void => {
    log.error(describeError(error), 'ws: a callback threw');
  };
  return {
    options,
    limits,
    log,
    recent,
    connections,
    publish,
    onBug,
    sessions: new Set<Session>(),
    /** Sockets by the names under which they are counted, the oldest first. */
    by_name: new Map<string, Set<Session>>(),
    /** Names whose sockets are being asked for a sign of life. */
    asked: new Set<string>(),
    /** Channels by topic, then by `keyOf` with the filter. Topics without sockets are left out. */
    channels: new Map<string, Map<string, Channel>>(),
    states: new States(options.states ?? [], { limits, log, onBug }),
    /** Finds the previous event of a topic that had no subscribers. */
    readPrev: makePrevReader(source, limits.replay_span),
    /** Limits how many replays read the log at the same time. */
    record_reads: pLimit(max_readers),
    readFrame: makeFrameReader(ops, limits.frame_bytes),
    stats: {
      opened: 0,
      frames_in: 0,
      /** Number of times that a socket read too slowly and left the live stream. */
      slow: 0,
      closed: {} as Record<number, number>,
    },
    /** Offset up to which everything has been published here; -1 before the hub has begun. */
    head: -1,
    /** Called when the head has moved. */
    on_head: new Set<() => void>(),
    draining: false,
    /** Unread bytes of all sockets at their last check. */
    unread_bytes: 0,
    /** Wraps a callback so that it never throws into its caller. */
    guard:
      <A extends unknown[]>(work: (...args: A) => void) =>
      (...args: A): void => {
        try {
          work(...args);
        } catch (error) {
          onBug(error);
        }
      },
  };
};

/**
 * True if all sockets of the process together leave too much unread. Then each socket may leave
 * only a little unread.
 */
export const isOverloaded = ({ unread_bytes, limits }: Core): boolean =>
  unread_bytes > limits.unread_bytes;

/**
 * Why a client has to fetch events itself: they are too old or too many for a replay, the client
 * read too slowly and is too far behind, or this log has never had the offset.
 */
export type GapReason = 'expired' | 'slow' | 'epoch';

interface Gap {
  readonly ref: TopicRef;
  /** Exclusive. */
  readonly after: number;
  /** Inclusive. Later events are sent. */
  readonly until: number;
  readonly reason: GapReason;
}

/** Names a part of a topic that is not sent to the client, and says where to read it. */
export const gapFrame = ({ options }: Core, { ref, after, until, reason }: Gap): string => {
  const backfill = options.backfill(ref, after);
  return makeFrame('gap', undefined, { topic: ref.label, after, until, reason, backfill });
};

/**
 * One socket.
 *
 *   open ──▶ ending (a close frame is on its way, or the connection was cut) ──▶ closed
 *     │
 *     └── reads too slowly: its topics become a join at the last offset that it was sent, and go
 *         live again when it has caught up; reads nothing for too long: closed with 4101
 */
export class Session {
  readonly id = randomBytes(9).toString('base64url');
  readonly opened_ms = performance.now();
  readonly ends_ms: number;
  /** Names under which this socket is counted, until it is closed. */
  readonly #counted_as: string[] = [];
  /** When the client last sent or read something. */
  heard_ms = this.opened_ms;
  /**
   * Null before the socket is open, and from the close callback on, because any use would throw.
   */
  ws: WebSocket<unknown> | null = null;
  caller: Caller = anonymous;
  /** SHA-256 of the credential in hex, for revocations. Null if the socket is anonymous. */
  credential: string | null = null;
  /** The credential as request headers, because each call authenticates again. */
  credential_headers: Readonly<Record<string, string>> = {};
  /** Null before the first call. */
  calls: OpenCalls | null = null;
  /** Live topics. */
  readonly topics = new Map<string, Channel>();
  readonly joins = new Set<Join>();
  /** The label of each state topic, by topic. */
  readonly states = new Map<string, string>();
  /** Replays of one socket run one after the other. */
  replays: Promise<void> = Promise.resolve();
  /** True if the socket has the default topics. The first subscribe frame removes them. */
  has_default_topics = false;
  /** True once a frame was received. An anonymous socket must send one within `hello_ms`. */
  has_spoken = false;
  /** Frames that wait while an authentication is under way. Null at other times. */
  held: ReadFrame<Op>[] | null = [];
  tick_due_ms = Number.POSITIVE_INFINITY;
  /**
   * Set when the library dropped a frame. From then on it is unknown which events the client has.
   */
  broken_since_ms: number | null = null;
  /** Called when the client has read the sent data, or never will. */
  readonly on_read = new Set<() => void>();
  /** Set when this process closes the socket. */
  close_code: CloseCode | null = null;
  #frame_tokens: number;
  #tokens_at_ms = this.opened_ms;
  /** Unread bytes at the last check. */
  #unread_bytes = 0;

  constructor(
    readonly core: Core,
    readonly request: UpgradeRequest,
  ) {
    this.#frame_tokens = core.limits.frames_burst;
    this.ends_ms = this.opened_ms + core.limits.lifetime_ms * (0.8 + 0.4 * Math.random());
  }

  get is_ending(): boolean {
    return this.ws === null || this.close_code !== null;
  }

  /** True while frames may be sent. */
  get is_usable(): boolean {
    return !this.is_ending && this.broken_since_ms === null;
  }

  /** Returns the number of bytes that the client has not read yet. */
  lookUnread(): number {
    const unread = this.ws?.getBufferedAmount() ?? 0;
    this.core.unread_bytes += unread - this.#unread_bytes;
    this.#unread_bytes = unread;
    return unread;
  }

  /** Sends a text frame. An empty text sends nothing. */
  send(text: string | Uint8Array): void {
    if (!this.is_usable || text.length === 0) return;
    if (this.ws?.send(toBytes(text), false) === 2) this.markBroken();
  }

  /** Sends several frames in one write. */
  sendAll(texts: readonly string[]): void {
    if (!this.is_usable) return;
    this.ws?.cork(() => {
      for (const text of texts) this.send(text);
    });
  }

  /** Closes with a close frame. Frames sent before it still arrive. */
  end(code: CloseCode, reason: string): void {
    if (this.is_ending) return;
    this.close_code = code;
    this.ws?.end(code, toBytes(reason));
    this.core.log.debug({ session: this.id, code }, 'ws: closed');
  }

  /** Ends the socket of a client that did nothing wrong. `members` says when to connect again. */
  sayBye(
    code: CloseCode,
    reason: string,
    members: Readonly<Record<string, number>> = { spread_ms: this.core.limits.drain_ms },
  ): void {
    this.send(makeFrame('bye', undefined, { code, reason, ...members }));
    this.end(code, reason);
  }

  /** Cuts the connection of a client that reads nothing, because no close frame would reach it. */
  cut(code: CloseCode): void {
    if (this.is_ending) return;
    this.close_code = code;
    this.ws?.close();
  }

  /**
   * The library dropped a frame, perhaps a pong. Nothing more is sent, and the sweep closes the
   * socket.
   */
  markBroken(): void {
    if (this.broken_since_ms !== null || this.is_ending) return;
    this.broken_since_ms = performance.now();
    this.core.stats.slow += 1;
  }

  /** Closes a broken socket as soon as a close frame can reach it. */
  finishBroken(): void {
    if (this.broken_since_ms === null || this.ws === null) return;
    this.leaveAll();
    if (this.ws.getBufferedAmount() === 0) this.end(close_codes.SLOW, 'reads too slowly');
  }

  /** Counts a frame against the frame limit. Above it, closes the socket and returns false. */
  countFrame(): boolean {
    const { frames_per_s, frames_burst } = this.core.limits;
    const now_ms = performance.now();
    const earned = ((now_ms - this.#tokens_at_ms) / 1_000) * frames_per_s;
    this.#frame_tokens = Math.min(frames_burst, this.#frame_tokens + earned) - 1;
    this.#tokens_at_ms = now_ms;
    if (this.#frame_tokens >= 0) return true;
    this.end(close_codes.RATE, 'too many frames');
    return false;
  }

  /** Sockets of the same caller. They share its topic limit. */
  get siblings(): ReadonlySet<Session> {
    return this.core.by_name.get(`key:${callerKey(this.caller)}`) ?? new Set([this]);
  }

  /** Counts this socket as one of the connections of a name. */
  countAs(name: string): void {
    const { by_name } = this.core;
    this.#counted_as.push(name);
    by_name.set(name, (by_name.get(name) ?? new Set()).add(this));
  }

  /** Stops counting this socket as a connection of its names. */
  uncount(): void {
    const { by_name, connections } = this.core;
    for (const name of this.#counted_as.splice(0)) {
      connections.leave(name);
      const others = by_name.get(name);
      if (others?.delete(this) && others.size === 0) by_name.delete(name);
    }
  }

  /** The client has read the sent data, or is gone. Everything that waits for this goes on. */
  onRead(): void {
    this.heard_ms = performance.now();
    this.lookUnread();
    for (const look of [...this.on_read]) look();
    this.calls?.sendReady();
    this.core.states.onRead(this);
    this.finishBroken();
  }

  /** The close callback: the last thing that happens to a socket. */
  onClose(code: number): void {
    const { sessions, stats } = this.core;
    this.ws = null;
    this.lookUnread();
    this.leaveAll();
    sessions.delete(this);
    this.uncount();
    const final_code = this.close_code ?? code;
    stats.closed[final_code] = (stats.closed[final_code] ?? 0) + 1;
    for (const look of [...this.on_read]) look();
    this.calls?.onClose();
  }

  /** Makes a topic live. `prev` is the offset of its previous event, as of the head. */
  join(ref: TopicRef, prev: number): void {
    if (this.ws === null || this.is_ending) return;
    this.leave(ref.topic);
    const { channels } = this.core;
    const of_topic = channels.get(ref.topic) ?? new Map<string, Channel>();
    channels.set(ref.topic, of_topic);
    const channel = of_topic.get(keyOf(ref)) ?? { ...ref, sessions: new Set(), prev };
    of_topic.set(keyOf(ref), channel);
    channel.sessions.add(this);
    this.ws.subscribe(keyOf(ref));
    this.topics.set(ref.topic, channel);
  }

  /** Leaves a live topic; false if it is not live. */
  leave(topic: string): boolean {
    const channel = this.topics.get(topic);
    if (channel === undefined) return false;
    this.topics.delete(topic);
    channel.sessions.delete(this);
    if (!this.is_ending) this.ws?.unsubscribe(keyOf(channel));
    if (channel.sessions.size > 0) return true;
    const of_topic = this.core.channels.get(topic);
    of_topic?.delete(keyOf(channel));
    if (of_topic?.size === 0) this.core.channels.delete(topic);
    return true;
  }

  /** Removes a topic from every join under way. The client's latest frame about it counts. */
  leaveJoins(topic: string): boolean {
    let found = false;
    for (const { refs } of this.joins) found = refs.delete(topic) || found;
    return found;
  }

  leaveAll(): void {
    for (const topic of [...this.topics.keys()]) this.leave(topic);
    for (const { refs } of this.joins) refs.clear();
    this.core.states.leaveAll(this);
  }

  /** Counts the topics of the socket: the live ones and the ones that are still joining. */
  countTopics(): number {
    let count = this.topics.size + this.states.size;
    for (const { refs } of this.joins) count += refs.size;
    return count;
  }

  holds(topic: string): boolean {
    if (this.topics.has(topic) || this.states.has(topic)) return true;
    return [...this.joins].some(({ refs }) => refs.has(topic));
  }

  /** True if the topic is live with this filter, or will be as soon as the client has caught up. */
  follows(ref: TopicRef): boolean {
    const slow = [...this.joins].find(({ is_slow, refs }) => is_slow && refs.has(ref.topic));
    const known = this.topics.get(ref.topic) ?? slow?.refs.get(ref.topic);
    return known !== undefined && keyOf(known) === keyOf(ref);
  }

  /** Returns the offset up to which the socket has been sent everything on its topics. */
  sentUpTo(): number {
    const waiting = [...this.joins].filter(({ refs }) => refs.size > 0);
    return Math.min(this.core.head, ...waiting.map(({ cursor }) => cursor));
  }

  /** Returns, for each topic, the offset of the newest event that the client has. */
  heads(): Readonly<Record<string, number>> {
    const heads: Record<string, number> = {};
    for (const { label, prev } of this.topics.values()) heads[label] = prev;
    for (const { refs, prevs } of this.joins) {
      for (const { topic, label } of refs.values()) {
        const prev = prevs.get(topic);
        if (prev !== undefined) heads[label] = prev;
      }
    }
    return heads;
  }
}

/**
 * Asks the sockets under a name for a sign of life, and closes the silent ones: a client that
 * vanished must not use up connections until its socket times out.
 */
export const closeSilent = (core: Core, name: string): void => {
  const { asked, by_name, limits } = core;
  const sessions = [...(by_name.get(name) ?? [])];
  if (asked.has(name) || sessions.length === 0) return;
  asked.add(name);
  const asked_ms = performance.now();
  for (const { ws } of sessions) ws?.ping();
  const close = core.guard(() => {
    asked.delete(name);
    for (const one of sessions) if (one.heard_ms < asked_ms) one.cut(close_codes.SLOW);
  });
  // After a stall, this process first reads the data that arrived during it.
  setTimeout(() => setImmediate(close), limits.alive_ms).unref();
};
