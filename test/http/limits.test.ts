import fc from 'fast-check';
import { t } from 'tap';
import type { Limiter, Window } from '../../src/http/limits.js';
import { makeLocalWindows } from '../../src/http/limits.js';
import {
  fresh,
  makeLimiters,
  replaceIn,
  replaceScript,
  warmUp,
  windows_lua,
} from '../help/limiters.js';
import { holds } from '../help/property.js';
import { openStores } from '../help/stores.js';
import { until } from '../help/until.js';

/** The windows in Redis, compared with the same rule in memory, by a clock that the tests move. */

const stores = await openStores(t);
const { connect, limiterOn, startClocked } = makeLimiters(stores);

const start_ms = 1_700_000_000_123;
const minute_ms = 60_000;

t.test('a window takes its limit and refuses one more until the oldest is gone', async (t) => {
  const { limiter, setTime } = await startClocked(t);
  const window = { name: 'key', key: fresh('key'), limit: 3, window_ms: minute_ms };
  const takeAt = async (ms: number) => {
    await setTime(start_ms + ms);
    return limiter.take([window]);
  };
  t.match(await takeAt(0), {
    allowed: true,
    refused: -1,
    retry_ms: 0,
    left: [2],
    reset_ms: [minute_ms],
  });
  t.match(await takeAt(10_000), { allowed: true, left: [1], reset_ms: [50_000] });
  t.match(await takeAt(20_000), { allowed: true, left: [0], reset_ms: [40_000] });
  t.match(await takeAt(30_000), {
    ...{ allowed: false, refused: 0, retry_ms: 30_000 },
    ...{ left: [0], reset_ms: [30_000] },
  });
  t.match(await takeAt(59_999), { allowed: false, retry_ms: 1 });
  t.match(await takeAt(60_000), { allowed: true, left: [0] }, 'the first one is a minute old');
  t.match(await takeAt(60_000), { allowed: false, retry_ms: 10_000 }, 'the second one is not');
});

t.test('a refused call consumes nothing, in no window', async (t) => {
  const { limiter, redis, setTime } = await startClocked(t);
  const wide = { name: 'ip', key: fresh('ip'), limit: 10, window_ms: minute_ms };
  const narrow = { name: 'register', key: fresh('register'), limit: 1, window_ms: minute_ms };
  await setTime(start_ms);
  t.match(await limiter.take([wide, narrow]), { allowed: true, left: [9, 0] });
  for (let n = 0; n < 20; n += 1) {
    t.match(await limiter.take([wide, narrow]), { allowed: false, refused: 1, left: [9, 0] });
  }
  t.match(await limiter.take([wide]), { allowed: true, left: [8] });
  t.equal(await redis.llen(`${stores.redis_prefix}:{limits}:${wide.key}`), 2);
  t.equal(await redis.llen(`${stores.redis_prefix}:{limits}:${narrow.key}`), 1);
});

t.test('of several full windows the one that lasts longest is named', async (t) => {
  const { limiter, setTime } = await startClocked(t);
  const short = { name: 'short', key: fresh('short'), limit: 1, window_ms: 1_000 };
  const long = { name: 'long', key: fresh('long'), limit: 1, window_ms: minute_ms };
  await setTime(start_ms);
  await limiter.take([short, long]);
  t.match(await limiter.take([short, long]), { refused: 1, retry_ms: minute_ms });
  t.match(await limiter.take([long, short]), { refused: 0, retry_ms: minute_ms });
});

t.test('with a limit that was lowered, enough has to grow old first', async (t) => {
  const { limiter, setTime } = await startClocked(t);
  const window = { name: 'key', key: fresh('key'), limit: 4, window_ms: minute_ms };
  for (let n = 0; n < 4; n += 1) {
    await setTime(start_ms + n * 1_000);
    await limiter.take([window]);
  }
  const lowered = { ...window, limit: 2 };
  t.match(await limiter.take([lowered]), { allowed: false, left: [0], retry_ms: 59_000 });
  await setTime(start_ms + 62_000 - 1);
  t.match(await limiter.take([lowered]), { allowed: false, retry_ms: 1 });
  await setTime(start_ms + 62_000);
  t.match(await limiter.take([lowered]), { allowed: true });
});

t.test('what is old is cut off wherever it ends, and nothing else', async (t) => {
  const { limiter, redis, setTime } = await startClocked(t);
  const counts = fc.record({ old: fc.nat(70), young: fc.nat(70) });
  const property = fc.asyncProperty(counts, async ({ old, young }) => {
    const window = { name: 'key', key: fresh('cut'), limit: 1_000, window_ms: minute_ms };
    const list = `${stores.redis_prefix}:{limits}:${window.key}`;
    await setTime(start_ms);
    const times = [
      ...Array.from({ length: old }, (_, n) => start_ms - minute_ms - old + 1 + n),
      ...Array.from({ length: young }, (_, n) => start_ms - minute_ms + 1 + n),
    ];
    if (times.length > 0) await redis.rpush(list, ...times);
    const { left } = await limiter.take([window]);
    const kept = await redis.lrange(list, 0, -1);
    const expected = [...times.slice(old), start_ms].map(String);
    if (left[0] !== 1_000 - young - 1 || JSON.stringify(kept) !== JSON.stringify(expected)) {
      throw new Error(`${left[0]} left of 1000, ${kept.length} of ${expected.length} kept`);
    }
  });
  await holds(t, property, { numRuns: 300 });
});

/** The script as it is, but that it tells how many commands it gave. */
const withCount = (counter: string): string => {
  const counting = `local given = 0
    local function call(...) given = given + 1 return redis.call(...) end`;
  const counted = replaceIn(windows_lua, 'local call = redis.call\n', `${counting}\n`);
  const told = `redis.call('SET', '${counter}', given)\nreturn table.concat`;
  return replaceIn(counted, 'return table.concat', told).replace(/^#!lua\n/, '');
};

t.test('a list that idled with 300,000 entries is cut by a few commands', async (t) => {
  const redis = await connect(t);
  const limiter = limiterOn(redis);
  await warmUp(limiter);
  const counter = `${stores.redis_prefix}:{limits}:given`;
  replaceScript(redis, windows_lua, withCount(counter));
  const window = { name: 'key', key: fresh('idle'), limit: 1_000_000, window_ms: minute_ms };
  const list = `${stores.redis_prefix}:{limits}:${window.key}`;
  const idle = Array.from({ length: 10_000 }, (_, n) => start_ms + n);
  for (let n = 0; n < 30; n += 1) await redis.rpush(list, ...idle.map((ms) => ms + n * 10_000));
  await redis.rpush(list, Date.now());
  t.match(await limiter.take([window]), { allowed: true, left: [1_000_000 - 2] });
  t.equal(await redis.llen(list), 2);
  const given = Number(await redis.get(counter));
  t.ok(given > 5 && given <= 45, `${given} commands`);
});

t.test('no windows: always allowed', async (t) => {
  t.match(await limiterOn(await connect(t)).take([]), { allowed: true, left: [] });
});

interface Step {
  readonly pause_ms: number;
  /** What is asked for in one turn of the event loop: one script call. */
  readonly calls: readonly (readonly { readonly who: number; readonly limit: number }[])[];
  /** Then the time goes on, and those of them whose number is here are given back. */
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
  const { limiter, setTime } = await startClocked(t);
  const property = fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
    const model = makeLocalWindows(1);
    const name = fresh('model');
    let now = start_ms;
    for (const { pause_ms, calls, answered_ms, given_back } of steps) {
      now += pause_ms;
      await setTime(now);
      const asked = calls.map((call) =>
        call.map(
          ({ who, limit }): Window => ({
            ...{ name: 'w', key: `${name}:${who}`, limit },
            window_ms: windows_ms[who] ?? 0,
          }),
        ),
      );
      const taken = await Promise.all(asked.map((windows) => limiter.take(windows)));
      const expected = asked.map((windows) => ({ ...model.take(windows, now), is_local: false }));
      if (JSON.stringify(taken) !== JSON.stringify(expected)) {
        throw new Error(`${JSON.stringify(taken)} is not ${JSON.stringify(expected)}`);
      }
      if (given_back.length > 0) now += answered_ms;
      await setTime(now);
      for (const n of given_back) {
        const [windows, one] = [asked[n], taken[n]];
        if (windows === undefined || one?.allowed !== true) continue;
        const left = await limiter.giveBack(windows, one);
        model.giveBack(windows, one);
        const remains = model.look(windows, now);
        if (JSON.stringify(left) !== JSON.stringify(remains)) {
          throw new Error(`given back: ${JSON.stringify(left)}, not ${JSON.stringify(remains)}`);
        }
      }
      const looked = await limiter.look(asked.flat());
      const seen = model.look(asked.flat(), now);
      if (JSON.stringify(looked) !== JSON.stringify(seen)) {
        throw new Error(`left: ${JSON.stringify(looked)} is not ${JSON.stringify(seen)}`);
      }
    }
  });
  await holds(t, property, { numRuns: 300 });
});

t.test('what is given back never counted, in no window, and nothing else is touched', async (t) => {
  const { limiter, redis, setTime } = await startClocked(t);
  const wide = { name: 'ip', key: fresh('ip'), limit: 3, window_ms: minute_ms };
  const narrow = { name: 'key', key: fresh('key'), limit: 2, window_ms: minute_ms };
  await setTime(start_ms);
  await limiter.take([wide]);
  await setTime(start_ms + 10);
  const taken = await limiter.take([wide, narrow]);
  await limiter.take([wide]);
  t.match(await limiter.take([wide]), { allowed: false });
  const left = await limiter.giveBack([wide, narrow], taken);
  t.match(left, [
    { left: 1, reset_ms: minute_ms - 10 },
    { left: 2, reset_ms: 0 },
  ]);
  const kept = await redis.lrange(`${stores.redis_prefix}:{limits}:${wide.key}`, 0, -1);
  t.same(kept, [start_ms, start_ms + 10].map(String));
  t.match(await limiter.take([wide]), { allowed: true, left: [0] });
});

t.test('what grew old meanwhile takes nothing away from what counts', async (t) => {
  const { limiter, setTime } = await startClocked(t);
  const window = { name: 'key', key: fresh('key'), limit: 2, window_ms: minute_ms };
  await setTime(start_ms);
  const taken = await limiter.take([window]);
  await setTime(start_ms + minute_ms);
  await limiter.take([window]);
  t.match(await limiter.giveBack([window], taken), [{ left: 1 }]);
  t.match(await limiter.look([window]), [{ left: 1 }]);
});

t.test('clients in parallel that give back leave exactly what the others took', async (t) => {
  const limiters = await Promise.all(
    Array.from({ length: 4 }, async () => limiterOn(await connect(t))),
  );
  const window = { name: 'key', key: fresh('key'), limit: 500, window_ms: 10 * minute_ms };
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

t.test('a list ends only when nothing in it counts any more', async (t) => {
  const { limiter, setTime } = await startClocked(t);
  const counted = { name: 'ip', key: fresh('ip'), limit: 3, window_ms: minute_ms };
  const full = { name: 'full', key: fresh('full'), limit: 1, window_ms: 10 * minute_ms };
  const takeAt = async (ms: number, windows: readonly Window[]) => {
    await setTime(start_ms + ms);
    return limiter.take(windows);
  };
  await takeAt(0, [counted, full]);
  await takeAt(54_000, [counted]);
  t.match(await takeAt(61_000, [counted, full]), { refused: 1 }, 'the first grew old meanwhile');
  t.match(await takeAt(62_000, [counted]), { allowed: true, left: [1] });
  t.match(await takeAt(113_000, [counted]), { allowed: true, left: [0] });
  t.match(
    await takeAt(121_000, [counted]),
    { allowed: true, left: [0] },
    'two of them still count',
  );
  t.match(await takeAt(121_000, [counted]), { allowed: false });
});

t.test('every list has an end, so that nothing is left of who never comes again', async (t) => {
  const redis = await connect(t);
  const window = { name: 'key', key: fresh('key'), limit: 5, window_ms: minute_ms };
  await limiterOn(redis).take([window]);
  const left_ms = await redis.pttl(`${stores.redis_prefix}:{limits}:${window.key}`);
  t.ok(left_ms > minute_ms && left_ms <= 2 * minute_ms, `${left_ms} ms`);
});

t.test(
  'by the clock of Redis a refused call is allowed again when its time has come',
  async (t) => {
    const redis = await connect(t);
    const limiter = limiterOn(redis);
    const window = { name: 'key', key: fresh('key'), limit: 2, window_ms: 300 };
    const redisTime = async (): Promise<number> => {
      const [seconds, micros] = await redis.time();
      return Number(seconds) * 1_000 + Number(micros) / 1_000;
    };
    await limiter.take([window]);
    const first_before = await redisTime();
    await limiter.take([window]);
    const refused = await limiter.take([window]);
    t.match(refused, { allowed: false, refused: 0 });
    t.ok(refused.retry_ms > 0 && refused.retry_ms <= 300, `${refused.retry_ms} ms`);
    await until('the next one is allowed', async () => (await limiter.take([window])).allowed);
    t.ok((await redisTime()) - first_before >= 298);
  },
);

t.test('many calls of one turn are judged one after the other, in their order', async (t) => {
  const limiter = limiterOn(await connect(t));
  const window = { name: 'key', key: fresh('key'), limit: 300, window_ms: minute_ms };
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
  const window = { name: 'key', key: fresh('key'), limit: 100, window_ms: minute_ms };
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
  const { limiter, redis, setTime } = await startClocked(t);
  const window = { name: 'key', key: fresh('look'), limit: 3, window_ms: minute_ms };
  const list = `${stores.redis_prefix}:{limits}:${window.key}`;
  await setTime(start_ms);
  t.same(await limiter.look([window]), [{ left: 3, reset_ms: 0 }]);
  t.equal(await redis.exists(list), 0);
  await limiter.take([window]);
  await setTime(start_ms + 20_000);
  await limiter.take([window]);
  for (let n = 0; n < 5; n += 1) {
    t.same(await limiter.look([window]), [{ left: 1, reset_ms: 40_000 }]);
  }
  await setTime(start_ms + 60_000);
  t.same(await limiter.look([window]), [{ left: 2, reset_ms: 20_000 }]);
  t.equal(await redis.llen(list), 1, 'what grew old is gone');
  t.same(await limiter.look([]), []);
});

t.test('the local windows forget who was not seen for a window, and nobody else', async (t) => {
  const local = makeLocalWindows(1);
  const takeAs = (who: string, now: number) =>
    local.take([{ name: 'key', key: who, limit: 1, window_ms: minute_ms }], now);
  for (let n = 0; n < 100_000; n += 1) takeAs(`early ${n}`, start_ms);
  t.equal(local.size(), 100_000);
  t.match(takeAs('late', start_ms + 1_000), { allowed: true });
  t.equal(local.size(), 100_001, 'all of them still count');
  t.match(takeAs('early 1', start_ms + 1_000), { allowed: false }, 'the door is not open');
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
    t.same(
      taken.map(({ allowed }) => allowed),
      [...Array(share).fill(true), false],
      `${limit} ÷ ${processes}`,
    );
  }
});
