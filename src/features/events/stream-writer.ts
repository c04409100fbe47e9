import type { Redis } from 'ioredis';
import type { Sql } from '../../db/client.js';
import { loadScript } from '../../redis/client.js';
import { type LogEntry, packEntry, streamKey } from './log-entry.js';
import { readEvents, readHead } from './store.js';

/**
 * Keeps the Redis stream equal to the end of the log. The append script refuses anything that would
 * leave a hole or repeat an entry and says where the stream stands, so the writer needs no memory:
 * whatever was lost (the answer, the entries, all of Redis) is filled in from Postgres.
 */

const script = loadScript('append-1.lua');
const kept = 100_000;
/** After Redis was emptied the stream starts again this far behind the head. */
const refill = 20_000;
const chunk = 500;

const argsOf = (entries: readonly LogEntry[]): (string | number)[] =>
  entries.flatMap((entry) => [entry.offset, ...packEntry(entry)]);

type Parts = { readonly sql: Sql; readonly redis: Redis; readonly prefix: string };

export const createStreamWriter = ({ sql, redis, prefix }: Parts) => {
  const key = streamKey(prefix);
  let at = 0;
  let checked_at = 0;

  /** Once a second the stream itself is asked, so that one that was emptied is found out. */
  const checkStream = async (head: number): Promise<void> => {
    if (checked_at > 0 && performance.now() - checked_at < 1_000) return;
    const [last] = await redis.xrevrange(key, '+', '-', 'COUNT', 1);
    await realign(last === undefined ? 0 : Number(last[0].split('-')[0]), head);
    checked_at = performance.now();
  };

  const append = async (after: number | 'empty', entries: readonly LogEntry[]): Promise<number> =>
    Number(await script(redis, [key], [after, kept, ...argsOf(entries)]));

  /** The stream is not where it was thought to be: continue from where it says it is. */
  const realign = async (there: number, head: number): Promise<void> => {
    // Further than this relay: another one took over. Further than the record: the stream is of
    // another life of the database and can only mislead.
    const is_alien = there > head && there > (await readHead(sql));
    if (is_alien) await redis.del(key);
    else if (there > 0) {
      at = there;
      return;
    }
    const from = Math.max(0, head - refill);
    const entries = await readEvents(sql, from, chunk);
    if (entries.length === 0) return;
    const result = await append('empty', entries);
    at = result === -1 ? (entries[entries.length - 1] as LogEntry).offset : result;
  };

  return {
    /** Brings the stream up to `head`; `fresh` are the newest entries where they are at hand. */
    async write(head: number, fresh: readonly LogEntry[]): Promise<void> {
      await checkStream(head);
      for (let turns = 0; turns < 1_000; turns += 1) {
        if (at >= head) return;
        const first = fresh[0]?.offset ?? 0;
        const usable = first > 0 && first <= at + 1;
        const entries = usable
          ? fresh.filter((entry) => entry.offset > at).slice(0, chunk)
          : await readEvents(sql, at, chunk);
        if (entries.length === 0) return;
        const result = await append(at, entries);
        if (result === -1) at = (entries[entries.length - 1] as LogEntry).offset;
        else await realign(result, head);
      }
    },
  };
};
