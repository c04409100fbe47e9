import type { Filter, Publication, TopicRef } from '../../kit/ws/frames.js';

/** Who waits for an event, by topic: an event looks at those alone that may want it. */

export interface Wanted {
  /** Those of `resolveTopic`, each with the filter. */
  readonly refs: readonly TopicRef[];
  /** The same by name. */
  readonly topics: ReadonlySet<string>;
  /** Of `readFilter`; null lets everything pass. */
  readonly filter: Filter | null;
}

export const isWanted = ({ topics, filter }: Wanted, publication: Publication): boolean =>
  publication.topics.some(({ topic }) => topics.has(topic)) &&
  (filter === null || filter.matches(publication));

export interface Wait {
  readonly woken: 'event' | 'late' | 'ended';
  /** Up to here nothing was wanted. */
  readonly up_to: number;
}

export interface Waiting {
  readonly wait: Promise<Wait>;
  /** From outside: the client is gone, or its key no longer holds. */
  end(): void;
}

interface Waiter {
  readonly wanted: Wanted;
  finish(woken: Wait['woken'], up_to: number): void;
}

export interface Waiters {
  count(): number;
  begin(wanted: Wanted, within_ms: number): Waiting;
  /** Wakes those who want it; nothing before `up_to` was wanted by anybody who still waits. */
  wake(publication: Publication, up_to: number): void;
  /** Nobody waits any more, now or later. */
  end(): void;
}

/** `head` says how far the log has been followed. */
export const makeWaiters = (head: () => number): Waiters => {
  const all = new Set<Waiter>();
  const by_topic = new Map<string, Set<Waiter>>();
  let ended = false;

  const remove = (waiter: Waiter): void => {
    all.delete(waiter);
    for (const topic of waiter.wanted.topics) {
      const others = by_topic.get(topic);
      if (others?.delete(waiter) && others.size === 0) by_topic.delete(topic);
    }
  };
  const add = (waiter: Waiter): void => {
    all.add(waiter);
    for (const topic of waiter.wanted.topics) {
      by_topic.set(topic, (by_topic.get(topic) ?? new Set()).add(waiter));
    }
  };

  return {
    count: () => all.size,
    begin(wanted, within_ms) {
      let end = (): void => undefined;
      const wait = new Promise<Wait>((resolve) => {
        const waiter: Waiter = {
          wanted,
          finish(woken, up_to) {
            clearTimeout(timer);
            remove(waiter);
            end = () => undefined;
            resolve({ woken, up_to });
          },
        };
        const timer = setTimeout(() => waiter.finish('late', head()), within_ms);
        add(waiter);
        end = () => waiter.finish('ended', head());
        if (ended) end();
      });
      return { wait, end: () => end() };
    },
    wake(publication, up_to) {
      for (const { topic } of publication.topics) {
        for (const waiter of by_topic.get(topic) ?? []) {
          if (isWanted(waiter.wanted, publication)) waiter.finish('event', up_to);
        }
      }
    },
    end() {
      ended = true;
      for (const waiter of all) waiter.finish('ended', head());
    },
  };
};
