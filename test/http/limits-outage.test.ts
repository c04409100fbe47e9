import { pino } from 'pino';
import { t } from 'tap';
import { createLimiter, type Limiter, type Window } from '../../src/http/limits.js';
import { signalProcess } from '../../src/process/embedded/processes.js';
import { startRedis } from '../../src/process/embedded/redis.js';
import { closeRedis, connectRedis, openRedis } from '../../src/redis/client.js';
import { makeTestFolder, removeTestFolder } from '../help/own-stores.js';
import { startStopwatch } from '../help/stopwatch.js';
import type { Teardown } from '../help/stores.js';
import { until } from '../help/until.js';

/** Limits while Redis is away or stands still: never a hang, never an open door. */

const patience_ms = 150;

const startOwnRedis = async (t: Teardown) => {
  const data_dir = makeTestFolder();
  const server = await startRedis({ data_dir, say: () => undefined });
  t.teardown(async () => {
    signalProcess(server.pid, 'SIGCONT');
    await server.stop();
    removeTestFolder(data_dir);
  });
  return { data_dir, server };
};

const startLimiter = async (t: Teardown, url: string, processes: number) => {
  const warnings: string[] = [];
  const log = pino({ level: 'warn' }, { write: (line: string) => warnings.push(line) });
  const redis = openRedis({ url, name: 'limits', log, command_timeout_ms: 1_000 });
  await connectRedis(redis);
  const limiter = createLimiter({ redis, prefix: 'pf', processes, log, patience_ms });
  t.teardown(() => {
    limiter.stop();
    closeRedis(redis);
  });
  const toldLocal = () => warnings.filter((line) => line.includes('counting locally')).length;
  return { limiter, redis, toldLocal };
};

const windowOf = (key: string, limit: number): Window => ({
  ...{ name: 'key', key, limit },
  window_ms: 60_000,
});

const countAllowed = async (limiter: Limiter, window: Window, calls: number): Promise<number> => {
  let allowed = 0;
  for (let n = 0; n < calls; n += 1) {
    if ((await limiter.take([window])).allowed) allowed += 1;
  }
  return allowed;
};

t.test('without Redis each process allows its share of the limit', async (t) => {
  const { limiter, toldLocal } = await startLimiter(t, 'redis://127.0.0.1:1', 4);
  const readWatch = startStopwatch();
  t.equal(await countAllowed(limiter, windowOf('a', 10), 10), 2, '10 ÷ 4');
  t.equal(await countAllowed(limiter, windowOf('b', 3), 10), 1, 'never less than one');
  t.ok(readWatch() < 1_000, 'and nobody waits for Redis');
  t.equal(toldLocal(), 1, 'which is said once');
});

t.test('a Redis that stands still is waited for no longer than the patience', async (t) => {
  const { server } = await startOwnRedis(t);
  const { limiter, toldLocal } = await startLimiter(t, server.url, 2);
  t.match(await limiter.take([windowOf('a', 10)]), { allowed: true, left: [9] });
  signalProcess(server.pid, 'SIGSTOP');
  const measure = async () => {
    const started = performance.now();
    const taken = await limiter.take([windowOf('a', 10)]);
    return { taken, ms: performance.now() - started };
  };
  const first = await measure();
  t.match(first.taken, { allowed: true, left: [4] }, 'half of the limit, counted anew');
  t.ok(first.ms >= patience_ms - 20 && first.ms < patience_ms + 500, `${first.ms} ms`);
  const second = await measure();
  t.ok(second.ms < patience_ms - 50, `${second.ms} ms: the next ones do not wait at all`);
  t.equal(await countAllowed(limiter, windowOf('a', 10), 10), 3, 'and the door is not open');
  t.equal(toldLocal(), 1);
});

t.test('when Redis is back it counts again, with what it knew before', async (t) => {
  const { data_dir, server } = await startOwnRedis(t);
  const { limiter, redis, toldLocal } = await startLimiter(t, server.url, 1);
  const window = windowOf('a', 3);
  t.equal(await countAllowed(limiter, window, 3), 3);
  await server.stop();
  await until('the connection is lost', () => redis.status !== 'ready');
  t.match(await limiter.take([window]), { allowed: true, left: [2] }, 'counted locally');
  t.equal(toldLocal(), 1);
  const again = await startRedis({ data_dir, say: () => undefined });
  t.teardown(() => again.stop());
  await until('the connection is back', () => redis.status === 'ready');
  await until('Redis refuses what it has counted', async () => {
    const taken = await limiter.take([{ ...window, limit: 1_000 }]);
    // Locally nothing but the calls made here is known.
    return (taken.left[0] ?? 0) <= 1_000 - 4 && (await redis.llen('pf:{limits}:a')) > 3;
  });
  t.match(await limiter.take([window]), { allowed: false });
});

t.test('a flood while Redis stands still is answered within the patience too', async (t) => {
  const { server } = await startOwnRedis(t);
  const { limiter } = await startLimiter(t, server.url, 1);
  await limiter.take([windowOf('a', 1)]);
  signalProcess(server.pid, 'SIGSTOP');
  const readWatch = startStopwatch();
  const taken = await Promise.all(
    Array.from({ length: 2_000 }, () => limiter.take([windowOf('flood', 50)])),
  );
  t.ok(readWatch() < patience_ms + 1_000);
  t.equal(taken.filter(({ allowed }) => allowed).length, 50);
});
