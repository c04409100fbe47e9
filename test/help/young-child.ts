import { constants, PerformanceObserver } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { getHeapSpaceStatistics } from 'node:v8';
import type { Redis } from 'ioredis';
import { pino } from 'pino';
import { openSql } from '../../src/kit/pg/client.js';
import { closeRedis, connectRedis, openRedis } from '../../src/kit/redis/client.js';
import { createStreamReader } from '../../src/kit/redis/stream.js';

/** A process of its own that reads the same rows again and again, and tells what grew old by it. */

export interface Aged {
  /** Characters that were read. */
  readonly read: number;
  /** By how many bytes the old objects grew. */
  readonly grown: number;
  /** Collections of all objects meanwhile. */
  readonly full: number;
}

const rows = 300;
const text = 'x'.repeat(1_000);
const warm_up = 60;
const reads = 200;

/** How many characters were read. */
type Read = () => Promise<number>;

const countIn = (texts: readonly string[]): number =>
  texts.reduce((sum, { length }) => sum + length, 0);

const fill = `
  redis.call('DEL', KEYS[1])
  for n = 1, ARGV[1] do redis.call('XADD', KEYS[1], n .. '-0', 'b', ARGV[2]) end`;

/** Each read waits so long that whatever waits for it has been moved among the old objects. */
const openStream = (redis: Redis, redis_url: string) => {
  const key = 'young:stream';
  const log = pino({ level: 'silent' });
  const reader = createStreamReader({ redis_url, key, name: 'young', log, block_ms: 5_000 });
  const read: Read = async () => {
    let characters = 0;
    const done = reader.readAfter(0, (entries) => {
      characters += countIn(entries.map(({ fields }) => fields[1] ?? ''));
    });
    for (let n = 0; n < 3; n += 1) {
      await pause(1);
      global.gc?.({ type: 'minor' });
    }
    await redis.eval(fill, 1, key, rows, text);
    await done;
    await redis.del(key);
    return characters;
  };
  const close = async (): Promise<void> => {
    reader.stop();
    closeRedis(redis);
  };
  return { read, close };
};

const openStore = async (store: string, url: string) => {
  if (store === 'postgres') {
    const sql = openSql({ url, pool: 1, prepare: true, name: 'young' });
    const read: Read = async () =>
      countIn(
        (
          await sql<{ body: string }[]>`
            select repeat('x', 1000) as body from generate_series(1, ${rows}::integer)`
        ).map(({ body }) => body),
      );
    return { read, close: () => sql.end({ timeout: 1 }) };
  }
  const log = pino({ level: 'silent' });
  const redis = openRedis({ url, name: 'young', log, command_timeout_ms: 5_000 });
  await connectRedis(redis);
  if (store === 'stream') return openStream(redis, url);
  await redis.rpush('young', ...Array.from({ length: rows }, () => text));
  const read: Read = async () => countIn(await redis.lrange('young', 0, -1));
  return { read, close: async () => closeRedis(redis) };
};

const oldBytes = (): number => {
  const spaces = getHeapSpaceStatistics().filter(({ space_name }) =>
    ['old_space', 'large_object_space'].includes(space_name),
  );
  return spaces.reduce((sum, { space_used_size }) => sum + space_used_size, 0);
};

const readOften = async (read: Read, times: number): Promise<number> => {
  let characters = 0;
  for (let n = 0; n < times; n += 1) {
    characters += await read();
    await pause(1);
  }
  return characters;
};

const measure = async (store: string, url: string): Promise<Aged> => {
  const { read, close } = await openStore(store, url);
  await readOften(read, warm_up);
  global.gc?.();
  await pause(50);
  let full = 0;
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { detail } = entry as unknown as { detail: { kind: number } };
      if (detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR) full += 1;
    }
  });
  observer.observe({ entryTypes: ['gc'] });
  const before = oldBytes();
  const characters = await readOften(read, reads);
  const grown = oldBytes() - before;
  await pause(20);
  await close();
  return { read: characters, grown, full };
};

const [store = '', url = ''] = process.argv.slice(2);
process.stdout.write(JSON.stringify(await measure(store, url)));
