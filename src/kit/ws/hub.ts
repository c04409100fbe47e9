import { Type } from '@sinclair/typebox';
import pLimit from 'p-limit';
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
import { describeError } from '../log.js';
import { auth_op } from './authenticate.js';
import { type CloseCode, close_codes } from './close-codes.js';
import {
  type Core,
  cutSession,
  endSession,
  finishBroken,
  forgetSession,
  gapFrame,
  type HubStats,
  lookUnread,
  markBroken,
  sayBye,
  sendTexts,
} from './core.js';
import { enter } from './entry.js';
import { fanOut } from './fan-out.js';
import { frame_id, makeFrame, type Publication, ws_faults } from './frames.js';
import { closeFor, takeControl, takeMessage } from './inbound.js';
import { defineOp, makeFrameReader, type Ops } from './ops.js';
import { default_limits, type HubOptions } from './options.js';
import { makeNewestReader } from './prevs.js';
import { makeOwnSeats } from './seats.js';
import { type Session, sentUpTo, tellRead } from './session.js';
import { makeStates } from './states.js';
import { topic_ops } from './subscribe.js';
import { makeTicker } from './ticker.js';
import { type Kept, makeUpgrade } from './upgrade.js';

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

export interface Closing {
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
