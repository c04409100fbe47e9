import type { Core } from './core.js';
import { keyOf, type Publication, type TopicRef } from './frames.js';
import type { Session } from './session.js';

/**
 * Who listens to what. A channel is a topic with a filter, or without one: sockets with equal
 * filters share it, and a frame is made once for all of them. It knows the offset of the newest
 * event on it, which the next one carries as `prev`; where that is not known yet, see `prevs.ts`.
 */
export interface Channel extends TopicRef {
  readonly sessions: Set<Session>;
  /** Offset of the newest event on this topic that passes the filter; 0 when there is none. */
  prev: number;
}

/** Topic, then the key of the filter; a topic without sockets is not in it. */
export type Channels = Map<string, Map<string, Channel>>;

export const passes = ({ filter }: TopicRef, publication: Publication): boolean =>
  filter === undefined || filter.matches(publication);

export const findChannel = (core: Core, ref: TopicRef): Channel | undefined =>
  core.channels.get(ref.topic)?.get(keyOf(ref));

/** Topics that are live from now on; `prev` is the offset of the event before, as of the head. */
export const joinChannel = (core: Core, session: Session, ref: TopicRef, prev: number): void => {
  if (session.ws === null) return;
  leaveChannel(core, session, ref.topic);
  const { topic, label, filter } = ref;
  const key = keyOf(ref);
  const of_topic = core.channels.get(topic) ?? new Map<string, Channel>();
  core.channels.set(topic, of_topic);
  let channel = of_topic.get(key);
  if (channel === undefined) {
    channel = { topic, label, ...(filter && { filter }), sessions: new Set(), prev };
    of_topic.set(key, channel);
  }
  channel.sessions.add(session);
  session.topics.set(topic, channel);
};

export const leaveChannel = (core: Core, session: Session, topic: string): boolean => {
  const channel = session.topics.get(topic);
  if (channel === undefined) return false;
  session.topics.delete(topic);
  channel.sessions.delete(session);
  if (channel.sessions.size > 0) return true;
  const of_topic = core.channels.get(topic);
  of_topic?.delete(keyOf(channel));
  if (of_topic?.size === 0) core.channels.delete(topic);
  return true;
};

export const leaveAllChannels = (core: Core, session: Session): void => {
  for (const topic of [...session.topics.keys()]) leaveChannel(core, session, topic);
  for (const join of session.joins) join.refs.clear();
  core.states.leaveAll(session);
};
