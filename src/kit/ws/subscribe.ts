import { type Static, Type } from '@sinclair/typebox';
import { common_faults, type Fault, isFault, refuse } from '../fault.js';
import { callerKey } from '../http/route.js';
import { describeError } from '../log.js';
import { withDeadline } from '../service.js';
import {
  defineOp,
  errorFrame,
  eventFrame,
  type Filter,
  type FrameId,
  frame_id,
  frameTail,
  makeFrame,
  type Publication,
  type TopicRef,
  ws_faults,
} from './frames.js';
import {
  type Core,
  close_codes,
  endSession,
  type GapReason,
  gapFrame,
  isOverloaded,
  lookUnread,
  sendText,
  sendTexts,
} from './hub.js';
import { prevsAt, prevsInMemory } from './recent.js';
import {
  countTopics,
  findChannel,
  holdsTopic,
  isFollowed,
  isUsable,
  type Join,
  joinChannel,
  leaveAllChannels,
  leaveChannel,
  leaveJoins,
  passes,
  type Session,
} from './session.js';
import type { StateRef } from './states.js';

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

interface ReplayRequest {
  readonly join: Join;
  readonly id: FrameId;
  /** Where it begins: at the cursor of the join, at the newest so many events, or at the head. */
  readonly from: 'cursor' | 'head' | { readonly last: number };
  /** Names of state topics of the same frame. */
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
export const startReplay = (core: Core, session: Session, request: ReplayRequest): void => {
  session.joins.add(request.join);
  if (request.from === 'head') run(core, session, request).catch(core.onBug);
  else session.replays = session.replays.then(() => run(core, session, request));
};

const run = async (core: Core, session: Session, request: ReplayRequest): Promise<void> => {
  const { join, id } = request;
  try {
    const gap = await begin(core, session, request);
    if (!isUsable(session)) return;
    if (gap !== null) tellGap(core, session, { join, reason: gap });
    await catchUp(core, session, { request, gap });
  } catch (error) {
    core.log.warn(describeError(error), 'ws: a replay failed');
    sendText(core, session, errorFrame(refuse(common_faults.UNAVAILABLE), id));
    // A subscription can be asked for again; a socket that lost its place cannot go on.
    const is_asked = !join.is_slow && request.by_default !== true;
    if (!is_asked) endSession(core, session, close_codes.OVERLOAD, 'the log is away');
  } finally {
    session.joins.delete(join);
  }
};

/** Puts the cursor where the replay begins; why that is not where it should, or null. */
const begin = async (
  core: Core,
  session: Session,
  { join, from }: ReplayRequest,
): Promise<GapReason | null> => {
  if (from === 'head') return null;
  if (from !== 'cursor') join.cursor = await findLast(core, join, from.last);
  const reached = await untilHead(core, join.cursor);
  // A slow reader is first waited for: how far it is behind is known only then.
  if (!(await untilRead(core, session, performance.now() + core.limits.replay_ms))) return null;
  if (!reached) return 'epoch';
  if (!(await isTooFar(core, join))) return null;
  return join.is_slow ? 'slow' : 'expired';
};

/** What lies before the head is for the client to fetch. */
const tellGap = (
  core: Core,
  session: Session,
  { join, reason }: { readonly join: Join; readonly reason: GapReason },
): void => {
  const span = { after: join.cursor, until: core.head };
  const refs = [...join.refs.values()];
  sendTexts(
    core,
    session,
    refs.map((ref) => gapFrame(core, { ref, ...span, reason })),
  );
  join.cursor = core.head;
};

interface CatchUp {
  readonly request: ReplayRequest;
  readonly gap: GapReason | null;
}

const catchUp = async (core: Core, session: Session, { request, gap }: CatchUp): Promise<void> => {
  const { join } = request;
  const ends_ms = performance.now() + core.limits.replay_ms;
  join.prevs = await prevsAt(core, join.refs.values(), join.cursor);
  let replayed = 0;
  while (join.refs.size > 0 && (await untilRead(core, session, ends_ms))) {
    if (join.cursor >= core.recent.from()) {
      replayed += sendSome(core, session, { join, batch: core.recent.after(join.cursor) });
      if (join.cursor >= core.head) break;
      continue;
    }
    const until = core.head;
    const page = await readPage(core, join, until);
    for (let rest = page; rest.length > 0; rest = rest.filter((p) => p.offset > join.cursor)) {
      replayed += sendSome(core, session, { join, batch: rest });
      if (!(await untilRead(core, session, ends_ms))) return;
    }
    if (page.length < page_size) join.cursor = until;
  }
  if (isUsable(session)) goLive(core, session, { request, gap, replayed });
};

/** From here on the topics are live. */
const goLive = (
  core: Core,
  session: Session,
  { request, gap, replayed }: CatchUp & { readonly replayed: number },
): void => {
  const { join, id, from, labels = [], by_default = false } = request;
  const refs = [...join.refs.values()];
  for (const ref of refs) joinChannel(core, session, ref, join.prevs.get(ref.topic) ?? 0);
  join.refs.clear();
  core.stats.replayed += replayed;
  if (join.is_slow || by_default) return;
  const result = gap !== null ? 'gap' : from === 'head' ? 'live' : 'recovered';
  const topics = [...refs.map(({ label }) => label), ...labels];
  sendText(core, session, subscribedFrame(core, { id, topics, result, replayed, refs }));
};

interface Subscribed {
  readonly id: FrameId;
  readonly topics: readonly string[];
  readonly result: 'live' | 'recovered' | 'gap';
  readonly replayed: number;
  readonly refs: readonly { readonly filter?: Filter }[];
}

const subscribedFrame = (core: Core, subscribed: Subscribed): string => {
  const { id, topics, result, replayed, refs } = subscribed;
  const filter = refs[0]?.filter?.shown;
  const told = filter === undefined ? {} : { filter };
  return makeFrame('subscribed', id, { topics, ...told, head: core.head, result, replayed });
};

/** Frames of one publication, one for each topic that is still wanted. */
const framesOf = (publication: Publication, { refs, prevs }: Join): string[] => {
  const frames: string[] = [];
  let tail: string | undefined;
  for (const { topic } of publication.topics) {
    const ref = refs.get(topic);
    if (ref === undefined || !passes(ref, publication)) continue;
    tail ??= frameTail(publication);
    const prev = prevs.get(topic) ?? 0;
    frames.push(eventFrame({ label: ref.label, prev }, publication.offset, tail));
    prevs.set(topic, publication.offset);
  }
  return frames;
};

const goalOf = (core: Core): number => (isOverloaded(core) ? overload_goal : unread_goal);

interface Part {
  readonly join: Join;
  readonly batch: readonly Publication[];
}

/** Sends in order until the reader has enough to read, and moves the cursor; how many. */
const sendSome = (core: Core, session: Session, { join, batch }: Part): number => {
  let sent = 0;
  session.ws?.cork(() => {
    let unread = lookUnread(core, session);
    const goal = goalOf(core);
    for (const publication of batch) {
      if (unread > goal || !isUsable(session)) return;
      for (const text of framesOf(publication, join)) {
        sendText(core, session, text);
        unread += Buffer.byteLength(text);
        sent += 1;
      }
      join.cursor = publication.offset;
    }
  });
  return sent;
};

const readRecord = <T>(core: Core, work: () => Promise<T>): Promise<T> =>
  core.gate(() => withDeadline(work(), read_deadline_ms, 'Reading the log for a replay'));

const readPage = (core: Core, { refs, cursor }: Join, until: number) => {
  const span = { after: cursor, until, limit: page_size };
  return readRecord(core, () => core.options.source.read([...refs.values()], span));
};

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
  const found = await readRecord(core, () => options.source.nthNewest([...refs.values()], span));
  return found === null ? after : found - 1;
};

const isTooFar = async (core: Core, { refs, cursor: after }: Join): Promise<boolean> => {
  const { limits, recent, options } = core;
  const { source } = options;
  if (after >= recent.from()) return false;
  if (after < source.oldest() - 1 || core.head - after > limits.replay_span) return true;
  const span = { after, until: core.head, limit: limits.replay_events + 1 };
  const count = await readRecord(core, () => source.count([...refs.values()], span));
  return count > limits.replay_events;
};

/** Waits until the client has read what was sent; false when it is late, or gone. */
const untilRead = async (core: Core, session: Session, ends_ms: number): Promise<boolean> => {
  const hasRead = (): boolean => lookUnread(core, session) <= goalOf(core);
  if (!isUsable(session)) return false;
  const left_ms = Math.min(core.limits.unread_ms, ends_ms - performance.now());
  const in_time = left_ms > 0 && (hasRead() || (await untilCalled(session, hasRead, left_ms)));
  if (!in_time) endSession(core, session, close_codes.SLOW, 'reads too slowly');
  return in_time && isUsable(session);
};

const untilCalled = (session: Session, holds: () => boolean, within_ms: number) =>
  new Promise<boolean>((resolve) => {
    const timer = setTimeout(() => finish(false), within_ms);
    const look = (): void => {
      if (holds()) finish(true);
    };
    const finish = (in_time: boolean): void => {
      clearTimeout(timer);
      session.on_read.delete(look);
      resolve(in_time);
    };
    session.on_read.add(look);
  });

/** Waits until this process has come to the offset; false when it does not in time. */
const untilHead = async (core: Core, offset: number): Promise<boolean> => {
  if (core.head >= offset) return true;
  return new Promise((resolve) => {
    const timer = setTimeout(() => finish(false), core.limits.ahead_ms);
    const look = (): void => {
      if (core.head >= offset) finish(true);
    };
    const finish = (reached: boolean): void => {
      clearTimeout(timer);
      core.on_head.delete(look);
      resolve(reached);
    };
    core.on_head.add(look);
  });
};

/** Which topics a socket listens to, and from where on. */

/** Events that a subscribe frame may ask for by their number. */
export const most_last = 1_000;

const topics = Type.Array(Type.String({ minLength: 1, maxLength: 200 }), {
  minItems: 1,
  maxItems: 1_000,
});
const subscribe_frame = Type.Object({
  id: frame_id,
  topics,
  after: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  last: Type.Optional(Type.Integer({ minimum: 1, maximum: most_last })),
  filter: Type.Optional(Type.Unknown()),
});
const unsubscribe_frame = Type.Object({ id: frame_id, topics });

interface Named {
  readonly log: readonly TopicRef[];
  readonly states: readonly StateRef[];
}

/** What the names mean to this caller; one that means nothing refuses all of them. */
const resolveAll = (core: Core, session: Session, names: readonly string[]): Named | Fault => {
  const log = new Map<string, TopicRef>();
  const states = new Map<string, StateRef>();
  for (const name of names) {
    const state = core.states.resolve(name, session.caller);
    if (isFault(state)) return state;
    if (state !== null) {
      states.set(state.topic, state);
      continue;
    }
    const ref = core.options.resolveTopic(name, session.caller);
    if (isFault(ref)) return ref;
    log.set(ref.topic, ref);
  }
  return { log: [...log.values()], states: [...states.values()] };
};

/** A caller's sockets share its topics; sockets without a credential have their own. */
const hasRoom = (core: Core, session: Session, refs: readonly TopicRef[]): boolean => {
  const { topics, topics_anonymous } = core.limits;
  const key = callerKey(session.caller);
  const own = key === null ? undefined : core.by_key.get(key);
  let count = refs.filter((ref) => !holdsTopic(session, ref)).length;
  for (const one of own ?? [session]) count += countTopics(one);
  return count <= (key === null ? topics_anonymous : topics);
};

/** The topics with the filter that was asked for. */
const withFilter = (core: Core, { log, states }: Named, given: unknown): Named | Fault => {
  const filter = given === undefined ? null : core.options.readFilter(given);
  if (isFault(filter)) return filter;
  if (filter === null) return { log, states };
  const [state] = states;
  if (state !== undefined) {
    const message = `The topic "${state.label}" is a state and takes no filter.`;
    return refuse(ws_faults.INVALID_FILTER, { message });
  }
  const filtered = log.map((ref) => Object.assign({}, ref, { filter }));
  const is_full = filtered.some(
    (ref) =>
      findChannel(core, ref) === undefined &&
      (core.channels.get(ref.topic)?.size ?? 0) >= core.limits.filters,
  );
  return is_full ? refuse(ws_faults.TOO_MANY_FILTERS) : { log: filtered, states };
};

type SubscribeFrame = Static<typeof subscribe_frame>;

const subscribe = (core: Core, session: Session, frame: SubscribeFrame): string | Fault => {
  const { id, after, last } = frame;
  if (after !== undefined && last !== undefined) {
    const message = 'Send "after" or "last", not both.';
    return refuse(ws_faults.INVALID_FRAME, { message });
  }
  const resolved = resolveAll(core, session, frame.topics);
  if (isFault(resolved)) return resolved;
  const named = withFilter(core, resolved, frame.filter);
  if (isFault(named)) return named;
  if (session.has_default_topics) {
    session.has_default_topics = false;
    leaveAllChannels(core, session);
  }
  if (!hasRoom(core, session, [...named.log, ...named.states])) {
    return refuse(ws_faults.TOO_MANY_TOPICS);
  }
  for (const ref of named.states) core.states.join(session, ref);
  const labels = named.states.map(({ label }) => label);
  if ((after === undefined && last === undefined) || named.log.length === 0) {
    return goLiveNow(core, session, { refs: named.log, id, labels });
  }
  const from = last === undefined ? 'cursor' : { last };
  const join = makeJoin(core, session, named.log, after ?? core.head);
  startReplay(core, session, { join, id, from, labels });
  return '';
};

/** A topic that is live already starts again: what comes twice was asked for twice. */
const makeJoin = (
  core: Core,
  session: Session,
  refs: readonly TopicRef[],
  cursor: number,
): Join => {
  for (const { topic } of refs) {
    leaveJoins(session, topic);
    leaveChannel(core, session, topic);
  }
  const by_topic = new Map(refs.map((ref) => [ref.topic, ref]));
  return { refs: by_topic, prevs: new Map(), cursor, is_slow: false };
};

interface Wish {
  readonly refs: readonly TopicRef[];
  readonly id: FrameId;
  readonly labels: readonly string[];
}

/** At once where the event before is known for each topic, else as soon as it is. */
const goLiveNow = (core: Core, session: Session, { refs, id, labels }: Wish): string => {
  // A slow reader that asks again for what it has goes on where it is.
  const fresh = refs.filter((ref) => !isFollowed(session, ref));
  const prevs = prevsInMemory(core, fresh, core.head);
  const topics = [...refs.map(({ label }) => label), ...labels];
  if (prevs === null) {
    const join = makeJoin(core, session, fresh, core.head);
    const held = refs.filter((ref) => !fresh.includes(ref)).map(({ label }) => label);
    startReplay(core, session, { join, id, from: 'head', labels: [...held, ...labels] });
    return '';
  }
  for (const ref of fresh) {
    leaveJoins(session, ref.topic);
    joinChannel(core, session, ref, prevs.get(ref.topic) ?? 0);
  }
  return subscribedFrame(core, { id, topics, result: 'live', replayed: 0, refs });
};

/** Gives a socket that has asked for nothing the topics of its kind. */
export const followDefaults = (core: Core, session: Session): void => {
  session.has_default_topics = true;
  const join = makeJoin(core, session, core.options.defaultTopics(session.caller), core.head);
  startReplay(core, session, { join, id: undefined, from: 'head', by_default: true });
};

const unsubscribe = (
  core: Core,
  session: Session,
  { topics, id }: Static<typeof unsubscribe_frame>,
): string | Fault => {
  const named = resolveAll(core, session, topics);
  if (isFault(named)) return named;
  session.has_default_topics = false;
  const left = [...named.log, ...named.states].filter(({ topic }) => {
    const joining = leaveJoins(session, topic);
    const listening = leaveChannel(core, session, topic);
    return core.states.leave(session, topic) || joining || listening;
  });
  return makeFrame('unsubscribed', id, { topics: left.map(({ label }) => label) });
};

export const topic_ops = {
  subscribe: defineOp({ schema: subscribe_frame, take: subscribe }),
  unsubscribe: defineOp({ schema: unsubscribe_frame, take: unsubscribe }),
};
