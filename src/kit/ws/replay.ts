import { common_faults, refuse } from '../fault.js';
import { describeError } from '../log.js';
import { withDeadline } from '../service.js';
import { joinChannel, passes } from './channels.js';
import { close_codes } from './close-codes.js';
import {
  type Core,
  endSession,
  type GapReason,
  gapFrame,
  isOverloaded,
  lookUnread,
  sendText,
  sendTexts,
} from './core.js';
import {
  errorFrame,
  eventFrame,
  type Filter,
  type FrameId,
  frameTail,
  makeFrame,
  type Publication,
  type TopicRef,
} from './frames.js';
import { prevsAt } from './prevs.js';
import { isUsable, type Join, type Session } from './session.js';

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

export interface Subscribed {
  readonly id: FrameId;
  readonly topics: readonly string[];
  readonly result: 'live' | 'recovered' | 'gap';
  readonly replayed: number;
  readonly refs: readonly { readonly filter?: Filter }[];
}

export const subscribedFrame = (core: Core, subscribed: Subscribed): string => {
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
