import { setTimeout as wait } from 'node:timers/promises';
import { Type } from '@sinclair/typebox';
import type { Caller } from '../http/caller.js';
import {
  DISABLED,
  type HttpRequest,
  type HttpResponse,
  type TemplatedApp,
  type us_socket_context_t,
  type WebSocket,
} from '../http/uws.js';
import { refuse } from '../kit/fault.js';
import {
  admit,
  auth_op,
  closeFor,
  nextTick,
  type SocketData,
  takeControl,
  takeMessage,
  upgrade,
} from './admission.js';
import {
  type CloseCode,
  close_codes,
  eventFrame,
  frame_id,
  keyOf,
  makeFrame,
  type Publication,
  passes,
  type TopicRef,
  ws_faults,
} from './frames.js';
import {
  type Channel,
  type Core,
  closeSilent,
  defineOp,
  gapFrame,
  type HubOptions,
  isOverloaded,
  makeCore,
  type Ops,
  type Session,
} from './session.js';
import { leaveLive, makePrevReader, topic_ops } from './subscribe.js';

/**
 * The websockets of one process: connections, subscriptions, and the path of a publication to its
 * sockets. Nothing in here may throw into uWS, because that would end the process. So every
 * callback is guarded. Events leave in the order of their offsets.
 */

export interface Closing {
  /** `credential` is the SHA-256 of the socket's credential, in hex. */
  readonly matches: (caller: Caller, credential: string | null) => boolean;
  readonly code: CloseCode;
  readonly reason: string;
}

export type Hub = ReturnType<typeof mountHub>;

/** Above the frame limit. That limit is enforced here, because uWS closes without a close frame. */
const payload_bytes = 98_304;
const sweep_ms = 250;
/** A socket that is to be closed may wait this long for the answers to its calls. */
const calls_ms = 11_000;
const ping_op = defineOp({
  schema: Type.Object({ id: frame_id }),
  take: (session, { id }) =>
    makeFrame('pong', id, { time: new Date().toISOString(), head: session.sentUpTo() }),
});

/** Ops that every socket understands. */
export const socket_ops: Ops = { auth: auth_op, ping: ping_op, ...topic_ops };

/** Mounts the websockets. No socket is admitted before `begin` sets the head of the log. */
export const mountHub = (app: TemplatedApp, options: HubOptions) => {
  const ops = { ...socket_ops, ...options.ops };
  const core = makeCore(options, {
    ops,
    makePrevReader,
    publish: (key, frame) => void app.publish(key, frame),
  });
  mountCallbacks(app, core);
  core.connections.onFull((name) => closeSilent(core, name));
  const sweepAll = core.guard(() => {
    const now_ms = performance.now();
    for (const session of [...core.sessions]) sweep(session, now_ms);
  });
  const timer = setInterval(sweepAll, Math.min(sweep_ms, core.limits.tick_ms)).unref();
  return {
    begin(head: number): void {
      core.head = head;
      core.recent.reset(head);
    },
    /**
     * Sends a batch, in order and without holes, to its subscribers. Publications that were sent
     * before are skipped. If there is a hole before the batch, all subscribers get a gap.
     */
    publish: core.guard((batch: readonly Publication[]) => publish(core, batch)),
    head: (): number => core.head,
    /** Call this when a state may have changed. Its subscribers get the newest state soon. */
    touch: (topic: string): void => core.states.touch(topic),
    /** Closes the sockets that `matches` accepts, and returns their number. */
    closeWhere: (closing: Closing): number => closeWhere(core, closing),
    /** Closes every socket, spread over at most `drain_ms`. New sockets are closed immediately. */
    drain: (): Promise<void> => drain(core),
    /** Cuts the remaining sockets at the end of the process. */
    close(): void {
      core.draining = true;
      clearInterval(timer);
      for (const session of [...core.sessions]) session.cut(close_codes.DRAINING);
    },
    stats: () => ({
      ...core.stats,
      sockets: core.sessions.size,
      unread_bytes: core.unread_bytes,
      topics: core.channels.size + core.states.size,
      /** Number of channels: topics of the log, each counted once per filter. */
      channels: [...core.channels.values()].reduce((sum, { size }) => sum + size, 0),
    }),
  };
};

const mountCallbacks = (app: TemplatedApp, core: Core): void => {
  type Socket = WebSocket<SocketData>;
  const { guard, limits, stats, sessions } = core;
  const behavior = {
    compression: DISABLED,
    maxPayloadLength: payload_bytes,
    // The fan-out enforces the real limit. This one is several times larger, and a socket that
    // reaches it is cut.
    maxBackpressure: limits.backpressure_bytes * 4,
    // A client that vanished is closed after this many seconds (a multiple of four).
    idleTimeout: 44,
    maxLifetime: 0,
    sendPingsAutomatically: true,
    upgrade(res: HttpResponse, req: HttpRequest, context: us_socket_context_t) {
      try {
        upgrade(core, res, req, context);
      } catch (error) {
        core.onBug(error);
        res.close();
      }
    },
    open: guard((ws: Socket) => {
      const { session } = ws.getUserData();
      session.ws = ws;
      sessions.add(session);
      stats.opened += 1;
      admit(session).catch(core.onBug);
    }),
    message: guard((ws: Socket, raw: ArrayBuffer, is_binary: boolean) =>
      takeMessage(ws.getUserData().session, Buffer.from(raw), is_binary),
    ),
    ping: guard((ws: Socket) => takeControl(ws.getUserData().session)),
    pong: guard((ws: Socket) => takeControl(ws.getUserData().session)),
    // Missing in the library's types.
    dropped: guard((ws: Socket) => ws.getUserData().session.markBroken()),
    // A frame that is sent inside this callback leaves only after the callback returns. It would
    // count as unread, and no further drain would follow.
    drain: guard((ws: Socket) => {
      const { session } = ws.getUserData();
      setImmediate(guard(() => session.onRead()));
    }),
    close: guard((ws: Socket, code: number) => ws.getUserData().session.onClose(code)),
  };
  app.ws<SocketData>(core.options.path, behavior);
};

/** False while the socket waits for answers to its calls, but at most until `late_ms`. */
const mayGo = ({ calls }: Session, late_ms: number): boolean =>
  calls === null || calls.in_flight === 0 || performance.now() > late_ms;

/** Closes broken, old and silent sockets, and sends ticks. */
const sweep = (session: Session, now_ms: number): void => {
  const { broken_since_ms, has_spoken, caller, opened_ms, ends_ms, core } = session;
  const { unread_ms, hello_ms } = core.limits;
  if (broken_since_ms !== null) {
    session.finishBroken();
    if (now_ms - broken_since_ms > unread_ms) session.cut(close_codes.SLOW);
  } else if (now_ms > ends_ms && mayGo(session, ends_ms + calls_ms)) {
    session.sayBye(close_codes.LIFETIME, 'lifetime');
  } else if (!has_spoken && caller.kind === 'anonymous' && now_ms - opened_ms > hello_ms) {
    closeFor(session, refuse(ws_faults.AUTH_TIMEOUT));
  } else if (caller.kind === 'human' && caller.expires_at.getTime() <= Date.now()) {
    session.end(close_codes.CREDENTIAL_EXPIRED, 'credential expired');
  } else if (now_ms >= session.tick_due_ms) {
    session.tick_due_ms = nextTick(core);
    session.send(tickFrame(session));
  }
};

/**
 * Shows that a silent socket is alive. The client was sent everything up to `head`, and `heads` has
 * the newest offset of each topic. If the client's own newest event of a topic is older, the client
 * has lost an event. The same is true if it follows the whole log and its digest differs.
 */
const tickFrame = (session: Session): string => {
  const time = new Date().toISOString();
  const head = session.sentUpTo();
  const digest = session.core.options.digestAt?.(head);
  return makeFrame('tick', undefined, { time, head, digest, heads: session.heads() });
};

const publish = (core: Core, batch: readonly Publication[]): void => {
  if (core.head < 0) return;
  const fresh = batch.filter(({ offset }) => offset > core.head);
  const first = fresh[0]?.offset ?? core.head + 1;
  if (first !== core.head + 1) sendGaps(core, first);
  for (const publication of fresh) core.recent.push(publication);
  core.head = fresh.at(-1)?.offset ?? core.head;
  fanOut(core, fresh);
  for (const look of [...core.on_head]) look();
};

/** The log itself has lost the events between the head and `next`, so all subscribers get a gap. */
const sendGaps = (core: Core, next: number): void => {
  const after = core.head;
  core.log.error({ after, next }, 'ws: the log has a hole');
  core.recent.reset(next - 1);
  for (const session of [...core.sessions]) {
    const gapOf = (ref: TopicRef) =>
      gapFrame(core, { ref, after, until: next - 1, reason: 'expired' });
    session.sendAll([...session.topics.values()].map(gapOf));
  }
};

/** While all sockets together leave too much unread, each socket's limit is divided by this. */
const overload_share = 16;
/** How many frames, and bytes, are published before the next check for unread data. */
const portion_frames = 32;
const portion_bytes = 32_768;

/** Consecutive publications that are sent together, and their frames. */
interface Portion {
  /** The offset before the first publication. */
  readonly after: number;
  readonly frames: { readonly channel: Channel; readonly bytes: Buffer }[];
}

/** Makes the frames of a batch, one for each channel. */
const makePortions = (core: Core, batch: readonly Publication[]): readonly Portion[] => {
  const portions: Portion[] = [];
  let [frames, size] = [portion_frames, 0];
  for (const publication of batch) {
    const { offset } = publication;
    if (frames >= portion_frames || size >= portion_bytes) {
      portions.push({ after: offset - 1, frames: [] });
      [frames, size] = [0, 0];
    }
    for (const { topic } of publication.topics) {
      for (const channel of core.channels.get(topic)?.values() ?? []) {
        if (!passes(channel, publication)) continue;
        const bytes = Buffer.from(eventFrame(channel, channel.prev, publication));
        channel.prev = offset;
        portions.at(-1)?.frames.push({ channel, bytes });
        frames += 1;
        size += bytes.length;
      }
    }
  }
  return portions;
};

/**
 * Sends a batch, in order, to the sockets that listen to its topics. uWebSockets.js copies each
 * frame to the subscribers of its channel. It would drop frames for a slow reader without saying
 * which. So before each portion, a socket that leaves too much unread leaves the live stream at the
 * last offset that it was sent, and then catches up at its own pace.
 */
const fanOut = (core: Core, batch: readonly Publication[]): void => {
  const { backpressure_bytes } = core.limits;
  for (const { after, frames } of makePortions(core, batch)) {
    const most = isOverloaded(core) ? backpressure_bytes / overload_share : backpressure_bytes;
    for (const channel of new Set(frames.map(({ channel }) => channel))) {
      for (const session of channel.sessions) {
        if (!session.is_usable) session.leaveAll();
        else if (session.lookUnread() > most) leaveLive(session, after);
      }
    }
    for (const { channel, bytes } of frames) core.publish(keyOf(channel), bytes);
  }
};

/** Sockets closed per second, unless more are needed to finish within `drain_ms`. */
const drained_per_s = 500;
const drain_round_ms = 50;

const drain = async (core: Core): Promise<void> => {
  core.draining = true;
  let leaving = [...core.sessions];
  const late_ms = performance.now() + calls_ms;
  const rounds = Math.max(1, (core.limits.drain_ms * 0.9) / drain_round_ms);
  const a_round = Math.ceil(
    Math.max((drained_per_s * drain_round_ms) / 1_000, leaving.length / rounds),
  );
  while (leaving.length > 0) {
    const going = new Set(leaving.filter((one) => mayGo(one, late_ms)).slice(0, a_round));
    leaving = leaving.filter((one) => !going.has(one));
    for (const one of going) core.guard(() => one.sayBye(close_codes.DRAINING, 'draining'))();
    if (leaving.length > 0) await wait(drain_round_ms);
  }
};

const closeWhere = (core: Core, { matches, code, reason }: Closing): number => {
  let count = 0;
  for (const session of [...core.sessions]) {
    if (session.is_ending || !matches(session.caller, session.credential)) continue;
    const end = (): void => session.end(code, reason);
    // If a call revokes the client's own credentials, the client gets the reply to that call first.
    if (session.calls === null) end();
    else session.calls.whenAnswered(end);
    count += 1;
  }
  return count;
};
