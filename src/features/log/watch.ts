import pLimit from 'p-limit';
import type { Logger } from 'pino';
import { describeError } from '../../kit/log.js';
import type { Sql } from '../../kit/pg/client.js';
import { withDeadline } from '../../kit/service.js';
import type { Filter, Publication, TopicRef } from '../../kit/ws/frames.js';
import type { Recent } from '../../kit/ws/recent.js';
import { type LogEntry, readHead, readMatching, readOldest, type Told } from '../events/index.js';

/**
 * The log as the HTTP doors of one process see it. It hangs on the process's follower: whoever is
 * at the head is woken from memory, and nobody who waits costs a query.
 *
 *   within the newest events    read from memory
 *   further back                pages of the record, a bounded part of the log at a time
 *   at the head                 wait: woken by the first event that is wanted
 *
 * Publishing, reading from memory and beginning to wait are synchronous, so nothing can happen
 * between the last event that was read and the moment from which the next one wakes.
 */

export interface LogPage {
  readonly entries: readonly LogEntry[];
  /** Everything up to here was looked at. */
  readonly next: number;
}

export interface LogWatch {
  /** Where the log stands before the first batch. */
  begin(head: number): void;
  onEvents(batch: readonly Told[]): void;
  head(): number;
  oldest(): number;
  /** Wanted events after an offset, at most `limit`. Throws while the record is needed and away. */
  read(wanted: Wanted, after: number, limit: number): Promise<LogPage>;
  /** To be called in the turn in which everything up to the head was read. */
  awaitNext(wanted: Wanted, within_ms: number): Waiting;
  /** Waits for an offset that is in the record; `late` when this process does not get there. */
  hasReached(offset: number): Promise<'yes' | 'late' | 'never'>;
  refreshOldest(): Promise<void>;
  /** Everybody who waits is told that it is over; so is whoever begins to. */
  end(): void;
  readonly waiting: () => number;
}

export interface WatchOptions {
  readonly sql: Sql;
  readonly log: Logger;
  /** Where the newest are kept; it may be shared. */
  readonly recent: Recent<Told>;
}

/** Offsets that one query looks at: sparse topics are searched in parts. */
const span_most = 20_000;
const readers_most = 4;
const read_deadline_ms = 15_000;
/** How long to wait for an offset that is in the record and not yet in this process. */
const ahead_ms = 5_000;

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

/** One that waits, by topic: an event looks at those alone that may want it. */
interface Waiter {
  readonly wanted: Wanted;
  finish(woken: Wait['woken'], up_to: number): void;
}

interface Waiters {
  count(): number;
  begin(wanted: Wanted, within_ms: number): Waiting;
  /** Wakes those who want it; nothing before `up_to` was wanted by anybody who still waits. */
  wake(publication: Publication, up_to: number): void;
  /** Nobody waits any more, now or later. */
  end(): void;
}

/** `head` says how far the log has been followed. */
const makeWaiters = (head: () => number): Waiters => {
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

/** Those who wait until this process has come to an offset. */
const makeArrivals = (head: () => number) => {
  const looks = new Set<() => void>();
  let ended = false;
  const lookAll = (): void => {
    for (const look of looks) look();
  };
  return {
    lookAll,
    /** False when it does not get there in time. */
    until: (offset: number): Promise<boolean> =>
      new Promise((resolve) => {
        const finish = (): void => {
          clearTimeout(timer);
          looks.delete(look);
          resolve(head() >= offset);
        };
        const look = (): void => {
          if (head() >= offset || ended) finish();
        };
        const timer = setTimeout(finish, ahead_ms);
        looks.add(look);
        look();
      }),
    end(): void {
      ended = true;
      lookAll();
    },
  };
};

/** Wanted events of memory after an offset that memory reaches back to. */
const pick = (
  kept: readonly Told[],
  wanted: Wanted,
  { limit, head }: { readonly limit: number; readonly head: number },
): LogPage => {
  const entries: LogEntry[] = [];
  for (const one of kept) {
    if (!isWanted(wanted, one)) continue;
    entries.push(one.about);
    if (entries.length === limit) return { entries, next: one.offset };
  }
  return { entries, next: head };
};

export const createLogWatch = (options: WatchOptions): LogWatch => {
  const { sql, log, recent } = options;
  const waiters = makeWaiters(() => head);
  const gate = pLimit(readers_most);
  const arrivals = makeArrivals(() => head);
  let head = -1;
  let oldest = 1;

  const ask = <T>(work: () => Promise<T>): Promise<T> =>
    gate(() => withDeadline(work(), read_deadline_ms, 'Reading the log'));

  return {
    begin(at) {
      head = at;
      recent.reset(at);
    },
    onEvents(batch) {
      const fresh = head < 0 ? [] : batch.filter(({ offset }) => offset > head);
      const first = fresh[0];
      if (first === undefined) return;
      const before = first.offset - 1;
      // A hole is not in memory: who is behind it reads the record.
      if (before > head) recent.reset(before);
      for (const told of fresh) recent.push(told);
      head = first.offset + fresh.length - 1;
      if (waiters.count() > 0) for (const told of fresh) waiters.wake(told, before);
      arrivals.lookAll();
    },
    head: () => head,
    oldest: () => oldest,
    waiting: waiters.count,
    async read(wanted, after, limit) {
      if (after >= recent.from()) {
        return pick(recent.after(after), wanted, { limit, head });
      }
      const until = Math.min(head, after + span_most);
      const entries = await ask(() => readMatching(sql, wanted.refs, { after, until, limit }));
      const last = entries.length === limit ? entries[limit - 1] : undefined;
      return { entries, next: last?.offset ?? until };
    },
    awaitNext: waiters.begin,
    async hasReached(offset) {
      if (offset <= head) return 'yes';
      if (offset > (await ask(() => readHead(sql)))) return 'never';
      return (await arrivals.until(offset)) ? 'yes' : 'late';
    },
    async refreshOldest() {
      try {
        oldest = await withDeadline(readOldest(sql), read_deadline_ms, 'Reading the oldest offset');
      } catch (error) {
        log.warn(describeError(error), 'log: the oldest offset is not known anew');
      }
    },
    end() {
      waiters.end();
      arrivals.end();
    },
  };
};
