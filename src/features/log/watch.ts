import type { Logger } from 'pino';
import { describeError } from '../../kit/log.js';
import type { Sql } from '../../kit/pg/client.js';
import { withDeadline } from '../../kit/service.js';
import { makeGate } from '../../kit/ws/gate.js';
import type { Recent } from '../../kit/ws/recent.js';
import { type LogEntry, readHead, readMatching, readOldest, type Told } from '../events/index.js';
import { isWanted, makeWaiters, type Waiting, type Wanted } from './waiters.js';

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
  const gate = makeGate(readers_most);
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
