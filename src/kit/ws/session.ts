import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import type { Address, WebSocket } from '../http/request.js';
import { anonymous, type Caller } from '../http/route.js';
import { makeId } from '../ids.js';
import { describeError } from '../log.js';
import { makeLoop } from '../loop.js';
import { loadScript } from '../redis/client.js';
import type { Service } from '../service.js';
import type { ReadFrame } from './frames.js';
import { keyOf, makeFrame, type Publication, type TopicRef } from './frames.js';
import type { CloseCode } from './hub.js';
import { type Core, sendText } from './hub.js';

/** Topics that are being brought up to the present and are not live until then. */
export interface Join {
  /** By topic; shrinks when the client leaves a topic or subscribes to it again. */
  readonly refs: Map<string, TopicRef>;
  /** Offset of the newest event sent or had before, by topic; empty until it is known. */
  prevs: Map<string, number>;
  /** Everything on these topics up to this offset has been sent, or was had before. */
  cursor: number;
  /** The socket read too slowly: the client does not know of this join. */
  readonly is_slow: boolean;
}

/**
 * One socket.
 *
 *   open ──▶ ending (a close frame is on its way, or the connection was cut) ──▶ closed
 *     │
 *     └── reads too slowly: its topics become a join at the offset that it has been sent, and go
 *         live again when it has read on; nothing unread for too long: closed with 4101
 *
 * `ws` is null from the close callback on: any use of it after that would throw.
 */
export interface Session {
  readonly id: string;
  readonly address: Address;
  /** What it takes of the limits on connections, given back when it is closed. */
  readonly seats: string[];
  readonly opened_ms: number;
  readonly ends_ms: number;
  ws: WebSocket<unknown> | null;
  caller: Caller;
  /** SHA-256 of the credential in hex, by which it may be revoked; null for anonymous. */
  credential: string | null;
  /** The credential as headers of a request: every call is asked anew who makes it. */
  credential_headers: Readonly<Record<string, string>>;
  /** Calls under way; null before the first one. */
  calls: CallLine | null;
  /** Live topics. */
  readonly topics: Map<string, Channel>;
  readonly joins: Set<Join>;
  /** State topics: label by topic. */
  readonly states: Map<string, string>;
  /** Replays of one socket run one after the other. */
  replays: Promise<void>;
  /** The topics were given by default and go with the first subscribe frame. */
  has_default_topics: boolean;
  /** A frame was received; until then an anonymous socket has yet to say what it wants. */
  has_spoken: boolean;
  /** Frames that wait for an authentication under way; null when none is. */
  held: ReadFrame[] | null;
  frame_tokens: number;
  tokens_at_ms: number;
  /** Set when the library itself dropped a frame: what the client has is unknown from then on. */
  broken_since_ms: number | null;
  /** Unread bytes when they were last looked at. */
  unread_bytes: number;
  /** Called when what was sent has been read, or will never be. */
  readonly on_read: Set<() => void>;
  ending: boolean;
  close_code: CloseCode | null;
}

/** The calls of one socket; see `calls.ts`. */
export interface CallLine {
  /** Calls whose answer has not been sent. */
  inFlight(): number;
  /** What was sent has been read. */
  onRead(): void;
  onClose(): void;
  /** Calls back when the answer has been sent to the call that ended the credentials, if any. */
  whenAnswered(done: () => void): void;
}

interface SessionParts {
  readonly address: Address;
  readonly frame_tokens: number;
  readonly lifetime_ms: number;
}

export const makeSession = (parts: SessionParts): Session => {
  const now_ms = performance.now();
  return {
    id: randomBytes(9).toString('base64url'),
    address: parts.address,
    seats: [],
    opened_ms: now_ms,
    ends_ms: now_ms + parts.lifetime_ms * (0.8 + 0.4 * Math.random()),
    ws: null,
    caller: anonymous,
    credential: null,
    credential_headers: {},
    calls: null,
    topics: new Map(),
    joins: new Set(),
    states: new Map(),
    replays: Promise.resolve(),
    has_default_topics: false,
    has_spoken: false,
    held: null,
    frame_tokens: parts.frame_tokens,
    tokens_at_ms: now_ms,
    broken_since_ms: null,
    unread_bytes: 0,
    on_read: new Set(),
    ending: false,
    close_code: null,
  };
};

export const tellRead = ({ on_read }: Session): void => {
  for (const look of [...on_read]) look();
};

/** True while frames may be sent. */
export const isUsable = (session: Session): boolean =>
  session.ws !== null && !session.ending && session.broken_since_ms === null;

/** Takes one token of the frame limit; false when the sender is over it. */
export const takeFrameToken = (session: Session, per_s: number, burst: number): boolean => {
  const now_ms = performance.now();
  const earned = ((now_ms - session.tokens_at_ms) / 1_000) * per_s;
  session.frame_tokens = Math.min(burst, session.frame_tokens + earned);
  session.tokens_at_ms = now_ms;
  if (session.frame_tokens < 1) return false;
  session.frame_tokens -= 1;
  return true;
};

/** How many topics the socket holds, live ones and those on their way. */
export const countTopics = (session: Session): number => {
  let count = session.topics.size + session.states.size;
  for (const join of session.joins) count += join.refs.size;
  return count;
};

/** Takes a topic out of every join under way: the newest word about a topic counts. */
export const leaveJoins = (session: Session, topic: string): boolean => {
  let found = false;
  for (const join of session.joins) found = join.refs.delete(topic) || found;
  return found;
};

export const holdsTopic = (session: Session, { topic }: TopicRef): boolean =>
  session.topics.has(topic) ||
  session.states.has(topic) ||
  [...session.joins].some(({ refs }) => refs.has(topic));

/** True when the topic is live with this filter, or will be as soon as the client has read on. */
export const isFollowed = ({ topics, joins }: Session, ref: TopicRef): boolean => {
  const isSame = (other: TopicRef | undefined): boolean =>
    other !== undefined && keyOf(other) === keyOf(ref);
  if (isSame(topics.get(ref.topic))) return true;
  return [...joins].some(({ is_slow, refs }) => is_slow && isSame(refs.get(ref.topic)));
};

/** The offset up to which the socket has been sent everything on its topics. */
export const sentUpTo = (session: Session, head: number): number => {
  let least = head;
  for (const { refs, cursor } of session.joins) {
    if (refs.size > 0 && cursor < least) least = cursor;
  }
  return least;
};

/**
 * Who listens to what. A channel is a topic with a filter, or without one: sockets with equal
 * filters share it, and a frame is made once for all of them. It knows the offset of the newest
 * event on it, which the next one carries as `prev`; where that is not known yet, see `prevs.ts`.
 */
export interface Channel extends TopicRef {
  readonly sessions: Set<Session>;
  /** Offset of the newest event on this topic that passes the filter; 0 when there is none. */
  prev: number;
}

/** Topic, then the key of the filter; a topic without sockets is not in it. */
export type Channels = Map<string, Map<string, Channel>>;

export const passes = ({ filter }: TopicRef, publication: Publication): boolean =>
  filter === undefined || filter.matches(publication);

export const findChannel = (core: Core, ref: TopicRef): Channel | undefined =>
  core.channels.get(ref.topic)?.get(keyOf(ref));

/** Topics that are live from now on; `prev` is the offset of the event before, as of the head. */
export const joinChannel = (core: Core, session: Session, ref: TopicRef, prev: number): void => {
  if (session.ws === null) return;
  leaveChannel(core, session, ref.topic);
  const { topic, label, filter } = ref;
  const key = keyOf(ref);
  const of_topic = core.channels.get(topic) ?? new Map<string, Channel>();
  core.channels.set(topic, of_topic);
  let channel = of_topic.get(key);
  if (channel === undefined) {
    channel = { topic, label, ...(filter && { filter }), sessions: new Set(), prev };
    of_topic.set(key, channel);
  }
  channel.sessions.add(session);
  session.topics.set(topic, channel);
};

export const leaveChannel = (core: Core, session: Session, topic: string): boolean => {
  const channel = session.topics.get(topic);
  if (channel === undefined) return false;
  session.topics.delete(topic);
  channel.sessions.delete(session);
  if (channel.sessions.size > 0) return true;
  const of_topic = core.channels.get(topic);
  of_topic?.delete(keyOf(channel));
  if (of_topic?.size === 0) core.channels.delete(topic);
  return true;
};

export const leaveAllChannels = (core: Core, session: Session): void => {
  for (const topic of [...session.topics.keys()]) leaveChannel(core, session, topic);
  for (const join of session.joins) join.refs.clear();
  core.states.leaveAll(session);
};

/**
 * How many connections there are under a name, over all processes. Each process says in Redis how
 * many it has, as absolute numbers, and twice a second that it lives; one that was killed counts no
 * more a moment later. Nothing is believed for long: a Redis that was emptied is told everything
 * again, and while it is away each process holds the limit by itself.
 */
export interface Seats {
  /** Takes one of `most`; false when none is left. Never rejects. */
  take(name: string, most: number): Promise<boolean>;
  leave(name: string): void;
}

export interface SharedSeats extends Seats, Service {}

interface SeatOptions {
  readonly redis: Redis;
  readonly prefix: string;
  readonly log: Logger;
  /** How long a process counts after it was last heard of; for tests. */
  readonly counts_ms?: number;
}

const takeSeat = loadScript('seat-2.lua');
const sayPresent = loadScript('presence-1.lua');

const say_every_ms = 500;
const usual_counts_ms = 2_500;
const look_every_ms = 250;
/** Seats that nobody keeps up are forgotten after the longest life of a socket. */
const kept_ms = 6 * 3_600_000;
const chunk = 500;

/** Counts by name, of one process. */
export const makeCounts = () => {
  const counts = new Map<string, number>();
  return {
    counts,
    of: (name: string): number => counts.get(name) ?? 0,
    add(name: string, change: 1 | -1): number {
      const count = (counts.get(name) ?? 0) + change;
      if (count > 0) counts.set(name, count);
      else counts.delete(name);
      return count;
    },
  };
};

/** For one process alone. */
export const makeOwnSeats = (): Seats => {
  const own = makeCounts();
  return {
    async take(name, most) {
      if (own.of(name) >= most) return false;
      own.add(name, 1);
      return true;
    },
    leave: (name) => void own.add(name, -1),
  };
};

interface Parts extends Required<SeatOptions> {
  readonly own: ReturnType<typeof makeCounts>;
  /** The name of this process. */
  readonly me: string;
  readonly processes_key: string;
}

const seatKey = ({ prefix }: Parts, name: string): string => `${prefix}:{ws}:seats:${name}`;

/**
 * A process that was killed a moment ago still counts, and its sockets come here. So nobody is
 * refused before all processes that have seats have said again that they live.
 */
const ask = async (parts: Parts, name: string, most: number): Promise<boolean> => {
  const { redis, own, me, processes_key, counts_ms } = parts;
  let asked = 0;
  for (let waited_ms = 0; ; waited_ms += look_every_ms) {
    if (redis.status !== 'ready') return true;
    const args = [me, own.of(name) - 1, most, asked, counts_ms, kept_ms];
    asked = Number(await takeSeat(redis, [processes_key, seatKey(parts, name)], args));
    if (asked <= 1 || waited_ms > counts_ms) return asked === 1;
    await wait(look_every_ms);
  }
};

/** A write that is lost is made good by the next one, or when this process counts anew. */
const tell = (parts: Parts, name: string): void => {
  const { redis, own, me } = parts;
  if (redis.status !== 'ready') return;
  const key = seatKey(parts, name);
  const count = own.of(name);
  const told = count > 0 ? redis.hset(key, me, count) : redis.hdel(key, me);
  told.catch(() => undefined);
};

const tellAll = async (parts: Parts): Promise<void> => {
  const { redis, own, me } = parts;
  const names = [...own.counts.keys()];
  for (let from = 0; from < names.length; from += chunk) {
    const pipeline = redis.pipeline();
    for (const name of names.slice(from, from + chunk)) {
      const key = seatKey(parts, name);
      const count = own.of(name);
      if (count > 0) pipeline.hset(key, me, count).pexpire(key, kept_ms);
    }
    await pipeline.exec();
  }
};

const saySo = async (parts: Parts): Promise<'rest'> => {
  const { redis, log, me, processes_key, counts_ms } = parts;
  if (redis.status !== 'ready') return 'rest';
  try {
    const is_known = await sayPresent(redis, [processes_key], [me, counts_ms]);
    if (is_known === 0) await tellAll(parts);
  } catch (error) {
    log.warn(describeError(error), 'seats: Redis does not answer');
  }
  return 'rest';
};

export const createSeats = (options: SeatOptions): SharedSeats => {
  const { redis, prefix, log, counts_ms = usual_counts_ms } = options;
  const own = makeCounts();
  const processes_key = `${prefix}:{ws}:processes`;
  const parts: Parts = { ...options, counts_ms, own, me: makeId(), processes_key };
  const turn = () => saySo(parts);
  const loop = makeLoop({ name: 'seats', log, every_ms: say_every_ms, turn });
  const leave = (name: string): void => {
    own.add(name, -1);
    tell(parts, name);
  };
  return {
    name: 'seats',
    async take(name, most) {
      if (own.of(name) >= most) return false;
      own.add(name, 1);
      try {
        if (await ask(parts, name, most)) return true;
      } catch (error) {
        log.warn(describeError(error), 'seats: Redis did not answer, the limit holds here alone');
        return true;
      }
      leave(name);
      return false;
    },
    leave,
    start: () => loop.start(),
    async stop() {
      await loop.stop();
      if (redis.status === 'ready')
        await redis.zrem(processes_key, parts.me).catch(() => undefined);
    },
  };
};

/**
 * Ticks: proof, every `tick_ms` ± 10 %, that a silent socket is alive, and up to which offset it
 * has been sent everything, for all topics and for each: a client that has an older event as its
 * newest of a topic has lost one. The sockets are spread over a few shards with clocks of their
 * own, so that not all of them are written to at once.
 */
const shards = 8;

export interface Ticker {
  join(session: Session): void;
  leave(session: Session): void;
  stop(): void;
}

/** The offset of the newest event that the socket was sent, or had before, on each topic. */
const headsOf = ({ topics, joins }: Session): Readonly<Record<string, number>> => {
  const heads: Record<string, number> = {};
  for (const { label, prev } of topics.values()) heads[label] = prev;
  for (const { refs, prevs } of joins) {
    for (const { topic, label } of refs.values()) {
      const prev = prevs.get(topic);
      if (prev !== undefined) heads[label] = prev;
    }
  }
  return heads;
};

/** `core` is asked for only when a tick is due: it holds the ticker itself. */
export const makeTicker = (tick_ms: number, coreOf: () => Core): Ticker => {
  const members: Set<Session>[] = Array.from({ length: shards }, () => new Set());
  const timers: NodeJS.Timeout[] = [];
  let next = 0;

  const tick = (shard: number): void => {
    const core = coreOf();
    try {
      const time = new Date().toISOString();
      for (const session of members[shard] ?? []) {
        const members = { time, head: sentUpTo(session, core.head), heads: headsOf(session) };
        sendText(core, session, makeFrame('tick', undefined, members));
      }
    } catch (error) {
      core.onBug(error);
    }
    schedule(shard);
  };
  const schedule = (shard: number): void => {
    const ms = tick_ms * (0.9 + 0.2 * Math.random());
    timers[shard] = setTimeout(tick, ms, shard);
    timers[shard].unref();
  };
  for (let shard = 0; shard < shards; shard += 1) schedule(shard);

  return {
    join(session) {
      members[next]?.add(session);
      next = (next + 1) % shards;
    },
    leave(session) {
      for (const shard of members) shard.delete(session);
    },
    stop() {
      for (const timer of timers) clearTimeout(timer);
    },
  };
};
