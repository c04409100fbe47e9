import type { Test } from 'tap';
import { closeRedis, connectRedis, openRedis } from '../../src/redis/client.js';
import { makeConnectionCounter } from '../../src/socket/connections.js';
import { range } from '../help/hub.js';
import { openParts } from '../help/parts.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

type SharedCounter = ReturnType<typeof makeConnectionCounter>;

const { deps, stores } = await openParts(t);
const { log } = deps;
let opened = 0;

/** Two processes that share a Redis. */
const openTwo = async (t: Test) => {
  opened += 1;
  const prefix = `${stores.redis_prefix}:${opened}`;
  const open = async (): Promise<SharedCounter> => {
    const url = stores.redis_url;
    const redis = openRedis({ url, name: 'counter', log, command_timeout_ms: 5_000 });
    await connectRedis(redis);
    // Longer than any stall of the machine, so that no living process counts as killed.
    const options = { redis, prefix, log, counts_ms: 60_000 };
    const counter = makeConnectionCounter(options);
    await counter.start();
    t.teardown(async () => {
      await counter.stop();
      closeRedis(redis);
    });
    return counter;
  };
  const [one, two] = [await open(), await open()];
  const key = (name: string): string => `${prefix}:{ws}:${name}`;
  const present = (count: number) =>
    until('they are present', async () => (await deps.redis.zcard(key('processes'))) === count);
  await present(2);
  return { one, two, redis: deps.redis, key, present };
};

const takeMany = (counter: SharedCounter, count: number, most: number): Promise<boolean[]> =>
  Promise.all(range(1, count).map(() => counter.take('a', most)));

t.test('counter are shared by all processes and come back', async (t) => {
  const { one, two } = await openTwo(t);
  t.strictSame(await takeMany(one, 6, 10), Array(6).fill(true));
  t.strictSame(await takeMany(two, 4, 10), Array(4).fill(true), 'the last of them too');
  t.strictSame([await one.take('a', 10), await two.take('a', 10)], [false, false]);
  t.equal(await two.take('b', 1), true, 'another name has its own');
  one.leave('a');
  await until('there is room', () => two.take('a', 10));
  t.equal(await one.take('a', 10), false);
});

t.test('a process hears where another one found none left', async (t) => {
  const { one, two } = await openTwo(t);
  const heard: string[] = [];
  two.onFull((name) => heard.push(name));
  await takeMany(two, 2, 2);
  t.equal(await one.take('a', 2), false);
  await until('it is heard', () => heard.includes('a'));
});

t.test('at once, no more are taken than there are', async (t) => {
  const { one, two } = await openTwo(t);
  const taken = (await Promise.all([takeMany(one, 30, 20), takeMany(two, 30, 20)])).flat();
  const count = taken.filter(Boolean).length;
  t.ok(count > 0 && count <= 20, `${count} of 20`);
  t.equal(await one.take('a', 20), count < 20);
});

t.test('what a killed process had is free soon, and newcomers wait for it', async (t) => {
  const { one, redis, key } = await openTwo(t);
  const [seconds, micros] = (await redis.time()).map(Number) as [number, number];
  await redis.zadd(key('processes'), seconds * 1_000 + micros / 1_000 + 900, 'killed');
  await redis.hset(key('connections:a'), 'killed', 5, 'long ago', 7);
  t.strictSame(await takeMany(one, 5, 5), Array(5).fill(true));
  t.strictSame(Object.values(await redis.hgetall(key('connections:a'))), ['5']);
});

t.test('a Redis that was emptied is told again', async (t) => {
  const { one, two, redis, key, present } = await openTwo(t);
  await takeMany(one, 3, 4);
  await redis.del(key('processes'), key('connections:a'));
  await present(2);
  await until('it is told', async () => (await redis.hvals(key('connections:a')))[0] === '3');
  t.equal(await two.take('a', 4), true);
  t.equal(await two.take('a', 4), false);
});

t.test('without Redis each process holds the limit by itself', async (t) => {
  const redis = openRedis({ url: 'unix:/nowhere', name: 'counter', log, command_timeout_ms: 100 });
  const counter = makeConnectionCounter({ redis, prefix: 'x', log });
  t.strictSame(await takeMany(counter, 3, 2), [true, true, false]);
  counter.leave('a');
  t.equal(await counter.take('a', 2), true);
});
