import { type Core, sendText } from './core.js';
import { makeFrame } from './frames.js';
import { type Session, sentUpTo } from './session.js';

/**
 * Ticks: proof, every `tick_ms` ± 10 %, that a silent socket is alive, and up to which offset it
 * has been sent everything, for all topics and for each: a client that has an older event as its
 * newest of a topic has lost one. The sockets are spread over a few shards with clocks of their
 * own, so that not all of them are written to at once.
 */
const shards = 8;

export interface Ticker {
  join(session: Session): void;
  leave(session: Session): void;
  stop(): void;
}

/** The offset of the newest event that the socket was sent, or had before, on each topic. */
const headsOf = ({ topics, joins }: Session): Readonly<Record<string, number>> => {
  const heads: Record<string, number> = {};
  for (const { label, prev } of topics.values()) heads[label] = prev;
  for (const { refs, prevs } of joins) {
    for (const { topic, label } of refs.values()) {
      const prev = prevs.get(topic);
      if (prev !== undefined) heads[label] = prev;
    }
  }
  return heads;
};

/** `core` is asked for only when a tick is due: it holds the ticker itself. */
export const makeTicker = (tick_ms: number, coreOf: () => Core): Ticker => {
  const members: Set<Session>[] = Array.from({ length: shards }, () => new Set());
  const timers: NodeJS.Timeout[] = [];
  let next = 0;

  const tick = (shard: number): void => {
    const core = coreOf();
    try {
      const time = new Date().toISOString();
      for (const session of members[shard] ?? []) {
        const members = { time, head: sentUpTo(session, core.head), heads: headsOf(session) };
        sendText(core, session, makeFrame('tick', undefined, members));
      }
    } catch (error) {
      core.onBug(error);
    }
    schedule(shard);
  };
  const schedule = (shard: number): void => {
    const ms = tick_ms * (0.9 + 0.2 * Math.random());
    timers[shard] = setTimeout(tick, ms, shard);
    timers[shard].unref();
  };
  for (let shard = 0; shard < shards; shard += 1) schedule(shard);

  return {
    join(session) {
      members[next]?.add(session);
      next = (next + 1) % shards;
    },
    leave(session) {
      for (const shard of members) shard.delete(session);
    },
    stop() {
      for (const timer of timers) clearTimeout(timer);
    },
  };
};
