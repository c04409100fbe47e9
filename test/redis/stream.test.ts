import { pino } from 'pino';
import type { Test } from 'tap';
import type { RedisClient } from '../../src/redis/client.js';
import { StreamReader } from '../../src/redis/stream.js';
import { startStopwatch } from '../help/stopwatch.js';
import { openStores, openTestRedis, type Stores, startPrivateStores } from '../help/stores.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

interface Opened {
  readonly reader: StreamReader;
  readonly redis: RedisClient;
  readonly key: string;
}

const shared = await openStores(t);
let opened = 0;

const open = async (
  t: Test,
  stores: Pick<Stores, 'redis_url' | 'redis_prefix'> = shared,
): Promise<Opened> => {
  opened += 1;
  const key = `${stores.redis_prefix}:stream ${opened}`;
  const reader = new StreamReader({
    redis_url: stores.redis_url,
    key,
    name: 'test',
    log: pino({ level: 'silent' }),
    block_ms: 200,
    grace_ms: 200,
    count: 3,
  });
  const redis = await openTestRedis(t, stores.redis_url);
  t.teardown(() => reader.stop());
  return { reader, redis, key };
};

t.test('entries come in order, at most so many, with their fields', async (t) => {
  const { reader, redis, key } = await open(t);
  for (let offset = 1; offset <= 5; offset += 1) {
    await redis.xadd(key, `${offset}-0`, 'a', '', 'b', `é ${offset}`);
  }
  t.strictSame(await reader.readAfter(0), [
    { offset: 1, fields: ['a', '', 'b', 'é 1'] },
    { offset: 2, fields: ['a', '', 'b', 'é 2'] },
    { offset: 3, fields: ['a', '', 'b', 'é 3'] },
  ]);
  t.strictSame(
    (await reader.readAfter(3))?.map(({ offset }) => offset),
    [4, 5],
  );
});

t.test('a read waits for the first entry, and ends empty when none comes', async (t) => {
  const { reader, redis, key } = await open(t);
  const started_ms = performance.now();
  t.strictSame(await reader.readAfter(0), []);
  t.ok(performance.now() - started_ms >= 190);
  const waiting = reader.readAfter(0);
  await redis.xadd(key, '7-0', 'a', 'b');
  t.strictSame(await waiting, [{ offset: 7, fields: ['a', 'b'] }]);
});

t.test('an error of Redis is null, ids of another kind are left out', async (t) => {
  const { reader, redis, key } = await open(t);
  await redis.set(key, 'a key of another kind');
  t.equal(await reader.readAfter(0), null);
  await redis.del(key);
  await redis.xadd(key, '1-1', 'a', 'b');
  await redis.xadd(key, '2-0', 'a', 'b');
  t.strictSame(await reader.readAfter(0), [{ offset: 2, fields: ['a', 'b'] }]);
});

t.test('a Redis that is not there is null at once', async (t) => {
  const { reader } = await open(t, { redis_url: 'unix:/nowhere/redis.sock', redis_prefix: 'x' });
  t.equal(await reader.readAfter(0), null);
});

t.test('stopping ends a read under way, and every later one', async (t) => {
  const { reader, redis, key } = await open(t);
  await reader.readAfter(0);
  const waiting = reader.readAfter(0);
  reader.stop();
  t.equal(await waiting, null);
  await redis.xadd(key, '1-0', 'a', 'b');
  t.equal(await reader.readAfter(0), null);
});

t.test('a read that does not come back ends, and later ones work again', async (t) => {
  const stores = await startPrivateStores(t, { durable: false });
  const { reader, redis, key } = await open(t, stores);
  await redis.xadd(key, '1-0', 'a', 'b');
  t.equal((await reader.readAfter(0))?.length, 1);
  stores.redis.pause();
  const started_ms = performance.now();
  const readWatch = startStopwatch();
  t.equal(await reader.readAfter(1), null);
  const took_ms = performance.now() - started_ms;
  t.ok(took_ms >= 390 && readWatch() < 2_000, `ended after ${Math.round(took_ms)} ms`);
  t.equal(await reader.readAfter(1), null, 'still away');
  stores.redis.resume();
  await until('entries again', async () => (await reader.readAfter(0))?.length === 1);
  await stores.redis.kill();
  t.equal(await reader.readAfter(1), null);
  await stores.redis.restart({ empty: true });
  await until('an answer', async () => (await reader.readAfter(0)) !== null);
  await redis.xadd(key, '9-0', 'a', 'b');
  t.equal((await reader.readAfter(1))?.[0]?.offset, 9);
});
