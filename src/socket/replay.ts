import { setImmediate as nextTurn } from 'node:timers/promises';
import pLimit from 'p-limit';
import { common_faults, refuse } from '../kit/fault.js';
import { describeError } from '../kit/log.js';
import { withDeadline } from '../kit/service.js';
import {
  close_codes,
  errorFrame,
  eventFrame,
  type FrameId,
  frameTail,
  keyOf,
  makeFrame,
  type Publication,
  passes,
  type TopicRef,
} from './frames.js';
import type { Core, LogSource } from './hub.js';
import { type GapReason, gapFrame, isOverloaded, type Join, type Session } from './session.js';

/**
 * Brings topics from a given offset to the present, without a hole and without a repeat: for a
 * subscription that asks for what it missed, for one whose event before is not known yet, and for a
 * socket that read too slowly.
 *
 *   after > head        this process lags behind the one the client came from: wait for the head
 *   never, too far,     gap: say so, and go on from the head
 *   or too many
 *   before the recent   pages from the record, each up to the head of that moment
 *   within the recent   from memory; when the end is reached, the topics go live in the same turn
 *
 * The last step is what closes the seam: publishing and this step are both synchronous, so nothing
 * can be published between the last replayed event and the moment the topic is live. Everything is
 * sent at the pace of the reader; one that reads nothing for `unread_ms` is closed with 4101.
 */

export interface ReplayRequest {
  readonly join: Join;
  readonly id: FrameId;
  /** Where it begins: at the cursor of the join, at the newest so many events, or at the head. */
  readonly from: 'cursor' | 'head' | { readonly last: number };
  /** Names of further topics of the same frame, which need no replay. */
  readonly labels?: readonly string[];
  /** Nobody asked: the topics are given to every socket of this kind. */
  readonly by_default?: boolean;
}

const page_size = 200;
/** Unread bytes above which a replay waits for its reader; well below the limit for drops. */
const unread_goal = 65_536;
const overload_goal = 4_096;
const read_deadline_ms = 15_000;

/**
 * Replays of one socket run one after the other. Topics that begin at the head wait for nothing:
 * there is hardly anything to send.
 */
export const startReplay = (session: Session, request: ReplayRequest): void => {
  session.joins.add(request.join);
  if (request.from === 'head') run(session, request).catch(session.core.onBug);
  else session.replays = session.replays.then(() => run(session, request));
};

const run = async (session: Session, request: ReplayRequest): Promise<void> => {
  const { join, id, from, labels = [], by_default = false } = request;
  try {
    const reason = await begin(session, request);
    if (!session.is_usable) return;
    if (reason !== null) {
      // What lies before the head is for the client to fetch.
      const { head: until } = session.core;
      const gapOf = (ref: TopicRef) =>
        gapFrame(session.core, { ref, after: join.cursor, until, reason });
      session.sendAll([...join.refs.values()].map(gapOf));
      join.cursor = until;
    }
    await catchUp(session, join, (replayed) => {
      const refs = [...join.refs.values()];
      for (const ref of refs) session.join(ref, join.prevs.get(ref.topic) ?? 0);
      join.refs.clear();
      if (join.is_slow || by_default) return;
      const result = reason !== null ? 'gap' : from === 'head' ? 'live' : 'recovered';
      session.send(subscribedFrame(session.core, { id, refs, labels, result, replayed }));
    });
  } catch (error) {
    session.core.log.warn(describeError(error), 'ws: a replay failed');
    session.send(errorFrame(refuse(common_faults.UNAVAILABLE), id));
    // A subscription can be asked for again; a socket that lost its place cannot go on.
    if (join.is_slow || by_default) session.end(close_codes.OVERLOAD, 'the log is away');
  } finally {
    session.joins.delete(join);
  }
};

/** Puts the cursor where the replay begins; why that is not where it should, or null. */
const begin = async (
  session: Session,
  { join, from }: ReplayRequest,
): Promise<GapReason | null> => {
  const { core } = session;
  if (from === 'head') return null;
  if (from !== 'cursor') join.cursor = await findLast(core, join, from.last);
  const reached = await untilCalled(core.on_head, core.limits.ahead_ms, () => {
    return core.head >= join.cursor;
  });
  // A slow reader is first waited for: how far it is behind is known only then.
  if (!(await untilRead(session, performance.now() + core.limits.replay_ms))) return null;
  if (!reached) return 'epoch';
  if (!(await isTooFar(core, join))) return null;
  return join.is_slow ? 'slow' : 'expired';
};

/**
 * Sends everything up to the head, and then calls `goLive`, with the number of events, in the same
 * turn: after an await, something might have been published.
 */
const catchUp = async (
  session: Session,
  join: Join,
  goLive: (replayed: number) => void,
): Promise<void> => {
  const { core } = session;
  const { recent } = core;
  const ends_ms = performance.now() + core.limits.replay_ms;
  join.prevs = await prevsAt(core, join.refs.values(), join.cursor);
  let replayed = 0;
  while (join.refs.size > 0 && (await untilRead(session, ends_ms))) {
    if (join.cursor >= recent.from()) {
      replayed += sendSome(session, join, recent.after(join.cursor));
      if (join.cursor >= core.head) break;
      continue;
    }
    const span = { after: join.cursor, until: core.head, limit: page_size };
    const page = await readRecord(core, (source) => source.read([...join.refs.values()], span));
    for (let rest = page; rest.length > 0; rest = rest.filter((p) => p.offset > join.cursor)) {
      replayed += sendSome(session, join, rest);
      if (!(await untilRead(session, ends_ms))) return;
    }
    if (page.length < page_size) join.cursor = span.until;
  }
  if (session.is_usable) goLive(replayed);
};

export interface Subscribed {
  readonly id: FrameId;
  readonly refs: readonly TopicRef[];
  readonly labels: readonly string[];
  readonly result: 'live' | 'recovered' | 'gap';
  readonly replayed: number;
}

export const subscribedFrame = ({ head }: Core, subscribed: Subscribed): string => {
  const { id, refs, labels, result, replayed } = subscribed;
  const topics = [...refs.map(({ label }) => label), ...labels];
  const filter = refs[0]?.filter?.shown;
  return makeFrame('subscribed', id, { topics, filter, head, result, replayed });
};

/** Frames of one publication, one for each topic that is still wanted. */
const framesOf = (publication: Publication, { refs, prevs }: Join): string[] => {
  const frames: string[] = [];
  let tail: string | undefined;
  for (const { topic } of publication.topics) {
    const ref = refs.get(topic);
    if (ref === undefined || !passes(ref, publication)) continue;
    tail ??= frameTail(publication);
    frames.push(eventFrame(ref.label, prevs.get(topic) ?? 0, publication.offset, tail));
    prevs.set(topic, publication.offset);
  }
  return frames;
};

const goalOf = (core: Core): number => (isOverloaded(core) ? overload_goal : unread_goal);

/** Sends in order until the reader has enough to read, and moves the cursor; how many. */
const sendSome = (session: Session, join: Join, batch: readonly Publication[]): number => {
  let sent = 0;
  session.ws?.cork(() => {
    let unread = session.lookUnread();
    const goal = goalOf(session.core);
    for (const publication of batch) {
      if (unread > goal || !session.is_usable) return;
      for (const text of framesOf(publication, join)) {
        session.send(text);
        unread += Buffer.byteLength(text);
        sent += 1;
      }
      join.cursor = publication.offset;
    }
  });
  return sent;
};

const readRecord = <T>(core: Core, read: (source: LogSource) => Promise<T>): Promise<T> =>
  core.record_reads(() =>
    withDeadline(read(core.options.source), read_deadline_ms, 'Reading the log for a replay'),
  );

/** The offset before the newest so many events. */
const findLast = async (core: Core, { refs }: Join, last: number): Promise<number> => {
  const { limits, recent, options, head } = core;
  let left = last;
  for (const publication of recent.before(head)) {
    const isWanted = ({ topic }: TopicRef): boolean => {
      const ref = refs.get(topic);
      return ref !== undefined && passes(ref, publication);
    };
    if (publication.topics.some(isWanted)) left -= 1;
    if (left === 0) return publication.offset - 1;
  }
  const after = Math.max(options.source.oldest() - 1, head - limits.replay_span, 0);
  const span = { after, until: head, limit: last };
  const found = await readRecord(core, (source) => source.nthNewest([...refs.values()], span));
  return found === null ? after : found - 1;
};

const isTooFar = async (core: Core, { refs, cursor: after }: Join): Promise<boolean> => {
  const { limits, recent, options } = core;
  if (after >= recent.from()) return false;
  if (after < options.source.oldest() - 1 || core.head - after > limits.replay_span) return true;
  const span = { after, until: core.head, limit: limits.replay_events + 1 };
  const count = await readRecord(core, (source) => source.count([...refs.values()], span));
  return count > limits.replay_events;
};

/** Waits until the client has read what was sent; false when it is late, or gone. */
const untilRead = async (session: Session, ends_ms: number): Promise<boolean> => {
  const { core } = session;
  if (!session.is_usable) return false;
  const left_ms = Math.min(core.limits.unread_ms, ends_ms - performance.now());
  const hasRead = (): boolean => session.lookUnread() <= goalOf(core);
  const in_time = left_ms > 0 && (await untilCalled(session.on_read, left_ms, hasRead));
  if (!in_time) session.end(close_codes.SLOW, 'reads too slowly');
  return in_time && session.is_usable;
};

/** Looks at once and whenever the listeners are called; false when it does not hold in time. */
const untilCalled = async (
  listeners: Set<() => void>,
  within_ms: number,
  holds: () => boolean,
): Promise<boolean> =>
  holds() ||
  new Promise((resolve) => {
    const finish = (in_time: boolean): void => {
      clearTimeout(timer);
      listeners.delete(look);
      resolve(in_time);
    };
    const timer = setTimeout(finish, within_ms, false);
    const look = (): void => {
      if (holds()) finish(true);
    };
    listeners.add(look);
  });

/**
 * The offset of the event before a given one, by topic, for topics that nobody follows yet. It is
 * looked for where that costs least: a live channel knows its own; the newest publications are in
 * memory; then the record is asked for the newest event of each topic before those in memory, for
 * many subscribers at once, and if that is after the offset in question, once more for that offset
 * alone. It is exact as far back as a replay can look (`replay_span`); 0 says that there is none.
 */
type Prevs = Map<string, number>;

/** Bounds of the searches, nearest first: most topics that are asked for have just been active. */
const windows = [512, 8_192] as const;

export type NewestReader = (
  refs: Iterable<TopicRef>,
  until: number,
) => Promise<ReadonlyMap<string, number>>;

/** What the record says of many topics, each question asked once for all who wait for it. */
export const makeNewestReader = (source: LogSource, span_most: number): NewestReader => {
  const one_at_a_time = pLimit(1);
  const asked = new Map<
    number,
    { refs: Map<string, TopicRef>; answer: ReturnType<NewestReader> }
  >();

  const search = async (refs: readonly TopicRef[], until: number) => {
    const found = new Map<string, number>();
    let missing = refs;
    for (const width of [...windows, span_most]) {
      const after = Math.max(0, until - Math.min(width, span_most));
      for (const [key, offset] of await source.newest(missing, { after, until })) {
        found.set(key, offset);
      }
      missing = missing.filter((ref) => !found.has(keyOf(ref)));
      if (missing.length === 0 || after < source.oldest()) break;
    }
    return found;
  };
  const ask = (until: number) => {
    const refs = new Map<string, TopicRef>();
    const answer = one_at_a_time(async () => {
      // All that ask in this turn of the event loop, or during another question, join in.
      await nextTurn();
      asked.delete(until);
      const work = search([...refs.values()], until);
      return withDeadline(work, read_deadline_ms, 'Looking for the event before');
    });
    const question = { refs, answer };
    asked.set(until, question);
    return question;
  };

  return (refs, until) => {
    const question = asked.get(until) ?? ask(until);
    for (const ref of refs) question.refs.set(keyOf(ref), ref);
    return question.answer;
  };
};

/** What memory knows; `missing` is for the record. */
const fromMemory = (core: Core, refs: Iterable<TopicRef>, offset: number) => {
  const { recent, channels, options, head } = core;
  const prevs: Prevs = new Map();
  const missing = new Map<string, TopicRef>();
  for (const ref of refs) {
    const channel = offset === head ? channels.get(ref.topic)?.get(keyOf(ref)) : undefined;
    if (channel === undefined) missing.set(ref.topic, ref);
    else prevs.set(ref.topic, channel.prev);
  }
  for (const publication of missing.size > 0 ? recent.before(offset) : []) {
    for (const { topic } of publication.topics) {
      const ref = missing.get(topic);
      if (ref === undefined || !passes(ref, publication)) continue;
      prevs.set(topic, publication.offset);
      missing.delete(topic);
    }
    if (missing.size === 0) break;
  }
  if (recent.from() < options.source.oldest()) {
    for (const topic of missing.keys()) prevs.set(topic, 0);
    missing.clear();
  }
  return { prevs, missing };
};

/** By topic, as of an offset; null when the record has to be asked. */
export const prevsInMemory = (
  core: Core,
  refs: Iterable<TopicRef>,
  offset: number,
): Prevs | null => {
  const { prevs, missing } = fromMemory(core, refs, offset);
  return missing.size === 0 ? prevs : null;
};

/** By topic, as of an offset. Throws while the record is away. */
const prevsAt = async (core: Core, refs: Iterable<TopicRef>, offset: number): Promise<Prevs> => {
  const { prevs, missing } = fromMemory(core, refs, offset);
  for (const until of [core.recent.from(), offset]) {
    if (missing.size === 0) break;
    const found = await core.newest(missing.values(), until);
    for (const [topic, ref] of missing) {
      const newest = found.get(keyOf(ref)) ?? 0;
      if (newest > offset) continue;
      prevs.set(topic, newest);
      missing.delete(topic);
    }
  }
  return prevs;
};
