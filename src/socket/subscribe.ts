import { type Static, Type } from '@sinclair/typebox';
import { callerKey } from '../http/route.js';
import { type Fault, isFault, refuse } from '../kit/fault.js';
import { defineOp, frame_id, keyOf, makeFrame, type TopicRef, ws_faults } from './frames.js';
import { prevsInMemory, type Subscribed, startReplay, subscribedFrame } from './replay.js';
import type { Join, Session } from './session.js';
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

/** A caller's sockets share its topics; sockets without a credential have their own. */
const hasRoom = (session: Session, refs: readonly TopicRef[]): boolean => {
  const { topics, topics_anonymous } = session.core.limits;
  let count = refs.filter(({ topic }) => !session.holds(topic)).length;
  for (const one of session.siblings) count += one.countTopics();
  return count <= (callerKey(session.caller) === null ? topics_anonymous : topics);
};

/** The topics with the filter that was asked for. */
const withFilter = (
  { options, channels, limits }: Session['core'],
  { log, states }: Named,
  given: unknown,
): Named | Fault => {
  const filter = given === undefined ? null : options.readFilter(given);
  if (isFault(filter)) return filter;
  if (filter === null) return { log, states };
  const [state] = states;
  if (state !== undefined) {
    const message = `The topic "${state.label}" is a state and takes no filter.`;
    return refuse(ws_faults.INVALID_FILTER, { message });
  }
  const filtered = log.map((ref) => ({ ...ref, filter }));
  const is_full = filtered.some((ref) => {
    const of_topic = channels.get(ref.topic);
    return !of_topic?.has(keyOf(ref)) && (of_topic?.size ?? 0) >= limits.filters;
  });
  return is_full ? refuse(ws_faults.TOO_MANY_FILTERS) : { log: filtered, states };
};

const subscribe = (session: Session, frame: Static<typeof subscribe_frame>): string | Fault => {
  const { core } = session;
  const { id, after, last } = frame;
  if (after !== undefined && last !== undefined) {
    const message = 'Send "after" or "last", not both.';
    return refuse(ws_faults.INVALID_FRAME, { message });
  }
  const resolved = resolveAll(session, frame.topics);
  if (isFault(resolved)) return resolved;
  const named = withFilter(core, resolved, frame.filter);
  if (isFault(named)) return named;
  if (session.has_default_topics) {
    session.has_default_topics = false;
    session.leaveAll();
  }
  if (!hasRoom(session, [...named.log, ...named.states])) {
    return refuse(ws_faults.TOO_MANY_TOPICS);
  }
  for (const ref of named.states) core.states.join(session, ref);
  const labels = named.states.map(({ label }) => label);
  if ((after === undefined && last === undefined) || named.log.length === 0) {
    return goLiveNow(session, { id, refs: named.log, labels });
  }
  const from = last === undefined ? 'cursor' : { last };
  const join = makeJoin(session, named.log, after ?? core.head);
  startReplay(session, { join, id, from, labels });
  return '';
};

/** A topic that is live already starts again: what comes twice was asked for twice. */
const makeJoin = (session: Session, refs: readonly TopicRef[], cursor: number): Join => {
  for (const { topic } of refs) {
    session.leaveJoins(topic);
    session.leave(topic);
  }
  const by_topic = new Map(refs.map((ref) => [ref.topic, ref]));
  return { refs: by_topic, prevs: new Map(), cursor, is_slow: false };
};

/** At once where the event before is known for each topic, else as soon as it is. */
const goLiveNow = (
  session: Session,
  { id, refs, labels }: Pick<Subscribed, 'id' | 'refs' | 'labels'>,
): string => {
  const { core } = session;
  // A slow reader that asks again for what it has goes on where it is.
  const fresh = refs.filter((ref) => !session.follows(ref));
  const prevs = prevsInMemory(core, fresh, core.head);
  if (prevs === null) {
    const join = makeJoin(session, fresh, core.head);
    const held = refs.filter((ref) => !fresh.includes(ref)).map(({ label }) => label);
    startReplay(session, { join, id, from: 'head', labels: [...held, ...labels] });
    return '';
  }
  for (const ref of fresh) {
    session.leaveJoins(ref.topic);
    session.join(ref, prevs.get(ref.topic) ?? 0);
  }
  return subscribedFrame(core, { id, refs, labels, result: 'live', replayed: 0 });
};

/** Gives a socket that has asked for nothing the topics of its kind. */
export const followDefaults = (session: Session): void => {
  const { options, head } = session.core;
  session.has_default_topics = true;
  const join = makeJoin(session, options.defaultTopics(session.caller), head);
  startReplay(session, { join, id: undefined, from: 'head', by_default: true });
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
