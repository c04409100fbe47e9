import type { LimitFunction } from 'p-limit';
import type { Logger } from 'pino';
import { callerKey } from '../http/route.js';
import { type Channels, leaveAllChannels } from './channels.js';
import { type CloseCode, close_codes } from './close-codes.js';
import { makeFrame, type Publication, type TopicRef } from './frames.js';
import type { FrameReader } from './ops.js';
import type { HubLimits, HubOptions } from './options.js';
import type { NewestReader } from './prevs.js';
import type { Recent } from './recent.js';
import type { Seats } from './seats.js';
import { isUsable, type Session, tellRead } from './session.js';
import type { States } from './states.js';
import type { Ticker } from './ticker.js';

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

export interface HubStats {
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
export const cutSession = (session: Session, code: CloseCode): void => {
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
export const finishBroken = (core: Core, session: Session): void => {
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
export const forgetSession = (core: Core, session: Session, code: number): void => {
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

export interface Gap {
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
