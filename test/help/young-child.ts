import { constants, PerformanceObserver } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { getHeapSpaceStatistics } from 'node:v8';
import { pino } from 'pino';
import { openSql } from '../../src/kit/pg/client.js';
import { closeRedis, connectRedis, openRedis } from '../../src/kit/redis/client.js';

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

type Read = () => Promise<readonly string[]>;

const openStore = async (store: string, url: string) => {
  if (store === 'postgres') {
    const sql = openSql({ url, pool: 1, prepare: true, name: 'young' });
    const read: Read = async () =>
      (
        await sql<{ body: string }[]>`
          select repeat('x', 1000) as body from generate_series(1, ${rows}::integer)`
      ).map(({ body }) => body);
    return { read, close: () => sql.end({ timeout: 1 }) };
  }
  const log = pino({ level: 'silent' });
  const redis = openRedis({ url, name: 'young', log, command_timeout_ms: 5_000 });
  await connectRedis(redis);
  await redis.rpush('young', ...Array.from({ length: rows }, () => text));
  return { read: () => redis.lrange('young', 0, -1), close: async () => closeRedis(redis) };
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
    for (const one of await read()) characters += one.length;
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
