import type { Logger } from 'pino';
import { describeError } from '../../kit/log.js';
import { makeLoop } from '../../kit/loop.js';
import type { Sql } from '../../kit/pg/client.js';
import { type StreamEntry, StreamReader } from '../../kit/redis/stream.js';
import { type Service, withDeadline } from '../../kit/service.js';
import { type LogEntry, streamKey, unpackEntry } from './log-entry.js';
import { readEvents, readHead } from './store.js';

/**
 * Follows the log: every event from the head at the start on, in order, once each. Redis is the
 * fast way and Postgres the record, and neither is believed about the other:
 *
 *   entries from Redis      delivered as far as they continue the cursor; a hole is filled from
 *                           Postgres first, whatever made it
 *   nothing within a block  Postgres is asked too, so a stream that stands still (relay killed
 *                           before its append, Redis emptied) delays events by a second at most
 *   ahead of the record     the record was replaced, or lost its last transactions: the stream is
 *                           not read until the relay made it anew, and the cursor goes back
 *   Redis away              Postgres is asked, four times a second
 *   Postgres away           nothing new can be in the log; wait
 */

export interface FollowerOptions {
  readonly sql: Sql;
  readonly redis_url: string;
  readonly prefix: string;
  readonly log: Logger;
  /** Gets each batch in the turn in which the head moves; must not throw. */
  readonly onEvents: (batch: readonly LogEntry[]) => void;
  /** How long a read of the stream waits; for tests. */
  readonly block_ms?: number;
  readonly grace_ms?: number;
}

export interface FollowerStats {
  readonly head: number;
  /** Entries delivered, by where they came from. */
  readonly from_stream: number;
  readonly from_record: number;
  /** Offsets that are in neither: the record was cut off behind a follower that slept. */
  readonly lost: number;
  /** From the event's own time to its delivery, over the last 1,024 batches, in ms. */
  readonly lag_p50_ms: number;
  readonly lag_p99_ms: number;
}

export interface Follower extends Service {
  /** The newest offset delivered. */
  head(): number;
  stats(): FollowerStats;
}

const page_size = 512;
const away_ms = 250;
const read_deadline_ms = 15_000;
const lags_kept = 1_024;

/** An entry of the stream with its fields h and b; null when it is none of ours. */
const readEntry = ({ offset, fields }: StreamEntry): LogEntry | null =>
  unpackEntry(offset, fields[1] ?? '', fields[3] ?? '');

/** Bodies end with their time: `…,"timestamp":"2026-01-31T12:00:00.000Z"}`. */
const timeOf = ({ body }: LogEntry): number => Date.parse(body.slice(-26, -2));

const makeLags = () => {
  const kept: number[] = [];
  let count = 0;
  return {
    add(ms: number): void {
      if (Number.isNaN(ms)) return;
      kept[count % lags_kept] = Math.max(0, ms);
      count += 1;
    },
    quantile(q: number): number {
      const sorted = [...kept].sort((a, b) => a - b);
      return sorted[Math.ceil(q * sorted.length) - 1] ?? 0;
    },
  };
};

interface Following {
  readonly options: FollowerOptions;
  readonly reader: StreamReader;
  readonly lags: ReturnType<typeof makeLags>;
  readonly counts: { stream: number; record: number; lost: number };
  /** Everything up to here has been delivered. */
  cursor: number;
  stopped: boolean;
  suspected_hole: number;
  /** Whether the stream is within the record; undefined until they are compared. */
  is_within: boolean | undefined;
}

const deliver = (f: Following, batch: readonly LogEntry[], source: 'stream' | 'record'): void => {
  const first = batch[0];
  const last = batch[batch.length - 1];
  if (first === undefined || last === undefined || f.stopped) return;
  f.cursor = last.offset;
  f.counts[source] += batch.length;
  f.lags.add(Date.now() - timeOf(first));
  try {
    f.options.onEvents(batch);
  } catch (error) {
    f.options.log.error(describeError(error), 'follower: the receiver of a batch threw');
  }
};

/** Delivers what continues the cursor; true when nothing is left over. */
const accept = (f: Following, entries: readonly StreamEntry[]): boolean => {
  const continuing: LogEntry[] = [];
  let is_whole = true;
  for (const entry of entries) {
    if (entry.offset <= f.cursor) continue;
    // One that cannot be read is a hole like any other.
    const read = entry.offset === f.cursor + continuing.length + 1 ? readEntry(entry) : null;
    if (read === null) {
      is_whole = false;
      break;
    }
    continuing.push(read);
  }
  deliver(f, continuing, 'stream');
  return is_whole;
};

/**
 * Rows appear in the order of their offsets, so one that is missing before others is gone for good.
 * It is looked for twice all the same, because going on without it is final.
 */
const passHole = (f: Following, next: number): boolean => {
  if (f.suspected_hole !== f.cursor) {
    f.suspected_hole = f.cursor;
    return false;
  }
  f.options.log.error({ after: f.cursor, next }, 'follower: the record has a hole');
  f.counts.lost += next - f.cursor - 1;
  f.cursor = next - 1;
  return true;
};

const readRecord = async (f: Following): Promise<void> => {
  for (;;) {
    const asked = readEvents(f.options.sql, f.cursor, page_size);
    const rows = await withDeadline(asked, read_deadline_ms, 'Reading the log');
    const next = rows[0]?.offset;
    if (next === undefined || f.stopped) return;
    if (next !== f.cursor + 1 && !passHole(f, next)) return;
    const hole = rows.findIndex(({ offset }, index) => offset !== next + index);
    deliver(f, hole < 0 ? [...rows] : rows.slice(0, hole), 'record');
    if (rows.length < page_size && hole < 0) return;
  }
};

/** Compares the cursor, and the stream's newest entry that was read, with the record. */
const compare = async (f: Following, there: number): Promise<void> => {
  const head = await withDeadline(readHead(f.options.sql), read_deadline_ms, 'Reading the head');
  const is_ahead = there > head;
  if (is_ahead && f.is_within !== false) {
    f.options.log.error({ there, head }, 'follower: the stream is ahead of the record');
  }
  f.is_within = !is_ahead;
  f.cursor = Math.min(f.cursor, head);
};

const takeTurn = async (f: Following): Promise<'again' | 'rest'> => {
  const asked_ms = performance.now();
  const entries = await f.reader.readAfter(f.cursor);
  if (f.stopped) return 'rest';
  if (entries === null || entries.length === 0) {
    await readRecord(f);
    await compare(f, f.cursor);
    // An empty answer that did not wait is no answer: without a rest it would come again at once.
    return entries !== null && performance.now() - asked_ms > away_ms ? 'again' : 'rest';
  }
  const there = entries.at(-1)?.offset ?? 0;
  if (f.is_within !== true) await compare(f, there);
  if (f.is_within && accept(f, entries)) return 'again';
  await readRecord(f);
  if (f.is_within && accept(f, entries)) return 'again';
  await compare(f, there);
  return 'rest';
};

const describe = ({ cursor, counts, lags }: Following): FollowerStats => ({
  head: cursor,
  from_stream: counts.stream,
  from_record: counts.record,
  lost: counts.lost,
  lag_p50_ms: lags.quantile(0.5),
  lag_p99_ms: lags.quantile(0.99),
});

export const createFollower = (options: FollowerOptions): Follower => {
  const { sql, log, block_ms = 1_000, grace_ms = 2_000 } = options;
  const f: Following = {
    options,
    reader: new StreamReader({
      redis_url: options.redis_url,
      key: streamKey(options.prefix),
      name: 'follower',
      log,
      count: page_size,
      block_ms,
      grace_ms,
    }),
    lags: makeLags(),
    counts: { stream: 0, record: 0, lost: 0 },
    cursor: 0,
    stopped: false,
    suspected_hole: -1,
    is_within: undefined,
  };
  const turn = () => takeTurn(f);
  const loop = makeLoop({ name: 'follower', log, every_ms: away_ms, turn });
  return {
    name: 'follower',
    async start() {
      f.cursor = await withDeadline(readHead(sql), read_deadline_ms, 'Reading the log head');
      await loop.start();
    },
    async stop() {
      f.stopped = true;
      f.reader.stop();
      await loop.stop();
    },
    head: () => f.cursor,
    stats: () => describe(f),
  };
};
