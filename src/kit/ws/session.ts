import { randomBytes } from 'node:crypto';
import type { Address, WebSocket } from '../http/request.js';
import { anonymous, type Caller } from '../http/route.js';
import type { Channel } from './channels.js';
import type { CloseCode } from './close-codes.js';
import { keyOf, type TopicRef } from './frames.js';
import type { ReadFrame } from './ops.js';

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

export interface SessionParts {
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
