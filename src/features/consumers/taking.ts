import type { TObject } from '@sinclair/typebox';
import type { Sql, Tx } from '../../db/client.js';
import { createGroupCommit } from '../../db/group-commit.js';
import type { Caller } from '../../http/caller.js';
import { common_faults, type Fault, isFault, refuse } from '../../kit/fault.js';
import { refuseUnknown } from '../events/filter.js';
import { readMatching } from '../events/index.js';
import { eventText } from '../events/log-entry.js';
import { findNarrowing, findPlacing } from '../events/narrowing.js';
import type { LogParts } from '../log/index.js';
import { type LogQuery, readLogQuery } from '../log/log-query.js';
import type { TaxonomyParts } from '../taxonomy/index.js';
import type { Pillar } from '../taxonomy/rules.js';
import { max_parked, max_unacknowledged } from './schema.js';
import * as store from './store.js';

/**
 * Delivers events to the members of a consumer.
 *
 *   log ──▶ waiting ──▶ leased to a member ──▶ acknowledged: its row is gone
 *              ▲               │
 *              └── given back, or the lease ended
 *
 * A take leases the oldest waiting events, and fetches more from the log if these are too few.
 * While events of a question are leased, its other events wait. So its events reach one member at
 * a time, in order. Only Postgres stores the position of a consumer, so any process can serve any
 * member.
 */

export type Owning = Extract<Caller, { kind: 'agent' | 'human' }>;

export interface TakeRequest {
  readonly owner: Owning;
  readonly name: string;
  readonly member: string;
  /** The connection that holds the events. When it ends, they become free again. */
  readonly connection: string;
  readonly limit: number;
  /** Maximum number of events that a connection holds at once. */
  readonly max_held: number;
}

type Kept = store.Delivery & { readonly id: string; readonly body: string };

export interface Taken {
  readonly events: readonly Kept[];
  readonly gap: store.Gap | null;
}

/** The result of a take, with the state of the consumer after it. */
interface Outcome extends Taken {
  readonly wanted: LogQuery;
  /** All events up to this offset were checked. The log ends at `head`. */
  readonly cursor: number;
  readonly head: number;
  /** True if no more events may be fetched until some are acknowledged. */
  readonly is_full: boolean;
  /** True if events are waiting or leased. Some may become free when a lease expires. */
  readonly has_waiting: boolean;
}

/** Limits of one take: offsets that it checks, and events that it fetches. */
const span_most = 100_000;
const fetched_most = 200;
/** If a take finds no events and moves the cursor by at most this, the cursor is not stored. */
const unstored_most = 1_000;
/**
 * How often to check again while events are leased. Another process may get their acknowledgement.
 */
const look_again_ms = 1_000;

export const absent = () =>
  refuse(common_faults.NOT_FOUND, { message: 'You have no consumer with this name.' });

/** Returns the part of the log that a consumer reads. */
export const logQueryOf = (
  { topics: labels, filter }: Pick<store.Consumer, 'topics' | 'filter'>,
  caller: Caller,
  pillars: readonly Pillar[],
): LogQuery | Fault =>
  readLogQuery({ labels, filter: filter ?? {} }, { caller, pillars, path: 'filter' });

const to_narrow = 'is not known here: set topics, filter and start in the PUT of the consumer';

/**
 * Refuses unknown members of a body or frame that look like a filter or a position in the log; null
 * if there are no such members.
 */
export const refuseMembers = (
  given: object,
  { properties }: TObject,
  where: 'body' | 'frame',
): Fault | null => {
  const known = Object.keys(properties);
  const names = [...findNarrowing(given, known), ...findPlacing(given, known)];
  const prefix = where === 'body' ? 'body.' : '';
  const fields = names.map((name) => ({ path: prefix + name, message: to_narrow }));
  return refuseUnknown(where, fields);
};

/** Returns a delivery as text: the event, and how many times it was delivered. */
export const deliveryText = ({ offset, id, body, deliveries }: Kept): string =>
  eventText({ offset, id, body: `{"deliveries":${deliveries},${body.slice(1)}` });

interface ConsumerOptions extends LogParts, TaxonomyParts {
  readonly sql: Sql;
}

export const createConsumers = ({ sql, log_watch: watch, taxonomy }: ConsumerOptions) => {
  /** Functions that end this process's waits for a consumer, by its owner and name. */
  const waits = new Map<string, Set<() => void>>();
  const keyOf = ({ owner, name }: store.ConsumerKey): string => `${owner.id} ${name}`;
  const wake = (key: store.ConsumerKey): void => {
    for (const end of waits.get(keyOf(key)) ?? []) end();
  };

  const acknowledging = createGroupCommit<store.Ack, { is_known: boolean; offsets: number[] }>({
    commit: (drafts) => sql.begin((tx) => store.acknowledgeAll(tx, drafts)),
  });

  const take = (request: TakeRequest): Promise<Outcome | Fault> =>
    sql.begin(async (tx) => {
      const consumer = await store.lockConsumer(tx, request);
      if (consumer === undefined) return absent();
      const wanted = logQueryOf(consumer, request.owner, taxonomy.latest());
      return isFault(wanted) ? wanted : takeLocked(tx, { ...request, consumer, wanted });
    });

  /**
   * Changes the events of a consumer under its lock, and wakes the requests of this process that
   * wait for it.
   */
  const change = async <T>(
    key: store.ConsumerKey,
    work: (tx: Tx, consumer: store.Consumer) => Promise<T>,
  ): Promise<T | Fault> => {
    const changed = await sql.begin(async (tx) => {
      const consumer = await store.lockConsumer(tx, key);
      return consumer === undefined ? absent() : work(tx, consumer);
    });
    wake(key);
    return changed;
  };

  /**
   * Waits up to `within_ms` for a change that may help this request. If this process notices one,
   * the wait ends early.
   */
  const awaitChange = async (
    request: TakeRequest,
    wanted: LogQuery,
    { within_ms, onWait }: { readonly within_ms: number; readonly onWait: OnWait },
  ): Promise<void> => {
    const { wait, end } = watch.awaitNext(wanted, within_ms);
    const key = keyOf(request);
    const ends = waits.get(key) ?? new Set();
    waits.set(key, ends.add(end));
    onWait(end);
    await wait;
    if (ends.delete(end) && ends.size === 0) waits.delete(key);
  };

  return {
    /** Takes the available events. If there are none yet, waits while `goesOn` returns true. */
    async take(request: TakeRequest, waiting: Waiting): Promise<Taken | Fault> {
      const ends_ms = performance.now() + waiting.within_ms;
      while (waiting.goesOn()) {
        const outcome = await take(request);
        if (isFault(outcome) || outcome.events.length > 0 || outcome.gap !== null) return outcome;
        const { wanted, cursor, head, is_full, has_waiting } = outcome;
        const left_ms = ends_ms - performance.now();
        if (left_ms <= 0 || watch.hasEnded()) return outcome;
        if (!is_full && cursor < head) continue;
        // Checks for events that have arrived since the take. No event can arrive unnoticed between
        // this check and the wait.
        if (!is_full && (await watch.read(wanted, cursor, 1)).entries.length > 0) continue;
        const within_ms = has_waiting ? Math.min(look_again_ms, left_ms) : left_ms;
        const awaited = is_full ? { ...wanted, topics: new Set<string>() } : wanted;
        await awaitChange(request, awaited, { within_ms, onWait: waiting.onWait });
      }
      return { events: [], gap: null };
    },
    /**
     * Returns the offsets that were acknowledged. Offsets that the member did not hold are left
     * out.
     */
    async acknowledge(ack: store.Ack): Promise<readonly number[] | Fault> {
      const { is_known, offsets } = await acknowledging.add(ack);
      if (!is_known) return absent();
      wake(ack);
      return offsets;
    },
    /**
     * Returns the offsets that were given back. Without a delay, the consumer's settings decide
     * when they are delivered again.
     */
    release: ({ member, offsets, ...key }: store.Ack, how: store.Release) =>
      change(key, (tx, consumer) => store.releaseEvents(tx, consumer, { member, offsets, ...how })),
    /** Frees the events of a connection. Does nothing if the consumer is gone. */
    end: (key: store.ConsumerKey, connection: string) =>
      change(key, (tx, consumer) => store.releaseConnection(tx, consumer, connection)),
    /** Returns the offsets whose leases were extended. */
    extend: ({ member, offsets, ...key }: store.Ack, seconds: number | null) =>
      change(key, (tx, { id, ack_wait_seconds }) =>
        store.extendLeases(tx, id, { member, offsets, seconds: seconds ?? ack_wait_seconds }),
      ),
    requeue: (key: store.ConsumerKey, offsets: readonly number[]) =>
      change(key, (tx, { id }) => store.requeueParked(tx, id, offsets)),
    drop: (key: store.ConsumerKey, offsets: readonly number[]) =>
      change(key, (tx, { id }) => store.dropParked(tx, id, offsets)),
    wake,
    drain: acknowledging.drain,
  };
};

export type Consumers = ReturnType<typeof createConsumers>;

export interface ConsumerParts {
  readonly consumers: Consumers;
}

type OnWait = (end: () => void) => void;

export interface Waiting {
  readonly within_ms: number;
  /** False if the requester is no longer waiting. */
  readonly goesOn: () => boolean;
  /** Called with the function that ends the current wait. */
  readonly onWait: OnWait;
}

interface Locked extends TakeRequest {
  readonly consumer: NonNullable<Awaited<ReturnType<typeof store.lockConsumer>>>;
  readonly wanted: LogQuery;
}

const takeLocked = async (tx: Tx, request: Locked): Promise<Outcome> => {
  const { consumer, wanted, member, connection, limit, max_held } = request;
  const { id, head, oldest } = consumer;
  let cursor = Math.max(consumer.cursor, oldest - 1);
  const counted = await store.countHeld(tx, id, connection);
  const { parked, held } = counted;
  let offered = counted.unacknowledged - parked;
  const room = Math.min(limit, max_held - held);
  const lease = (most: number) =>
    store.leaseEvents(tx, consumer, { member, connection, limit: most });
  let leased = room > 0 ? await lease(room) : [];
  let is_moved = false;
  const is_full = room <= 0 || offered >= max_unacknowledged || parked >= max_parked;
  if (leased.length < room && !is_full && cursor < head) {
    const size = Math.min(fetched_most, max_unacknowledged - offered);
    const until = Math.min(head, cursor + span_most);
    const fresh = await readMatching(tx, wanted.refs, { after: cursor, until, limit: size });
    cursor = fresh.length === size ? (fresh.at(-1)?.offset ?? until) : until;
    if (fresh.length > 0) {
      is_moved = true;
      await store.addEvents(tx, id, fresh);
      offered += fresh.length;
      leased = [...leased, ...(await lease(room - leased.length))];
    }
  }
  const events = leased.filter((one): one is Kept => one.body !== null);
  const gone = leased.filter(({ body }) => body === null).map(({ offset }) => offset);
  const gap = gapOf(consumer, gone);
  if (gap !== null || is_moved || cursor - consumer.cursor > unstored_most) {
    await store.storeProgress(tx, id, cursor, gap);
  }
  if (gone.length > 0) await store.dropEvents(tx, id, gone);
  const has_waiting = offered > gone.length;
  return { events, gap, wanted, cursor, head, is_full, has_waiting };
};

/**
 * Returns the range of events that were deleted before their turn; null if there is no such range.
 */
const gapOf = (
  { cursor, oldest }: Locked['consumer'],
  gone: readonly number[],
): store.Gap | null => {
  const is_behind = cursor < oldest - 1;
  if (!is_behind && gone.length === 0) return null;
  const first = gone[0] ?? cursor + 1;
  return { after: first - 1, until: is_behind ? oldest - 1 : (gone.at(-1) ?? first) };
};
