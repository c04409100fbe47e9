import pLimit from 'p-limit';
import type { Sql } from '../../db/client.js';
import { readAddressText } from '../../http/call.js';
import { callerKey } from '../../http/caller.js';
import type { Context } from '../../http/route.js';
import { common_faults, type Fault, refuse } from '../../kit/fault.js';
import { sha256 } from '../../kit/ids.js';
import { withDeadline } from '../../kit/service.js';
import { makeCounts } from '../../socket/connections.js';
import { default_limits, type Publication, ws_faults } from '../../socket/frames.js';
import type { Recent } from '../../socket/recent.js';
import { type Follower, type Revoked, readHead, readMatching } from '../events/index.js';
import type { LogEntry } from '../events/log-entry.js';
import type { PublishedEvent } from '../events/topics.js';
import type { LogQuery } from './log-query.js';

/**
 * The log as the HTTP routes of one process see it. The process's follower feeds it. A reader at
 * the head is woken from memory, so waiting costs no query.
 *
 *   within the newest events    read from memory
 *   further back                pages of the record, a bounded part of the log at a time
 *   at the head                 wait until the first wanted event
 *
 * Publishing, reading from memory and starting to wait are synchronous. So no event can be missed
 * between the last event that was read and the start of the wait.
 */

export interface LogPage {
  readonly entries: readonly LogEntry[];
  /** All events up to this offset were checked. */
  readonly next: number;
}

interface Wait {
  readonly woken: 'event' | 'late' | 'ended';
  /** No event up to this offset was wanted. */
  readonly up_to: number;
}

type Finish = (woken: Wait['woken'], up_to: number) => void;

/** Maximum number of offsets that one query scans. Sparse topics are searched in parts. */
const span_most = 100_000;
const readers_most = 4;
const read_deadline_ms = 15_000;

const isWanted = ({ topics, filter }: LogQuery, publication: Publication): boolean =>
  publication.topics.some(({ topic }) => topics.has(topic)) &&
  (filter === null || filter.matches(publication));

/** Tracks waiting calls by topic, so that an event checks only the calls that may want it. */
const makeWaiters = (head: () => number) => {
  const all = new Map<Finish, LogQuery>();
  const by_topic = new Map<string, Set<Finish>>();
  let has_ended = false;
  const remove = (finish: Finish, { topics }: LogQuery): void => {
    all.delete(finish);
    for (const topic of topics) {
      const others = by_topic.get(topic);
      if (others?.delete(finish) && others.size === 0) by_topic.delete(topic);
    }
  };
  return {
    count: () => all.size,
    hasEnded: () => has_ended,
    /** Starts a wait. `end` ends it early, if the client is gone or its key is no longer valid. */
    begin(wanted: LogQuery, within_ms: number) {
      let resolve = (_: Wait): void => undefined;
      const wait = new Promise<Wait>((done) => {
        resolve = done;
      });
      const finish: Finish = (woken, up_to) => {
        clearTimeout(timer);
        remove(finish, wanted);
        resolve({ woken, up_to });
      };
      const timer = setTimeout(() => finish('late', head()), within_ms);
      all.set(finish, wanted);
      for (const topic of wanted.topics) {
        by_topic.set(topic, (by_topic.get(topic) ?? new Set()).add(finish));
      }
      const end = (): void => finish('ended', head());
      if (has_ended) end();
      return { wait, end };
    },
    /** Wakes the calls that want this event. No waiting call wanted any event up to `up_to`. */
    wake(publication: Publication, up_to: number): void {
      for (const { topic } of publication.topics) {
        for (const finish of by_topic.get(topic) ?? []) {
          if (isWanted(all.get(finish) as LogQuery, publication)) finish('event', up_to);
        }
      }
    },
    end(): void {
      has_ended = true;
      for (const finish of all.keys()) finish('ended', head());
    },
  };
};

/** A connection that stays open. `revoked` says why its key is no longer valid. */
export interface LogConnection {
  revoked: Fault | null;
  /** True if a newer connection took its place. */
  is_replaced: boolean;
  /** Ends the current wait, because the client is gone or the connection is revoked or replaced. */
  endWait: () => void;
  close(): void;
}

interface Opened {
  /** The connection is counted under these names. */
  readonly names: readonly string[];
  /** The SHA-256 of the key in hex. Null for people, because no event is private to them. */
  readonly credential: string | null;
  readonly opened_ms: number;
}

/** Maximum number of open connections in this process. */
type ConnectionLimits = Pick<typeof default_limits, 'connections_key' | 'connections_ip'>;

/** Minimum time that a connection keeps its place. */
const kept_s = 5;

/**
 * Limits the connections per caller and address, and ends connections whose key is revoked. An HTTP
 * client cannot be pinged, so a client that vanished looks like one that only listens. Therefore,
 * if all places are taken, a new connection takes the oldest one's place.
 */
const createConnections = ({ connections_key, connections_ip }: ConnectionLimits) => {
  /** Oldest first. */
  const open = new Map<LogConnection, Opened>();
  const counts = makeCounts();
  /** Returns the oldest connection under a name, or null if it is too young to be replaced. */
  const findOldest = (name: string): LogConnection | null => {
    for (const [connection, { names, opened_ms }] of open) {
      if (!names.includes(name)) continue;
      return performance.now() - opened_ms < kept_s * 1_000 ? null : connection;
    }
    return null;
  };
  const replace = (connection: LogConnection | null): void => {
    if (connection === null) return;
    connection.close();
    connection.is_replaced = true;
    connection.endWait();
  };
  return {
    open(request: Pick<Context, 'caller' | 'ip' | 'header'>): LogConnection | Fault {
      const { caller, ip } = request;
      const address = `ip ${readAddressText(ip).limit_key}`;
      const key = callerKey(caller);
      // A caller's own connection is replaced before another caller's at the same address.
      const names = key === null ? [address] : [key, address];
      const isFull = (name: string): boolean =>
        counts.of(name) >= (name === key ? connections_key : connections_ip);
      if (names.some((name) => isFull(name) && findOldest(name) === null)) {
        return refuse(ws_faults.TOO_MANY_CONNECTIONS, {
          message: `Too many connections wait for events. Close one, or try again in ${kept_s} s.`,
          headers: { 'Retry-After': String(kept_s) },
        });
      }
      for (const name of names) if (isFull(name)) replace(findOldest(name));
      const connection: LogConnection = {
        revoked: null,
        is_replaced: false,
        endWait: () => undefined,
        close() {
          if (open.delete(connection)) for (const name of names) counts.add(name, -1);
        },
      };
      const is_agent = caller.kind === 'agent';
      const credential = is_agent ? sha256(request.header('x-api-key'), 'hex') : null;
      open.set(connection, { names, credential, opened_ms: performance.now() });
      for (const name of names) counts.add(name, 1);
      return connection;
    },
    onRevoked(revoked: Revoked): void {
      for (const [connection, { credential }] of open) {
        const reason = credential === null ? undefined : revoked.get(credential);
        if (reason === undefined) continue;
        const { INVALID_API_KEY, ACCOUNT_SUSPENDED } = common_faults;
        connection.revoked = refuse(reason === 'revoked' ? INVALID_API_KEY : ACCOUNT_SUSPENDED);
        connection.endWait();
      }
    },
    count: () => open.size,
  };
};

/** `recent` holds the newest events. It may be shared. */
export const createLogWatch = (
  sql: Sql,
  recent: Recent<PublishedEvent>,
  limits: ConnectionLimits = default_limits,
) => {
  const waiters = makeWaiters(() => head);
  const gate = pLimit(readers_most);
  let head = -1;
  let follower: Pick<Follower, 'head' | 'oldest'> = { head: 0, oldest: 1 };

  const query = <T>(work: () => Promise<T>): Promise<T> =>
    gate(() => withDeadline(work(), read_deadline_ms, 'Reading the log'));

  return {
    /** Call this before the first batch. */
    begin(started: Pick<Follower, 'head' | 'oldest'>): void {
      follower = started;
      head = follower.head;
      recent.reset(head);
    },
    onEvents(batch: readonly PublishedEvent[]): void {
      const fresh = head < 0 ? [] : batch.filter(({ offset }) => offset > head);
      const first = fresh[0];
      if (first === undefined) return;
      const before = first.offset - 1;
      // Events in a hole are not in memory, so a reader before the hole reads the record.
      if (before > head) recent.reset(before);
      for (const event of fresh) recent.push(event);
      head = first.offset + fresh.length - 1;
      if (waiters.count() > 0) for (const event of fresh) waiters.wake(event, before);
    },
    head: () => head,
    oldest: () => follower.oldest,
    /** Reads up to `limit` wanted events after an offset. Throws if Postgres is needed but down. */
    async read(wanted: LogQuery, after: number, limit: number): Promise<LogPage> {
      let entries: readonly LogEntry[];
      let until = Math.max(head, after);
      if (after < recent.from()) {
        until = Math.min(head, after + span_most);
        entries = await query(() => readMatching(sql, wanted.refs, { after, until, limit }));
      } else {
        const found = recent.after(after).filter((one) => isWanted(wanted, one));
        entries = found.slice(0, limit).map(({ about }) => about);
      }
      const last = entries.length === limit ? entries[limit - 1] : undefined;
      return { entries, next: last?.offset ?? until };
    },
    /** Call this synchronously after everything up to the head was read. */
    awaitNext: waiters.begin,
    /** True if the record has reached this offset, even if this process has not. */
    hasReached: async (offset: number): Promise<boolean> =>
      offset <= head || offset <= (await query(() => readHead(sql))),
    /** Ends every stream and every wait. Later ones end immediately. */
    end: waiters.end,
    hasEnded: waiters.hasEnded,
    waiting: waiters.count,
    connections: createConnections(limits),
  };
};

export type LogWatch = ReturnType<typeof createLogWatch>;

export interface LogParts {
  readonly log_watch: LogWatch;
}
