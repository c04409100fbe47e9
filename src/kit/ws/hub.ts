import { Type } from '@sinclair/typebox';
import type { LimitFunction } from 'p-limit';
import pLimit from 'p-limit';
import type { Logger } from 'pino';
import type { Fault } from '../fault.js';
import { refuse } from '../fault.js';
import {
  DISABLED,
  type HttpRequest,
  type HttpResponse,
  type TemplatedApp,
  type us_socket_context_t,
  type WebSocket,
} from '../http/request.js';
import type { Caller } from '../http/route.js';
import { callerKey } from '../http/route.js';
import { describeError } from '../log.js';
import {
  auth_op,
  closeFor,
  enter,
  type Kept,
  makeUpgrade,
  takeControl,
  takeMessage,
} from './entry.js';
import { fanOut } from './fan-out.js';
import type { FrameReader, HubLimits } from './frames.js';
import {
  default_limits,
  defineOp,
  frame_id,
  type HubOptions,
  makeFrame,
  makeFrameReader,
  type Ops,
  type Publication,
  type TopicRef,
  ws_faults,
} from './frames.js';
import type { NewestReader, Recent } from './recent.js';
import { makeNewestReader } from './recent.js';
import type { Seats, Ticker } from './session.js';
import {
  type Channels,
  isUsable,
  leaveAllChannels,
  makeOwnSeats,
  makeTicker,
  type Session,
  sentUpTo,
  tellRead,
} from './session.js';
import type { States } from './states.js';
import { makeStates } from './states.js';
import { topic_ops } from './subscribe.js';

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

/** What the parts of a hub share: its sockets, who listens to what, and how to talk to them. */
export interface Core {
  readonly options: HubOptions;
  readonly limits: HubLimits;
  readonly log: Logger;
  readonly recent: Recent<Publication>;
  readonly sessions: Set<Session>;
  readonly by_key: Map<string, Set<Session>>;
  /** Connections of a caller and of an address, in all processes. */
  readonly seats: Seats;
  readonly channels: Channels;
  /** Finds the event before the first of a topic that nobody followed. */
  readonly newest: NewestReader;
  readonly stats: HubStats;
  /** Offset up to which everything has been published here; -1 before the hub has begun. */
  head: number;
  draining: boolean;
  /** Unread bytes of all sockets, as they were last looked at. */
  unread_bytes: number;
  /** Something threw that must not: it is logged, and the process goes on. */
  readonly onBug: (error: unknown) => void;
  /** Called when the head has moved. */
  readonly on_head: Set<() => void>;
  /** Lets a few replays read the record at once. */
  readonly gate: LimitFunction;
  readonly ticker: Ticker;
  readonly readFrame: FrameReader;
  readonly states: States;
}

interface HubStats {
  opened: number;
  frames_in: number;
  published: number;
  /** How often a socket read too slowly and left the live stream. */
  slow: number;
  replayed: number;
  readonly closed: Record<number, number>;
}

/** Looks at what the client has not read yet. */
export const lookUnread = (core: Core, session: Session): number => {
  const unread = session.ws?.getBufferedAmount() ?? 0;
  core.unread_bytes += unread - session.unread_bytes;
  session.unread_bytes = unread;
  return unread;
};

export const isOverloaded = ({ unread_bytes, limits }: Core): boolean =>
  unread_bytes > limits.unread_bytes;

/**
 * Sends a text frame; an empty text is none. The library's own limit is far away: a socket that
 * meets it is broken.
 */
export const sendText = (core: Core, session: Session, text: string | Buffer): void => {
  if (!isUsable(session) || text.length === 0) return;
  if (session.ws?.send(text, false) === 2) markBroken(core, session);
};

/** Sends several frames in one write. */
export const sendTexts = (core: Core, session: Session, texts: readonly string[]): void => {
  if (!isUsable(session)) return;
  session.ws?.cork(() => {
    for (const text of texts) sendText(core, session, text);
  });
};

/** Closes with a close frame; what was sent before still arrives. */
export const endSession = (core: Core, session: Session, code: CloseCode, reason: string): void => {
  if (session.ws === null || session.ending) return;
  session.ending = true;
  session.close_code = code;
  session.ws.end(code, reason);
  core.log.debug({ session: session.id, code }, 'ws: closed');
};

/** Sends a socket away for a while, without blame. */
export const sayBye = (core: Core, session: Session, code: CloseCode, reason: string): void => {
  const members = { code, reason, spread_ms: core.limits.drain_ms };
  sendText(core, session, makeFrame('bye', undefined, members));
  endSession(core, session, code, reason);
};

/** Cuts the connection: for a client that reads nothing, so that a close frame would not arrive. */
const cutSession = (session: Session, code: CloseCode): void => {
  if (session.ws === null || session.ending) return;
  session.ending = true;
  session.close_code = code;
  session.ws.close();
};

/** The library dropped a frame, a pong perhaps: nothing more is sent, and the sweep closes. */
export const markBroken = (core: Core, session: Session): void => {
  if (session.broken_since_ms !== null || session.ending) return;
  session.broken_since_ms = performance.now();
  core.stats.slow += 1;
};

/** Closes a broken socket as soon as a close frame can reach it. */
const finishBroken = (core: Core, session: Session): void => {
  if (session.broken_since_ms === null || session.ws === null) return;
  leaveAllChannels(core, session);
  if (session.ws.getBufferedAmount() === 0) {
    endSession(core, session, close_codes.SLOW, 'reads too slowly');
  }
};

/** Enters the socket under its caller, so that the sockets of one are known to each other. */
export const enterKey = (core: Core, session: Session): void => {
  const key = callerKey(session.caller);
  if (key === null) return;
  const others = core.by_key.get(key) ?? new Set();
  core.by_key.set(key, others.add(session));
};

/** The close callback: the last that happens to a socket. */
const forgetSession = (core: Core, session: Session, code: number): void => {
  session.ws = null;
  session.ending = true;
  lookUnread(core, session);
  leaveAllChannels(core, session);
  core.ticker.leave(session);
  core.sessions.delete(session);
  for (const seat of session.seats.splice(0)) core.seats.leave(seat);
  const key = callerKey(session.caller);
  const others = key === null ? undefined : core.by_key.get(key);
  if (others?.delete(session) && others.size === 0) core.by_key.delete(key as string);
  const final_code = session.close_code ?? code;
  core.stats.closed[final_code] = (core.stats.closed[final_code] ?? 0) + 1;
  tellRead(session);
  session.calls?.onClose();
};

/**
 * Why a client has to fetch something by itself: too old or too much for a replay, too far behind
 * while it read slowly, or an offset that this log has never had.
 */
export type GapReason = 'expired' | 'slow' | 'epoch';

interface Gap {
  readonly ref: TopicRef;
  /** Exclusive. */
  readonly after: number;
  /** Inclusive: what comes later is sent. */
  readonly until: number;
  readonly reason: GapReason;
}

/** Tells a client that it will not get a part of a topic, and where that is. */
export const gapFrame = (core: Core, { ref, after, until, reason }: Gap): string =>
  makeFrame('gap', undefined, {
    topic: ref.label,
    after,
    until,
    reason,
    backfill: core.options.backfill(ref, after),
  });

/**
 * Websockets of one process: who is connected, who listens to what, and the way of a publication to
 * its sockets. Nothing in here may throw into uWS, which would end the process: every callback is
 * guarded. Everything that leaves is in the order of its offsets.
 */
export interface Hub {
  /** Where the log stands before the first publication; until then nobody is let in. */
  begin(head: number): void;
  /**
   * Sends a batch, in order and without holes inside, to whoever listens. What has been published
   * before is left out; a batch that starts later than the head has its hole told to all.
   */
  publish(batch: readonly Publication[]): void;
  head(): number;
  /** A state may have changed: its listeners are sent the newest one soon. */
  touch(topic: string): void;
  /** Closes the sockets for which `matches` holds; how many. */
  closeWhere(closing: Closing): number;
  /** Sends everybody away, spread over `drain_ms` at most; new sockets are sent away at once. */
  drain(): Promise<void>;
  /** Cuts what is left, for the end of the process. */
  close(): void;
  stats(): Readonly<HubStats> & {
    readonly sockets: number;
    readonly topics: number;
    readonly unread_bytes: number;
    /** Different topics and filters of the log. */
    readonly channels: number;
  };
}

interface Closing {
  /** `credential` is the SHA-256 of what the socket was opened with, in hex. */
  readonly matches: (caller: Caller, credential: string | null) => boolean;
  readonly code: CloseCode;
  readonly reason: string;
}

/** Above the limit for a frame, which is enforced here: uWS itself closes without a close frame. */
const payload_bytes = 98_304;
const sweep_ms = 250;
/** Sockets sent away in a second, until there are more than fit into `drain_ms`. */
const drained_per_s = 500;

/** A socket that is to be closed may wait so long for the answers of its calls. */
const calls_ms = 11_000;

const most_readers = 4;

const ping_op = defineOp({
  schema: Type.Object({ id: frame_id }),
  take: (core, session, { id }) => {
    const head = sentUpTo(session, core.head);
    return makeFrame('pong', id, { time: new Date().toISOString(), head });
  },
});

/** What every socket understands. */
export const socket_ops: Ops = { auth: auth_op, ping: ping_op, ...topic_ops };

const makeCore = (options: HubOptions): Core => {
  const limits = { ...default_limits, ...options.limits };
  const core: Core = {
    options,
    limits,
    log: options.log,
    recent: options.recent,
    sessions: new Set(),
    by_key: new Map(),
    seats: options.seats ?? makeOwnSeats(),
    channels: new Map(),
    newest: makeNewestReader(options.source, limits.replay_span),
    stats: { opened: 0, frames_in: 0, published: 0, slow: 0, replayed: 0, closed: {} },
    head: -1,
    draining: false,
    unread_bytes: 0,
    onBug: (error) => options.log.error(describeError(error), 'ws: a callback threw'),
    on_head: new Set(),
    gate: pLimit(most_readers),
    ticker: makeTicker(limits.tick_ms, () => core),
    readFrame: makeFrameReader({ ...socket_ops, ...options.ops }, limits.frame_bytes),
    states: makeStates(options.states ?? [], () => core),
  };
  return core;
};

/** A callback that never throws into its caller. */
const guard =
  <A extends unknown[]>(core: Core, work: (...args: A) => void) =>
  (...args: A): void => {
    try {
      work(...args);
    } catch (error) {
      core.onBug(error);
    }
  };

/** The socket has read what it was sent, or is gone by now: what waits for it goes on. */
const goOn = (core: Core, session: Session): void =>
  guard(core, () => {
    lookUnread(core, session);
    tellRead(session);
    session.calls?.onRead();
    core.states.onRead(session);
    finishBroken(core, session);
  })();

const mountCallbacks = (app: TemplatedApp, core: Core): void => {
  const upgrade = makeUpgrade(core);
  const behavior = {
    compression: DISABLED,
    maxPayloadLength: payload_bytes,
    // The limit is kept by the fan-out; what meets this one, several times larger, is cut.
    maxBackpressure: core.limits.backpressure_bytes * 4,
    idleTimeout: 120,
    maxLifetime: 0,
    sendPingsAutomatically: true,
    upgrade(res: HttpResponse, req: HttpRequest, context: us_socket_context_t) {
      try {
        upgrade(res, req, context);
      } catch (error) {
        core.onBug(error);
        res.close();
      }
    },
    open: guard(core, (ws: WebSocket<Kept>) => enter(core, ws)),
    message: guard(core, (ws: WebSocket<Kept>, raw: ArrayBuffer, is_binary: boolean) =>
      takeMessage(core, ws.getUserData().session, { raw: Buffer.from(raw), is_binary }),
    ),
    ping: guard(core, (ws: WebSocket<Kept>) => takeControl(core, ws.getUserData().session)),
    pong: guard(core, (ws: WebSocket<Kept>) => takeControl(core, ws.getUserData().session)),
    // Missing in the library's types.
    dropped: guard(core, (ws: WebSocket<Kept>) => markBroken(core, ws.getUserData().session)),
    // What is sent inside of this callback only leaves after it: it would count as unread, and
    // nobody would be called when it has gone.
    drain: guard(core, (ws: WebSocket<Kept>) => {
      setImmediate(goOn, core, ws.getUserData().session);
    }),
    close: guard(core, (ws: WebSocket<Kept>, code: number) =>
      forgetSession(core, ws.getUserData().session, code),
    ),
  };
  app.ws<Kept>(core.options.path, behavior);
};

/** False while the answers of its calls are awaited, until they are late. */
const mayGo = ({ calls }: Session, late_ms: number): boolean =>
  calls === null || calls.inFlight() === 0 || performance.now() > late_ms;

/** What is due by the clock: broken sockets, old ones, and those that have nothing to say. */
const sweep = (core: Core, session: Session, now_ms: number): void => {
  const { broken_since_ms, has_spoken, caller, opened_ms, ends_ms } = session;
  const { unread_ms, hello_ms } = core.limits;
  if (broken_since_ms !== null) {
    finishBroken(core, session);
    if (now_ms - broken_since_ms > unread_ms) cutSession(session, close_codes.SLOW);
  } else if (now_ms > ends_ms && mayGo(session, ends_ms + calls_ms)) {
    sayBye(core, session, close_codes.LIFETIME, 'lifetime');
  } else if (!has_spoken && caller.kind === 'anonymous' && now_ms - opened_ms > hello_ms) {
    closeFor(core, session, refuse(ws_faults.AUTH_TIMEOUT));
  } else if (caller.kind === 'human' && caller.expires_at.getTime() <= Date.now()) {
    endSession(core, session, close_codes.CREDENTIAL_EXPIRED, 'credential expired');
  }
};

/** The log itself has lost what lies between the head and `next`: say so to everybody. */
const tellHole = (core: Core, next: number): void => {
  const after = core.head;
  core.log.error({ after, next }, 'ws: the log has a hole');
  core.recent.reset(next - 1);
  for (const session of [...core.sessions]) {
    const texts = [...session.topics.values()].map((ref) =>
      gapFrame(core, { ref, after, until: next - 1, reason: 'expired' }),
    );
    sendTexts(core, session, texts);
  }
};

const publish = (core: Core, batch: readonly Publication[]): void => {
  if (core.head < 0) return;
  const fresh = batch.filter(({ offset }) => offset > core.head);
  const first = fresh[0]?.offset ?? core.head + 1;
  if (first !== core.head + 1) tellHole(core, first);
  for (const publication of fresh) core.recent.push(publication);
  core.head = fresh.at(-1)?.offset ?? core.head;
  core.stats.published += fresh.length;
  fanOut(core, fresh);
  for (const look of [...core.on_head]) look();
};

const drain = async (core: Core): Promise<void> => {
  core.draining = true;
  let leaving = [...core.sessions];
  const late_ms = performance.now() + calls_ms;
  const rounds = Math.max(1, Math.ceil((core.limits.drain_ms / 50) * 0.9));
  const a_round = Math.max(drained_per_s / 20, Math.ceil(leaving.length / rounds));
  while (leaving.length > 0) {
    const going = new Set(leaving.filter((one) => mayGo(one, late_ms)).slice(0, a_round));
    leaving = leaving.filter((one) => !going.has(one));
    for (const session of going) {
      guard(core, () => sayBye(core, session, close_codes.DRAINING, 'draining'))();
    }
    if (leaving.length > 0) await new Promise((resolve) => setTimeout(resolve, 50));
  }
};

const closeWhere = (core: Core, { matches, code, reason }: Closing): number => {
  let count = 0;
  for (const session of [...core.sessions]) {
    if (session.ending || !matches(session.caller, session.credential)) continue;
    const end = (): void => endSession(core, session, code, reason);
    // Whoever ends the credentials by a call is told what came of it.
    if (session.calls === null) end();
    else session.calls.whenAnswered(end);
    count += 1;
  }
  return count;
};

export const mountHub = (app: TemplatedApp, options: HubOptions): Hub => {
  const core = makeCore(options);
  mountCallbacks(app, core);
  const sweepAll = guard(core, () => {
    const now_ms = performance.now();
    for (const session of [...core.sessions]) sweep(core, session, now_ms);
  });
  const timer = setInterval(sweepAll, sweep_ms);
  timer.unref();
  return {
    begin(head) {
      core.head = head;
      core.recent.reset(head);
    },
    publish: guard(core, (batch: readonly Publication[]) => publish(core, batch)),
    head: () => core.head,
    touch: (topic) => core.states.touch(topic),
    closeWhere: (closing) => closeWhere(core, closing),
    drain: () => drain(core),
    close() {
      core.draining = true;
      clearInterval(timer);
      core.ticker.stop();
      for (const session of [...core.sessions]) cutSession(session, close_codes.DRAINING);
    },
    stats: () => ({
      ...core.stats,
      sockets: core.sessions.size,
      unread_bytes: core.unread_bytes,
      topics: core.channels.size + core.states.size(),
      channels: [...core.channels.values()].reduce((sum, { size }) => sum + size, 0),
    }),
  };
};
