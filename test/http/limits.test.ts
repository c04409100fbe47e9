import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { pino } from 'pino';
import { createLimiter, type Limiter, limitKey, type Window } from '../../src/http/limits.js';
import { makeLocalWindows } from '../../src/http/local-windows.js';
import { signalProcess } from '../../src/process/embedded/processes.js';
import { startRedis } from '../../src/process/embedded/redis.js';
import { closeRedis, connectRedis, openRedis, type RedisClient } from '../../src/redis/client.js';
import { makeTestFolder, removeTestFolder } from '../help/own-stores.js';
import { pluck } from '../help/pluck.js';
import { holds } from '../help/property.js';
import { startStopwatch } from '../help/stopwatch.js';
import { openStores, type Teardown } from '../help/stores.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

/**
 * Compares the windows in Redis with the same rule in memory. The script reads the time from Redis,
 * and Redis expires its keys. For `clocked`, the tests set the time, and the script is otherwise
 * unchanged. In the last tests, Redis is missing or paused.
 */

const stores = await openStores(t);
const silent = pino({ level: 'silent' });
const start_ms = 1_700_000_000_123;
const minute_ms = 60_000;
const windows_lua = readFileSync(
  new URL('../../src/redis/lua/windows-n.lua', import.meta.url),
  'utf8',
);

let used = 0;
/** A window that no other test uses. */
const windowOf = (limit: number, window_ms = minute_ms): Window => {
  used += 1;
  return { name: `n${used}`, key: `key:${used}`, limit, window_ms };
};
const listOf = (window: Window): string => limitKey(stores.redis_prefix, window);

/** Replaces text, which must occur. */
const replaceIn = (text: string, from: string | RegExp, to: string): string => {
  const replaced = text.replace(from, to);
  if (replaced === text) throw new Error(`the script no longer has ${from}`);
  return replaced;
};

/** The script with a hash as its clock: `now` is the time, and each key has its expiry there. */
const withClock = (clock: string): string => {
  const local = `local now = tonumber(redis.call('HGET', '${clock}', 'now'))
    local function expireKey(name, ms) redis.call('HSET', '${clock}', name, now + ms) end`;
  const timed = replaceIn(windows_lua, /local time = .*\nlocal now = .*\n/, `${local}\n`);
  return replaceIn(timed, "redis.call('PEXPIRE', ", 'expireKey(').replace(/^#!lua\n/, '');
};

type Evaluate = (text: string, ...rest: readonly unknown[]) => Promise<unknown>;

/** Loads the script, and then makes this connection run `other` instead. */
const replaceScript = async (redis: RedisClient, other: string): Promise<void> => {
  await limiterOn(redis).take([windowOf(1)]);
  const sha = createHash('sha1').update(windows_lua).digest('hex');
  const evalsha = redis.evalsha.bind(redis) as Evaluate;
  const evaluate = redis.eval.bind(redis) as Evaluate;
  const replaced: Evaluate = (asked, ...rest) =>
    asked === sha ? evaluate(other, ...rest) : evalsha(asked, ...rest);
  redis.evalsha = replaced as RedisClient['evalsha'];
};

const connect = async (t: Teardown): Promise<RedisClient> => {
  const { redis_url: url } = stores;
  const redis = openRedis({ url, name: 'limits', log: silent, command_timeout_ms: 5_000 });
  await connectRedis(redis);
  t.teardown(() => closeRedis(redis));
  return redis;
};

const limiterOn = (redis: RedisClient): Limiter =>
  createLimiter({
    redis,
    prefix: stores.redis_prefix,
    processes: 1,
    log: silent,
    patience_ms: 5_000,
  });

const redis = await connect(t);
const clocked = limiterOn(redis);
const clock = `${stores.redis_prefix}:{limits}:clock`;
await replaceScript(redis, withClock(clock));
/** Forgets when the keys of earlier tests expire, so that advancing the clock stays cheap. */
const forgetEnds = () => redis.del(clock);
/** Sets the clock of `clocked` and deletes the keys that have expired. */
const setTime = async (ms: number): Promise<void> => {
  const { now: _, ...ends } = await redis.hgetall(clock);
  const gone = Object.keys(ends).filter((key) => Number(ends[key]) <= ms);
  if (gone.length > 0) await Promise.all([redis.del(...gone), redis.hdel(clock, ...gone)]);
  await redis.hset(clock, 'now', ms);
};
const takeAt = async (ms: number, ...windows: readonly Window[]) => {
  await setTime(start_ms + ms);
  return clocked.take(windows);
};

t.test('a window takes its limit and refuses one more until the oldest is gone', async (t) => {
  const window = windowOf(3);
  for (const [ms, expected] of [
    [0, { allowed: true, refused: -1, retry_ms: 0, left: [2], reset_ms: [minute_ms] }],
    [10_000, { allowed: true, left: [1], reset_ms: [50_000] }],
    [20_000, { allowed: true, left: [0], reset_ms: [40_000] }],
    [30_000, { allowed: false, refused: 0, retry_ms: 30_000, left: [0], reset_ms: [30_000] }],
    [59_999, { allowed: false, retry_ms: 1 }],
    // The first call is a minute old. The second one is not.
    [60_000, { allowed: true, left: [0] }],
    [60_000, { allowed: false, retry_ms: 10_000 }],
  ] as const) {
    t.match(await takeAt(ms, window), expected, `after ${ms} ms`);
  }
  t.match(await clocked.take([]), { allowed: true, left: [] }, 'no windows: always allowed');
});

t.test('a refused call consumes nothing, in no window', async (t) => {
  const [wide, narrow] = [windowOf(10), windowOf(1)];
  t.match(await takeAt(0, wide, narrow), { allowed: true, left: [9, 0] });
  for (let n = 0; n < 20; n += 1) {
    t.match(await takeAt(0, wide, narrow), { allowed: false, refused: 1, left: [9, 0] });
  }
  t.match(await takeAt(0, wide), { allowed: true, left: [8] });
  t.equal(await redis.llen(listOf(wide)), 2);
  t.equal(await redis.llen(listOf(narrow)), 1);
});

t.test('of several full windows the one that lasts longest is named', async (t) => {
  const [short, long] = [windowOf(1, 1_000), windowOf(1)];
  await takeAt(0, short, long);
  t.match(await takeAt(0, short, long), { refused: 1, retry_ms: minute_ms });
  t.match(await takeAt(0, long, short), { refused: 0, retry_ms: minute_ms });
});

t.test('with a limit that was lowered, enough has to grow old first', async (t) => {
  const window = windowOf(4);
  for (let n = 0; n < 4; n += 1) await takeAt(n * 1_000, window);
  const lowered = { ...window, limit: 2 };
  t.match(await takeAt(3_000, lowered), { allowed: false, left: [0], retry_ms: 59_000 });
  t.match(await takeAt(61_999, lowered), { allowed: false, retry_ms: 1 });
  t.match(await takeAt(62_000, lowered), { allowed: true });
});

t.test('what is old is cut off wherever it ends, and nothing else', async (t) => {
  const counts = fc.record({ old: fc.nat(70), young: fc.nat(70) });
  const property = fc.asyncProperty(counts, async ({ old, young }) => {
    await forgetEnds();
    const window = windowOf(1_000);
    const list = listOf(window);
    const times = [
      ...Array.from({ length: old }, (_, n) => start_ms - minute_ms - old + 1 + n),
      ...Array.from({ length: young }, (_, n) => start_ms - minute_ms + 1 + n),
    ];
    if (times.length > 0) await redis.rpush(list, ...times);
    const { left } = await takeAt(0, window);
    const kept = await redis.lrange(list, 0, -1);
    const expected = [...times.slice(old), start_ms].map(String);
    if (left[0] !== 1_000 - young - 1 || JSON.stringify(kept) !== JSON.stringify(expected)) {
      throw new Error(`${left[0]} left of 1000, ${kept.length} of ${expected.length} kept`);
    }
  });
  await holds(t, property, { numRuns: 300 });
});

t.test('a list that idled with 300,000 entries is cut by a few commands', async (t) => {
  const redis = await connect(t);
  const limiter = limiterOn(redis);
  const counter = `${stores.redis_prefix}:{limits}:given`;
  const counting = `local given = 0
    local function call(...) given = given + 1 return redis.call(...) end\n`;
  const counted = replaceIn(windows_lua, 'local call = redis.call\n', counting);
  const storing = `redis.call('SET', '${counter}', given)\nreturn table.concat`;
  const script = replaceIn(counted, 'return table.concat', storing).replace(/^#!lua\n/, '');
  await replaceScript(redis, script);
  const window = windowOf(1_000_000);
  const list = listOf(window);
  const idle = Array.from({ length: 10_000 }, (_, n) => start_ms + n);
  for (let n = 0; n < 30; n += 1) await redis.rpush(list, ...idle.map((ms) => ms + n * 10_000));
  await redis.rpush(list, Date.now());
  t.match(await limiter.take([window]), { allowed: true, left: [1_000_000 - 2] });
  t.equal(await redis.llen(list), 2);
  const given = Number(await redis.get(counter));
  t.ok(given > 5 && given <= 45, `${given} commands`);
});

interface Step {
  readonly pause_ms: number;
  /** Requests in one turn of the event loop, which become one script call. */
  readonly calls: readonly (readonly { readonly who: number; readonly limit: number }[])[];
  /** The time then advances by this much. After that, the calls in `given_back` are given back. */
  readonly answered_ms: number;
  readonly given_back: readonly number[];
}

const windows_ms = [1_000, 1_500, 10_000] as const;

const step: fc.Arbitrary<Step> = fc.record({
  pause_ms: fc.oneof(
    fc.constantFrom(0, 1, 999, 1_000, 1_001, 1_500, 10_000),
    fc.nat(24).map((steps) => steps * 50),
  ),
  calls: fc.array(
    fc.uniqueArray(fc.record({ who: fc.nat(2), limit: fc.integer({ min: 1, max: 5 }) }), {
      selector: ({ who }) => who,
      minLength: 1,
      maxLength: 3,
    }),
    { minLength: 1, maxLength: 6 },
  ),
  answered_ms: fc.constantFrom(0, 1, 999, 1_000, 10_000),
  given_back: fc.uniqueArray(fc.nat(5), { maxLength: 3 }),
});

t.test('Redis and the model in memory agree on any course of calls', async (t) => {
  const property = fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
    await forgetEnds();
    const model = makeLocalWindows(1);
    const name = windowOf(1).key;
    let now = start_ms;
    for (const { pause_ms, calls, answered_ms, given_back } of steps) {
      now += pause_ms;
      await setTime(now);
      const asked = calls.map((call) =>
        call.map(
          ({ who, limit }): Window => ({
            name: 'w',
            key: `${name}:${who}`,
            limit,
            window_ms: windows_ms[who] ?? 0,
          }),
        ),
      );
      const taken = await Promise.all(asked.map((windows) => clocked.take(windows)));
      const expected = asked.map((windows) => ({ ...model.take(windows, now), is_local: false }));
      if (JSON.stringify(taken) !== JSON.stringify(expected)) {
        throw new Error(`${JSON.stringify(taken)} is not ${JSON.stringify(expected)}`);
      }
      if (given_back.length > 0) now += answered_ms;
      await setTime(now);
      for (const n of given_back) {
        const [windows, one] = [asked[n], taken[n]];
        if (windows === undefined || one?.allowed !== true) continue;
        const left = await clocked.giveBack(windows, one);
        model.giveBack(windows, one);
        const remains = model.look(windows, now);
        if (JSON.stringify(left) !== JSON.stringify(remains)) {
          throw new Error(`given back: ${JSON.stringify(left)}, not ${JSON.stringify(remains)}`);
        }
      }
      const looked = await clocked.look(asked.flat());
      const seen = model.look(asked.flat(), now);
      if (JSON.stringify(looked) !== JSON.stringify(seen)) {
        throw new Error(`left: ${JSON.stringify(looked)} is not ${JSON.stringify(seen)}`);
      }
    }
  });
  await holds(t, property, { numRuns: 300 });
});

t.test('what is given back never counted, in no window, and nothing else is touched', async (t) => {
  const [wide, narrow] = [windowOf(3), windowOf(2)];
  await takeAt(0, wide);
  const taken = await takeAt(10, wide, narrow);
  await takeAt(10, wide);
  t.match(await takeAt(10, wide), { allowed: false });
  t.match(await clocked.giveBack([wide, narrow], taken), [
    { left: 1, reset_ms: minute_ms - 10 },
    { left: 2, reset_ms: 0 },
  ]);
  t.same(await redis.lrange(listOf(wide), 0, -1), [start_ms, start_ms + 10].map(String));
  t.match(await takeAt(10, wide), { allowed: true, left: [0] });
  const window = windowOf(2);
  const old = await takeAt(0, window);
  await takeAt(minute_ms, window);
  t.match(await clocked.giveBack([window], old), [{ left: 1 }], 'it grew old meanwhile');
  t.match(await clocked.look([window]), [{ left: 1 }]);
});

t.test('clients in parallel that give back leave exactly what the others took', async (t) => {
  const limiters = await Promise.all(
    Array.from({ length: 4 }, async () => limiterOn(await connect(t))),
  );
  const window = windowOf(500, 10 * minute_ms);
  const work = async (limiter: Limiter, n: number): Promise<void> => {
    const taken = await limiter.take([window]);
    if (n % 3 !== 0) await limiter.giveBack([window], taken);
  };
  await Promise.all(
    limiters.flatMap((limiter) => Array.from({ length: 60 }, (_, n) => work(limiter, n))),
  );
  const [looked] = await (limiters[0] as Limiter).look([window]);
  t.equal(looked?.left, 500 - 4 * 20);
});

t.test('a list ends when nothing in it counts any more, and not before', async (t) => {
  const [counted, full] = [windowOf(3), windowOf(1, 10 * minute_ms)];
  await takeAt(0, counted, full);
  await takeAt(54_000, counted);
  t.match(await takeAt(61_000, counted, full), { refused: 1 }, 'the first grew old meanwhile');
  t.match(await takeAt(62_000, counted), { allowed: true, left: [1] });
  t.match(await takeAt(113_000, counted), { allowed: true, left: [0] });
  t.match(await takeAt(121_000, counted), { allowed: true, left: [0] }, 'two of them still count');
  t.match(await takeAt(121_000, counted), { allowed: false });
  const real = await connect(t);
  const window = windowOf(5);
  await limiterOn(real).take([window]);
  const left_ms = await real.pttl(listOf(window));
  t.ok(left_ms > minute_ms && left_ms <= 2 * minute_ms, `${left_ms} ms`);
});

t.test('by the clock of Redis a refused call is allowed once its time has come', async (t) => {
  const redis = await connect(t);
  const limiter = limiterOn(redis);
  const window = windowOf(2, 300);
  const redisTime = async (): Promise<number> => {
    const [seconds, micros] = await redis.time();
    return Number(seconds) * 1_000 + Number(micros) / 1_000;
  };
  const first_before = await redisTime();
  await limiter.take([window]);
  await limiter.take([window]);
  const refused = await limiter.take([window]);
  t.match(refused, { allowed: false, refused: 0 });
  t.ok(refused.retry_ms > 0 && refused.retry_ms <= 300, `${refused.retry_ms} ms`);
  await until('the next one is allowed', async () => (await limiter.take([window])).allowed);
  t.ok((await redisTime()) - first_before >= 298);
});

t.test('many calls of one turn are judged one after the other, in their order', async (t) => {
  const limiter = limiterOn(await connect(t));
  const window = windowOf(300);
  const taken = await Promise.all(Array.from({ length: 310 }, () => limiter.take([window])));
  t.equal(taken.filter(({ allowed }) => allowed).length, 300);
  t.same(
    taken.slice(0, 128).map(({ left }) => left[0]),
    Array.from({ length: 128 }, (_, n) => 299 - n),
  );
});

t.test('eight clients in parallel never get more than the limit together', async (t) => {
  const limiters = await Promise.all(
    Array.from({ length: 8 }, async () => limiterOn(await connect(t))),
  );
  const window = windowOf(100);
  const hammer = async (limiter: Limiter): Promise<number> => {
    let allowed = 0;
    for (let round = 0; round < 10; round += 1) {
      const taken = await Promise.all(Array.from({ length: 4 }, () => limiter.take([window])));
      allowed += taken.filter((one) => one.allowed).length;
    }
    return allowed;
  };
  const counts = await Promise.all(limiters.map(hammer));
  t.equal(
    counts.reduce((sum, count) => sum + count, 0),
    100,
    counts.join(' + '),
  );
});

t.test('looking takes nothing and changes nothing', async (t) => {
  const window = windowOf(3);
  await setTime(start_ms);
  t.same(await clocked.look([window]), [{ left: 3, reset_ms: 0 }]);
  t.equal(await redis.exists(listOf(window)), 0);
  await takeAt(0, window);
  await takeAt(20_000, window);
  for (let n = 0; n < 5; n += 1) {
    t.same(await clocked.look([window]), [{ left: 1, reset_ms: 40_000 }]);
  }
  await setTime(start_ms + 60_000);
  t.same(await clocked.look([window]), [{ left: 2, reset_ms: 20_000 }]);
  t.equal(await redis.llen(listOf(window)), 1, 'what grew old is gone');
  t.same(await clocked.look([]), []);
});

t.test('the local windows forget who was not seen for a window, and nobody else', async (t) => {
  const local = makeLocalWindows(1);
  const takeAs = (who: string, now: number) =>
    local.take([{ name: 'key', key: who, limit: 1, window_ms: minute_ms }], now);
  for (let n = 0; n < 100_000; n += 1) takeAs(`early ${n}`, start_ms);
  t.equal(local.size(), 100_000);
  t.match(takeAs('late', start_ms + 1_000), { allowed: true });
  t.equal(local.size(), 100_001, 'all of them still count');
  t.match(takeAs('early 1', start_ms + 1_000), { allowed: false }, 'and are refused');
  for (let n = 0; n < 100_000; n += 1) takeAs(`next ${n}`, start_ms + 60_000);
  t.ok(local.size() < 200_000, `${local.size()} lists`);
  t.match(takeAs('late', start_ms + 60_000), { allowed: false }, 'and one that counts is kept');
});

t.test('the limiter of one process takes its share, and at least one call', async (t) => {
  const shares = [
    [1, 10, 10],
    [4, 10, 2],
    [3, 9, 3],
    [16, 10, 1],
  ] as const;
  for (const [processes, limit, share] of shares) {
    const local = makeLocalWindows(processes);
    const window = { name: 'key', key: 'k', limit, window_ms: 1_000 };
    const taken = Array.from({ length: share + 1 }, () => local.take([window], start_ms));
    t.same(pluck(taken, 'allowed'), [...Array(share).fill(true), false], `${limit} ÷ ${processes}`);
  }
});

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
  const countWarnings = () => warnings.filter((line) => line.includes('counting locally')).length;
  return { limiter, redis, countWarnings };
};

const countAllowed = async (limiter: Limiter, window: Window, calls: number): Promise<number> => {
  let allowed = 0;
  for (let n = 0; n < calls; n += 1) {
    if ((await limiter.take([window])).allowed) allowed += 1;
  }
  return allowed;
};

t.test('without Redis each process allows its share of the limit', async (t) => {
  const { limiter, countWarnings } = await startLimiter(t, 'redis://127.0.0.1:1', 4);
  const readWatch = startStopwatch();
  t.equal(await countAllowed(limiter, windowOf(10), 10), 2, '10 ÷ 4');
  t.equal(await countAllowed(limiter, windowOf(3), 10), 1, 'never less than one');
  t.ok(readWatch() < 1_000, 'and nobody waits for Redis');
  t.equal(countWarnings(), 1, 'which is said once');
});

t.test('a Redis that stands still is waited for no longer than the patience', async (t) => {
  const { server } = await startOwnRedis(t);
  const { limiter, countWarnings } = await startLimiter(t, server.url, 2);
  const window = windowOf(10);
  t.match(await limiter.take([window]), { allowed: true, left: [9] });
  signalProcess(server.pid, 'SIGSTOP');
  const measure = async () => {
    const started = performance.now();
    const taken = await limiter.take([window]);
    return { taken, ms: performance.now() - started };
  };
  const first = await measure();
  t.match(first.taken, { allowed: true, left: [4] }, 'half of the limit, counted anew');
  t.ok(first.ms >= patience_ms - 20 && first.ms < patience_ms + 500, `${first.ms} ms`);
  const second = await measure();
  t.ok(second.ms < patience_ms - 50, `${second.ms} ms: the next ones do not wait at all`);
  t.equal(await countAllowed(limiter, window, 10), 3, 'and the limit holds');
  t.equal(countWarnings(), 1);
});

t.test('when Redis is back it counts again, with what it knew before', async (t) => {
  const { data_dir, server } = await startOwnRedis(t);
  const { limiter, redis, countWarnings } = await startLimiter(t, server.url, 1);
  const window = windowOf(3);
  t.equal(await countAllowed(limiter, window, 3), 3);
  await server.stop();
  await until('the connection is lost', () => redis.status !== 'ready');
  t.match(await limiter.take([window]), { allowed: true, left: [2] }, 'counted locally');
  t.equal(countWarnings(), 1);
  const again = await startRedis({ data_dir, say: () => undefined });
  t.teardown(() => again.stop());
  await until('the connection is back', () => redis.status === 'ready');
  await until('Redis refuses what it has counted', async () => {
    const taken = await limiter.take([{ ...window, limit: 1_000 }]);
    // The count in memory includes only the calls made here.
    return (taken.left[0] ?? 0) <= 1_000 - 4 && (await redis.llen(limitKey('pf', window))) > 3;
  });
  t.match(await limiter.take([window]), { allowed: false });
});

t.test('a flood while Redis stands still is answered within the patience too', async (t) => {
  const { server } = await startOwnRedis(t);
  const { limiter } = await startLimiter(t, server.url, 1);
  await limiter.take([windowOf(1)]);
  signalProcess(server.pid, 'SIGSTOP');
  const readWatch = startStopwatch();
  const window = windowOf(50);
  const taken = await Promise.all(Array.from({ length: 2_000 }, () => limiter.take([window])));
  t.ok(readWatch() < patience_ms + 1_000);
  t.equal(taken.filter(({ allowed }) => allowed).length, 50);
});
