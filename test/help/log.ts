import { randomUUID } from 'node:crypto';
import type { Sql } from '../../src/db/client.js';
import { type LogEntry, packEntry, streamKey } from '../../src/features/events/log-entry.js';
import type { RedisClient } from '../../src/redis/client.js';

/** Writes the log in place of the relay, so that a test controls how far the log goes. */

export const makeEntry = (offset: number, place: Partial<LogEntry> = {}): LogEntry => ({
  offset,
  id: randomUUID(),
  event: 'question.closed',
  question_id: null,
  agent_id: null,
  audience_id: null,
  category: null,
  subcategory: null,
  owner_id: null,
  body: JSON.stringify({
    event: place.event ?? 'question.closed',
    data: { n: offset, note: 'é 💡 "quoted"' },
    timestamp: new Date().toISOString(),
  }),
  ...place,
});

/** The members of an entry, without the transport's own members. */
export const saidOf = (entry: LogEntry): LogEntry => {
  const { offset, id, event, question_id, agent_id, audience_id } = entry;
  const { category, subcategory, owner_id, body } = entry;
  return {
    offset,
    id,
    event,
    question_id,
    agent_id,
    audience_id,
    category,
    subcategory,
    owner_id,
    body,
  };
};

/** The fields of a stream entry, as the relay writes them. */
export const streamFields = (entry: LogEntry): string[] => {
  const [head, body] = packEntry(entry);
  return ['h', head, 'b', body];
};

export type LogWriter = ReturnType<typeof makeLogWriter>;

/** Writes log entries. The offset of an entry is its index plus one. */
export const makeLogWriter = (sql: Sql, redis: RedisClient, prefix: string) => {
  const entries: LogEntry[] = [];
  /** Adds this many events to Postgres, but not to the stream. */
  const record = async (
    count: number,
    place: Partial<LogEntry> = {},
  ): Promise<readonly LogEntry[]> => {
    const fresh: LogEntry[] = [];
    for (let i = 1; i <= count; i += 1) fresh.push(makeEntry(entries.length + i, place));
    const rows = fresh.map((entry) => ({
      ...entry,
      recorded_on: new Date().toISOString().slice(0, 10),
      recorded_at: new Date(),
    }));
    await sql.begin(async (tx) => {
      if (rows.length > 0) await tx`insert into events ${tx(rows as never[])}`;
      await tx`update log_head set "offset" = "offset" + ${count}`;
    });
    entries.push(...fresh);
    return fresh;
  };
  /** Appends events to the stream, from one offset to another, both included. */
  const append = async (from: number, to: number): Promise<void> => {
    for (let first = from; first <= to; first += 500) {
      const pipeline = redis.pipeline();
      for (const entry of entries.slice(first - 1, Math.min(first + 499, to))) {
        pipeline.xadd(streamKey(prefix), `${entry.offset}-0`, ...streamFields(entry));
      }
      const results = (await pipeline.exec()) ?? [];
      for (const [error] of results) if (error !== null) throw error;
    }
  };
  return {
    entries: entries as readonly LogEntry[],
    record,
    append,
    /** Writes to Postgres and to the stream. */
    async write(count: number, place: Partial<LogEntry> = {}) {
      const fresh = await record(count, place);
      await append(entries.length - count + 1, entries.length);
      return fresh;
    },
  };
};
