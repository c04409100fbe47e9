import { type Static, Type } from '@sinclair/typebox';
import { type Fault, isFault, refuse } from '../fault.js';
import { callerKey } from '../http/route.js';
import { findChannel, joinChannel, leaveAllChannels, leaveChannel } from './channels.js';
import type { Core } from './core.js';
import { type FrameId, frame_id, makeFrame, type TopicRef, ws_faults } from './frames.js';
import { defineOp } from './ops.js';
import { prevsInMemory } from './prevs.js';
import { startReplay, subscribedFrame } from './replay.js';
import {
  countTopics,
  holdsTopic,
  isFollowed,
  type Join,
  leaveJoins,
  type Session,
} from './session.js';
import type { StateRef } from './states.js';

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
