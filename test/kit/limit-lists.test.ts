import fc from 'fast-check';
import { t } from 'tap';
import type { Window } from '../../src/kit/limits.js';
import { makeLocalWindows } from '../../src/kit/local-windows.js';
import { fresh, makeLimiters } from '../help/limiters.js';
import { holds } from '../help/property.js';
import { openStores } from '../help/stores.js';

/** What a process remembers of lists in Redis: right or wrong, the limits are exact. */

const stores = await openStores(t);
const { connect, limiterOn, startClocked } = makeLimiters(stores);
const minute_ms = 60_000;
const start_ms = 1_700_000_000_123;

const windowOf = (name: string, limit: number): Window => ({
  name,
  key: fresh(name),
  limit,
  window_ms: minute_ms,
});

const listOf = ({ key }: Window): string => `${stores.redis_prefix}:{limits}:${key}`;

t.test('what another process took counts, and the caller is told', async (t) => {
  const [one, other] = [limiterOn(await connect(t)), limiterOn(await connect(t))];
  const window = windowOf('key', 10);
  for (const left of [9, 8]) t.match(await one.take([window]), { left: [left] });
  for (const left of [7, 6]) t.match(await other.take([window]), { left: [left] });
  t.match(await one.take([window]), { allowed: true, left: [5] });
  t.match(await other.take([window]), { allowed: true, left: [4] });
});

t.test('where another process took the last one, nothing is taken in any window', async (t) => {
  const redis = await connect(t);
  const [one, other] = [limiterOn(redis), limiterOn(await connect(t))];
  const [wide, narrow] = [windowOf('key', 10), windowOf('predictions', 3)];
  await one.take([wide, narrow]);
  await one.take([wide, narrow]);
  await other.take([narrow]);
  t.match(await one.take([wide, narrow]), { allowed: false, refused: 1, left: [8, 0] });
  t.equal(await redis.llen(listOf(wide)), 2);
  t.equal(await redis.llen(listOf(narrow)), 3);
  t.match(await one.take([wide]), { allowed: true, left: [7] });
});

t.test('of many callers at once only the one who is at the limit is refused', async (t) => {
  const [one, other] = [limiterOn(await connect(t)), limiterOn(await connect(t))];
  const shared = windowOf('ip', 1_000);
  const callers = Array.from({ length: 20 }, () => [shared, windowOf('predictions', 2)]);
  await Promise.all(callers.map((windows) => one.take(windows)));
  await other.take(callers[7] ?? []);
  const taken = await Promise.all(callers.map((windows) => one.take(windows)));
  t.same(
    taken.flatMap(({ allowed }, n) => (allowed ? [] : [n])),
    [7],
  );
  t.match(await one.look([shared]), [{ left: 1_000 - 40 }]);
});

t.test('a list that Redis lost begins anew, and gets an end', async (t) => {
  const redis = await connect(t);
  const limiter = limiterOn(redis);
  const window = windowOf('key', 10);
  for (let n = 0; n < 3; n += 1) await limiter.take([window]);
  await redis.del(listOf(window));
  t.match(await limiter.take([window]), { allowed: true, left: [9] });
  t.ok((await redis.pttl(listOf(window))) > minute_ms);
  t.match(await limiter.take([window]), { allowed: true, left: [8] });
});

t.test('nothing comes before calls that were lent meanwhile', async (t) => {
  const redis = await connect(t);
  const limiter = limiterOn(redis);
  const window = windowOf('ip', 10);
  for (let n = 0; n < 2; n += 1) await limiter.take([window]);
  const lent_ms = Date.now() + 30_000;
  await redis.rpush(listOf(window), lent_ms);
  for (const left of [6, 5]) t.match(await limiter.take([window]), { left: [left] });
  const times = (await redis.lrange(listOf(window), 0, -1)).map(Number);
  t.same(times.slice(2), [lent_ms, lent_ms, lent_ms]);
});

t.test('two processes and the model in memory agree on any course of calls', async (t) => {
  const clock = fresh('c');
  const both = [await startClocked(t, clock), await startClocked(t, clock)] as const;
  const step = fc.record({
    pause_ms: fc.constantFrom(0, 1, 500, 30_000, minute_ms - 1, minute_ms),
    process: fc.constantFrom(0, 1),
    calls: fc.array(fc.uniqueArray(fc.nat(2), { minLength: 1 }), { minLength: 1, maxLength: 4 }),
    given_back: fc.boolean(),
  });
  const property = fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
    const model = makeLocalWindows(1);
    const windows = [windowOf('a', 3), windowOf('b', 5), windowOf('c', 9)] as const;
    let now = start_ms;
    for (const { pause_ms, process, calls, given_back } of steps) {
      const { limiter, setTime } = both[process as 0 | 1];
      now += pause_ms;
      await setTime(now);
      const asked = calls.map((call) => call.map((n) => windows[n as 0 | 1 | 2]));
      const taken = await Promise.all(asked.map((some) => limiter.take(some)));
      const expected = asked.map((some) => ({ ...model.take(some, now), is_local: false }));
      if (JSON.stringify(taken) !== JSON.stringify(expected)) {
        throw new Error(`${JSON.stringify(taken)} is not ${JSON.stringify(expected)}`);
      }
      const [some, one] = [asked[0], taken[0]];
      if (!given_back || some === undefined || one?.allowed !== true) continue;
      await limiter.giveBack(some, one);
      model.giveBack(some, one);
    }
  });
  await holds(t, property, { numRuns: 300 });
});
