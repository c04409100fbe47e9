import type { Logger } from 'pino';
import type { Sql } from '../../db/client.js';
import { describeError } from '../../kit/log.js';
import { type Loop, makeLoop } from '../../kit/loop.js';
import { type Service, withDeadline } from '../../kit/service.js';
import { type StreamEntry, StreamReader } from '../../redis/stream.js';
import { readOldest } from './floor-store.js';
import { type LogEntry, streamKey, timeOf, unpackEntry } from './log-entry.js';
import { readEvents, readHead } from './store.js';

/**
 * Follows the log. From the head at startup, it delivers every event in order and exactly once.
 * Redis is the fast source and Postgres is the record. Each is checked against the other:
 *
 *   entries from Redis      delivered if they continue the cursor; any hole before them is filled
 *                           from Postgres first
 *   no entries in time      Postgres is read too, so a stalled stream (relay killed before its
 *                           append, Redis emptied) delays events by a second at most
 *   ahead of the record     the record was replaced or lost its last transactions: the stream is
 *                           not read until the relay has rebuilt it, and the head goes back
 *   Redis down              Postgres is read four times a second
 *   Postgres down           the follower waits, because the log cannot get new events
 */

interface FollowerOptions {
  readonly sql: Sql;
  readonly redis_url: string;
  readonly prefix: string;
  readonly log: Logger;
  /** Gets each batch in the same turn of the event loop in which the head moves. Must not throw. */
  readonly onEvents: (batch: readonly LogEntry[]) => void;
  /** How long a read of the stream waits for entries, and how much longer its answer may take. */
  readonly block_ms?: number;
  readonly grace_ms?: number;
}

const page_size = 512;
const away_ms = 250;
const read_deadline_ms = 15_000;
const oldest_every_ms = 60_000;
const lags_kept = 1_024;

/** Reads an entry of the stream with the fields h and b; null if this service did not write it. */
const readEntry = ({ offset, fields }: StreamEntry): LogEntry | null =>
  unpackEntry(offset, fields[1] ?? '', fields[3] ?? '');

export class Follower implements Service {
  readonly name = 'follower';
  /** Counts delivered entries by source, and offsets that neither source had. */
  readonly counts = { stream: 0, record: 0, lost: 0 };
  readonly #options: FollowerOptions;
  readonly #reader: StreamReader;
  readonly #loops: readonly Loop[];
  readonly #lags_ms: number[] = [];
  #head = 0;
  #oldest = 1;
  #is_stopped = false;
  #suspected_hole = -1;
  /** True if the stream ends within the record; undefined until the two are compared. */
  #is_within: boolean | undefined;

  constructor(options: FollowerOptions) {
    const { redis_url, prefix, log, block_ms = 1_000, grace_ms = 2_000 } = options;
    this.#options = options;
    this.#reader = new StreamReader({
      redis_url,
      key: streamKey(prefix),
      name: 'follower',
      log,
      count: page_size,
      block_ms,
      grace_ms,
    });
    const [turn, bounds] = [() => this.#turn(), () => this.#readOldest()];
    this.#loops = [
      makeLoop({ name: 'follower', log, every_ms: away_ms, turn }),
      makeLoop({ name: 'oldest offset', log, every_ms: oldest_every_ms, turn: bounds }),
    ];
  }

  get head(): number {
    return this.#head;
  }

  /** The oldest stored offset, at most a minute old. */
  get oldest(): number {
    return this.#oldest;
  }

  /**
   * Returns the 99th percentile of the delay from an event's time to its delivery, over the last
   * 1,024 batches.
   */
  lagP99(): number {
    const sorted = this.#lags_ms.filter((ms) => !Number.isNaN(ms)).sort((a, b) => a - b);
    return sorted[Math.ceil(0.99 * sorted.length) - 1] ?? 0;
  }

  async start(): Promise<void> {
    const { sql } = this.#options;
    this.#head = await withDeadline(readHead(sql), read_deadline_ms, 'Reading the log head');
    await this.#readOldest();
    await Promise.all(this.#loops.map((loop) => loop.start()));
  }

  async stop(): Promise<void> {
    this.#is_stopped = true;
    this.#reader.stop();
    await Promise.all(this.#loops.map((loop) => loop.stop()));
  }

  async #readOldest(): Promise<'rest'> {
    const reading = readOldest(this.#options.sql);
    this.#oldest = await withDeadline(reading, read_deadline_ms, 'Reading the oldest offset');
    return 'rest';
  }

  async #turn(): Promise<'again' | 'rest'> {
    const began_ms = performance.now();
    const entries = await this.#reader.readAfter(this.#head);
    if (this.#is_stopped) return 'rest';
    if (entries === null || entries.length === 0) {
      await this.#readRecord();
      await this.#compare(this.#head);
      // A failed read, or an empty one that did not wait, would repeat in a tight loop. So rest
      // first.
      return entries !== null && performance.now() - began_ms > away_ms ? 'again' : 'rest';
    }
    const there = entries.at(-1)?.offset ?? 0;
    if (this.#is_within !== true) await this.#compare(there);
    if (this.#is_within && this.#accept(entries)) return 'again';
    await this.#readRecord();
    if (this.#is_within && this.#accept(entries)) return 'again';
    await this.#compare(there);
    return 'rest';
  }

  /**
   * Compares the record with the newest entry of the stream, or with the head if nothing was read.
   */
  async #compare(there: number): Promise<void> {
    const reading = readHead(this.#options.sql);
    const end = await withDeadline(reading, read_deadline_ms, 'Reading the end of the log');
    const is_ahead = there > end;
    if (is_ahead && this.#is_within !== false) {
      this.#options.log.error({ there, end }, 'follower: the stream is ahead of the record');
    }
    this.#is_within = !is_ahead;
    this.#head = Math.min(this.#head, end);
  }

  /** Delivers the entries that continue the head; true if no entries are left over. */
  #accept(entries: readonly StreamEntry[]): boolean {
    const continuing: LogEntry[] = [];
    let is_whole = true;
    for (const entry of entries) {
      if (entry.offset <= this.#head) continue;
      // An entry that cannot be read counts as a hole.
      const read = entry.offset === this.#head + continuing.length + 1 ? readEntry(entry) : null;
      if (read === null) {
        is_whole = false;
        break;
      }
      continuing.push(read);
    }
    this.#deliver(continuing, 'stream');
    return is_whole;
  }

  async #readRecord(): Promise<void> {
    for (;;) {
      const reading = readEvents(this.#options.sql, this.#head, page_size);
      const rows = await withDeadline(reading, read_deadline_ms, 'Reading the log');
      const next = rows[0]?.offset;
      if (next === undefined || this.#is_stopped) return;
      if (next !== this.#head + 1 && !this.#passHole(next)) return;
      const hole = rows.findIndex(({ offset }, index) => offset !== next + index);
      this.#deliver(hole < 0 ? [...rows] : rows.slice(0, hole), 'record');
      if (rows.length < page_size && hole < 0) return;
    }
  }

  /**
   * If later rows exist, a missing row is gone for good. Skipping it is final, so the follower
   * looks for it twice.
   */
  #passHole(next: number): boolean {
    const after = this.#head;
    if (this.#suspected_hole !== after) {
      this.#suspected_hole = after;
      return false;
    }
    this.#options.log.error({ after, next }, 'follower: the record has a hole');
    this.counts.lost += next - after - 1;
    this.#head = next - 1;
    return true;
  }

  #deliver(batch: readonly LogEntry[], source: 'stream' | 'record'): void {
    const [first, last] = [batch[0], batch.at(-1)];
    if (first === undefined || last === undefined || this.#is_stopped) return;
    this.#head = last.offset;
    this.counts[source] += batch.length;
    if (this.#lags_ms.length === lags_kept) this.#lags_ms.shift();
    this.#lags_ms.push(Math.max(0, Date.now() - Date.parse(timeOf(first))));
    try {
      this.#options.onEvents(batch);
    } catch (error) {
      this.#options.log.error(describeError(error), 'follower: the receiver of a batch threw');
    }
  }
}
