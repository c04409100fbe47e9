import { type Static, Type } from '@sinclair/typebox';
import { callerKey } from '../http/caller.js';
import { makeLoader } from '../kit/cache.js';
import { common_faults, type Fault, isFault, refuse } from '../kit/fault.js';
import { groupBy } from '../kit/group-by.js';
import { describeError } from '../kit/log.js';
import { withDeadline } from '../kit/service.js';
import {
  close_codes,
  errorFrame,
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
  type Core,
  closeSilent,
  defineOp,
  type GapReason,
  gapFrame,
  isOverloaded,
  type Join,
  type LogSource,
  type PrevRequest,
  type Session,
} from './session.js';
import type { StateRef } from './states.js';

/**
 * Decides which topics a socket listens to, and brings topics from an offset to the head without a
 * hole and without a repeat. This is needed for a subscription that asks for missed events, for a
 * topic whose previous event is not known yet, and for a socket that read too slowly.
 *
 *   after > head        this process lags behind the one the client came from: wait for the head
 *   never reached,      gap: say so, and go on from the head
 *   too far back,
 *   or too many events
 *   before the recent   pages from the record, each up to the head at that time
 *   within the recent   from memory; when the end is reached, the topics go live in the same turn
 *
 * The last step leaves no gap: publishing and this step are both synchronous, so nothing can be
 * published between the last replayed event and the moment the topic is live. Everything is sent at
 * the pace of the reader. A socket that reads nothing for `unread_ms` is closed with 4101.
 */

/** Maximum number of newest events that a subscribe frame may ask for. */
export const max_last = 1_000;

const topics = Type.Array(Type.String({ minLength: 1, maxLength: 200 }), {
  minItems: 1,
  maxItems: 1_000,
});
const subscribe_frame = Type.Object({
  id: frame_id,
  topics,
  after: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  last: Type.Optional(Type.Integer({ minimum: 1, maximum: max_last })),
  filter: Type.Optional(Type.Unknown()),
});
type SubscribeFrame = Static<typeof subscribe_frame>;
const unsubscribe_frame = Type.Object({ id: frame_id, topics });

interface Named {
  readonly log: readonly TopicRef[];
  readonly states: readonly StateRef[];
}

/** Resolves the names for this caller. One unknown name refuses all of them. */
const resolveAll = ({ core, caller }: Session, names: readonly string[]): Named | Fault => {
  const log = new Map<string, TopicRef>();
  const states = new Map<string, StateRef>();
  for (const name of names) {
    const state = core.states.resolve(name, caller);
    if (isFault(state)) return state;
    const ref = state ?? core.options.resolveTopic(name, caller);
    if (isFault(ref)) return ref;
    if (state === null) log.set(ref.topic, ref);
    else states.set(state.topic, state);
  }
  return { log: [...log.values()], states: [...states.values()] };
};

/** Retrying helps if the other sockets belong to a client that vanished. */
const topics_elsewhere = { ...ws_faults.TOO_MANY_TOPICS, retryable: true };

/** A caller's sockets share one topic limit. Each socket without a credential has its own. */
const checkRoom = (session: Session, refs: readonly TopicRef[]): Fault | null => {
  const { core, caller, siblings } = session;
  const key = callerKey(caller);
  const most = key === null ? core.limits.topics_anonymous : core.limits.topics;
  const own = session.countTopics() + refs.filter(({ topic }) => !session.holds(topic)).length;
  if (own > most) return refuse(ws_faults.TOO_MANY_TOPICS);
  let count = own;
  for (const one of siblings) if (one !== session) count += one.countTopics();
  if (count <= most) return null;
  // The other sockets may belong to a client that vanished.
  closeSilent(core, `key:${key}`);
  return refuse(topics_elsewhere, {
    message:
      'Other sockets of this key hold too many topics. Unsubscribe there, or try again in 4 s.',
  });
};

/** Adds the filter of the frame to the topics. */
const withFilter = (
  { options, channels, limits }: Core,
  { log, states }: Named,
  frame: SubscribeFrame,
): Named | Fault => {
  const filter = options.readFilter(frame);
  if (isFault(filter)) return filter;
  if (filter === null) return { log, states };
  const [state] = states;
  if (state !== undefined) {
    const message = `The topic "${state.label}" is a state. Subscribe to it without a filter.`;
    return refuse(ws_faults.INVALID_FILTER, { message });
  }
  const filtered = log.map((ref) => ({ ...ref, filter }));
  const is_full = filtered.some((ref) => {
    const of_topic = channels.get(ref.topic);
    return !of_topic?.has(keyOf(ref)) && (of_topic?.size ?? 0) >= limits.filters;
  });
  return is_full ? refuse(ws_faults.TOO_MANY_FILTERS) : { log: filtered, states };
};

const subscribe = (session: Session, frame: SubscribeFrame): string | Fault => {
  const { core } = session;
  const { id, after, last } = frame;
  if (after !== undefined && last !== undefined) {
    const message = 'Send "after" or "last", not both.';
    return refuse(ws_faults.INVALID_FRAME, { message });
  }
  const resolved = resolveAll(session, frame.topics);
  if (isFault(resolved)) return resolved;
  const named = withFilter(core, resolved, frame);
  if (isFault(named)) return named;
  const { log, states } = named;
  if (session.has_default_topics) {
    session.has_default_topics = false;
    session.leaveAll();
  }
  const full = checkRoom(session, [...log, ...states]);
  if (full !== null) return full;
  for (const ref of states) core.states.join(session, ref);
  const is_live = (after === undefined && last === undefined) || log.length === 0;
  // If a slow reader subscribes again to a topic that it already has, it goes on at its offset.
  const fresh = is_live ? log.filter((ref) => !session.follows(ref)) : log;
  const held = log.filter((ref) => !fresh.includes(ref));
  const labels = [...held, ...states].map(({ label }) => label);
  startJoin(session, fresh, {
    cursor: after ?? core.head,
    from: is_live ? 'head' : last === undefined ? 'cursor' : { last },
    answer: { id, labels, filter: log[0]?.filter?.shown },
  });
  return '';
};

/** If a socket has not subscribed, gives it the default topics of its caller. */
export const followDefaults = (session: Session): void => {
  const { options, head } = session.core;
  session.has_default_topics = true;
  const refs = options.defaultTopics(session.caller);
  startJoin(session, refs, { cursor: head, from: 'head', answer: null });
};

const unsubscribe = (
  session: Session,
  { topics, id }: Static<typeof unsubscribe_frame>,
): string | Fault => {
  const named = resolveAll(session, topics);
  if (isFault(named)) return named;
  session.has_default_topics = false;
  const left = [...named.log, ...named.states].filter(({ topic }) => {
    const joining = session.leaveJoins(topic);
    const listening = session.leave(topic);
    return session.core.states.leave(session, topic) || joining || listening;
  });
  return makeFrame('unsubscribed', id, { topics: left.map(({ label }) => label) });
};

export const topic_ops = {
  subscribe: defineOp({ schema: subscribe_frame, take: subscribe }),
  unsubscribe: defineOp({ schema: unsubscribe_frame, take: unsubscribe }),
};

/** Takes the socket out of the live stream at `cursor`. It then catches up at its own pace. */
export const leaveLive = (session: Session, cursor: number): void => {
  session.core.stats.slow += 1;
  const refs = [...session.topics.values()];
  startJoin(session, refs, { cursor, from: 'cursor', answer: null, is_slow: true });
};

/**
 * Starts the given topics. A topic that is already live starts again. Replays of one socket run one
 * after the other. Topics that start at the head wait for nothing, and go live immediately if
 * memory knows the previous event of each.
 */
const startJoin = (
  session: Session,
  refs: readonly TopicRef[],
  parts: Pick<Join, 'cursor' | 'from' | 'answer' | 'is_slow'>,
): void => {
  const { core } = session;
  for (const { topic } of refs) {
    session.leaveJoins(topic);
    session.leave(topic);
  }
  const join: Join = {
    ...parts,
    refs: new Map(refs.map((ref) => [ref.topic, ref])),
    prevs: new Map(),
  };
  session.joins.add(join);
  if (join.from !== 'head') {
    session.replays = session.replays.then(() => replay(session, join));
    return;
  }
  const { prevs, missing } = prevsInMemory(core, refs, core.head);
  if (missing.size > 0) replay(session, join).catch(core.onBug);
  else {
    join.prevs = prevs;
    goLive(session, join, { result: 'live', replayed: 0 });
    session.joins.delete(join);
  }
};

const replay = async (session: Session, join: Join): Promise<void> => {
  const { core } = session;
  try {
    const reason = await placeCursor(session, join);
    if (!session.is_usable) return;
    if (reason !== null) {
      const { cursor: after, refs } = join;
      // The client itself has to fetch everything before the head.
      join.cursor = core.head;
      const gapOf = (ref: TopicRef) => gapFrame(core, { ref, after, until: core.head, reason });
      session.sendAll([...refs.values()].map(gapOf));
    }
    const caught_up = reason !== null ? 'gap' : join.from === 'head' ? 'live' : 'recovered';
    await catchUp(session, join, caught_up);
  } catch (error) {
    core.log.warn(describeError(error), 'ws: a replay failed');
    session.send(errorFrame(refuse(common_faults.UNAVAILABLE), join.answer?.id));
    // A client can subscribe again, but a socket that lost its position cannot go on.
    if (join.answer === null) session.end(close_codes.OVERLOAD, 'the log is unavailable');
  } finally {
    session.joins.delete(join);
  }
};

interface Arrival {
  readonly result: 'live' | 'recovered' | 'gap';
  readonly replayed: number;
}

const goLive = (session: Session, join: Join, arrival: Arrival): void => {
  const refs = [...join.refs.values()];
  for (const ref of refs) session.join(ref, join.prevs.get(ref.topic) ?? 0);
  join.refs.clear();
  if (join.answer === null) return;
  const { id, labels, filter } = join.answer;
  const topics = [...refs.map(({ label }) => label), ...labels];
  const { head } = session.core;
  session.send(makeFrame('subscribed', id, { topics, filter, head, ...arrival }));
};

/** Sets the cursor to the start of the replay. Returns the reason for a gap, or null. */
const placeCursor = async (session: Session, join: Join): Promise<GapReason | null> => {
  const { core } = session;
  const { limits, on_head } = core;
  if (join.from === 'head') return null;
  if (join.from !== 'cursor') join.cursor = await findLast(core, join, join.from.last);
  const hasCome = (): boolean => core.head >= join.cursor;
  const has_come = await untilCalled(on_head, limits.ahead_ms, hasCome);
  // How far a slow reader is behind is known only once it has read.
  if (!(await untilRead(session, performance.now() + limits.replay_ms))) return null;
  if (!has_come) return 'epoch';
  if (!(await isTooFar(core, join))) return null;
  return join.is_slow === true ? 'slow' : 'expired';
};

const page_size = 200;
/**
 * Above this many unread bytes a replay waits for its reader. Frames are dropped only far above it.
 */
const unread_goal = 65_536;
const overload_goal = 4_096;
const read_deadline_ms = 15_000;

/** Sends everything up to the head, and goes live in the same turn as the last event. */
const catchUp = async (session: Session, join: Join, result: Arrival['result']): Promise<void> => {
  const { core } = session;
  const { recent } = core;
  const ends_ms = performance.now() + core.limits.replay_ms;
  join.prevs = await prevsAt(core, [...join.refs.values()], join.cursor);
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
  if (session.is_usable) goLive(session, join, { result, replayed });
};

const goalOf = (core: Core): number => (isOverloaded(core) ? overload_goal : unread_goal);

/**
 * Sends publications in order until the reader has enough to read, and moves the cursor. Returns
 * how many were sent.
 */
const sendSome = (session: Session, join: Join, batch: readonly Publication[]): number => {
  const { refs, prevs } = join;
  let sent = 0;
  session.ws?.cork(() => {
    let unread = session.lookUnread();
    const goal = goalOf(session.core);
    for (const publication of batch) {
      if (unread > goal || !session.is_usable) return;
      for (const ref of wantedOf(publication, refs)) {
        const text = eventFrame(ref, prevs.get(ref.topic) ?? 0, publication);
        prevs.set(ref.topic, publication.offset);
        session.send(text);
        unread += text.length;
        sent += 1;
      }
      join.cursor = publication.offset;
    }
  });
  return sent;
};

/** Returns the topics of a publication whose filters let it pass. */
const wantedOf = (publication: Publication, refs: ReadonlyMap<string, TopicRef>): TopicRef[] =>
  publication.topics.flatMap(({ topic }) => {
    const ref = refs.get(topic);
    return ref !== undefined && passes(ref, publication) ? [ref] : [];
  });

const readRecord = <T>(core: Core, read: (source: LogSource) => Promise<T>): Promise<T> =>
  core.record_reads(() =>
    withDeadline(read(core.options.source), read_deadline_ms, 'Reading the log for a replay'),
  );

/** Returns the offset before the newest `last` events. */
const findLast = async (core: Core, { refs }: Join, last: number): Promise<number> => {
  const { limits, recent, options, head } = core;
  let left = last;
  for (const publication of recent.before(head)) {
    if (wantedOf(publication, refs).length > 0) left -= 1;
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

/** Waits until the client has read the sent data; false if it is late, or gone. */
export const untilRead = async (session: Session, ends_ms: number): Promise<boolean> => {
  const { core } = session;
  if (!session.is_usable) return false;
  const left_ms = Math.min(core.limits.unread_ms, ends_ms - performance.now());
  const hasRead = (): boolean => session.lookUnread() <= goalOf(core);
  const in_time = left_ms > 0 && (await untilCalled(session.on_read, left_ms, hasRead));
  if (!in_time) session.end(close_codes.SLOW, 'reads too slowly');
  return in_time && session.is_usable;
};

/** Checks `holds` now and whenever the listeners are called; false if it is not true in time. */
const untilCalled = async (
  listeners: Set<() => void>,
  within_ms: number,
  holds: () => boolean,
): Promise<boolean> => {
  if (holds()) return true;
  return new Promise((resolve) => {
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
};

/** Offset of the previous event, by topic; 0 before the first event. */
type Prevs = Map<string, number>;

/** Finds previous events in memory, as of an offset. Topics in `missing` need the record. */
const prevsInMemory = (core: Core, refs: readonly TopicRef[], offset: number) => {
  const { recent, channels, options, head } = core;
  const prevs: Prevs = new Map();
  const missing = new Map<string, TopicRef>();
  for (const ref of refs) {
    const channel = offset === head ? channels.get(ref.topic)?.get(keyOf(ref)) : undefined;
    if (channel === undefined) missing.set(ref.topic, ref);
    else prevs.set(ref.topic, channel.prev);
  }
  for (const publication of missing.size > 0 ? recent.before(offset) : []) {
    for (const { topic } of wantedOf(publication, missing)) {
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

/**
 * Asks the record for previous events that are not in memory. All subscribers ask for the event
 * before the oldest one in memory, so they share that query. If its result is after `offset`, the
 * record is asked again.
 */
const prevsAt = async (core: Core, refs: readonly TopicRef[], offset: number): Promise<Prevs> => {
  const { prevs, missing } = prevsInMemory(core, refs, offset);
  const memory_from = core.recent.from();
  const read = async (ref: TopicRef): Promise<void> => {
    const newest = await core.readPrev({ ref, until: memory_from });
    prevs.set(ref.topic, newest > offset ? await core.readPrev({ ref, until: offset }) : newest);
  };
  await Promise.all([...missing.values()].map(read));
  return prevs;
};

/** How far back to search, nearest first, because most topics were active a moment ago. */
const windows = [512, 8_192] as const;

/**
 * Returns the offset of the newest event of a topic up to an offset, exact as far back as a replay
 * can look. Requests that come together, or during another one, share the queries.
 */
export const makePrevReader = (source: LogSource, span_most: number) => {
  const search = async (refs: readonly TopicRef[], until: number): Promise<Prevs> => {
    const found: Prevs = new Map();
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
  return makeLoader<number, PrevRequest>(
    async (requests) => {
      const found = new Map<PrevRequest, number>();
      for (const [until, group] of groupBy(requests, (one) => one.until)) {
        const refs = new Map(group.map(({ ref }) => [keyOf(ref), ref]));
        const work = search([...refs.values()], until);
        const prevs = await withDeadline(work, read_deadline_ms, 'Looking for the previous event');
        for (const one of group) found.set(one, prevs.get(keyOf(one.ref)) ?? 0);
      }
      return requests.map((one) => found.get(one) ?? 0);
    },
    { most: 1_000, at_once: 1 },
  );
};
