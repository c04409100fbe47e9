import { pino } from 'pino';
import { t } from 'tap';
import { createLeases, type Lease, type Leases } from '../../src/kit/limit-leases.js';
import { createLimiter, type Window } from '../../src/kit/limits.js';
import { closeRedis, connectRedis, openRedis } from '../../src/kit/redis/client.js';
import { openStores } from '../help/stores.js';
import { until } from '../help/until.js';

/** Calls that are lent ahead: never more than the limit, and what is not used comes back. */

const stores = await openStores(t);
const log = pino({ level: 'silent' });
const redis = openRedis({
  ...{ url: stores.redis_url, name: 'leases', log, command_timeout_ms: 5_000 },
});
await connectRedis(redis);
t.teardown(() => closeRedis(redis));
const prefix = stores.redis_prefix;
const limiter = createLimiter({ redis, prefix, processes: 1, log, patience_ms: 5_000 });
t.teardown(() => limiter.stop());

const windowOf = (key: string, limit: number): Window => ({
  ...{ name: 'ip', key, limit, window_ms: 60_000 },
});
const listOf = (key: string): Promise<string[]> => redis.lrange(`${prefix}:{limits}:${key}`, 0, -1);

const openLeases = (): Leases => {
  const leases = createLeases({ redis, prefix });
  t.teardown(() => leases.stop());
  return leases;
};

/** Takes what is lent until something is; then how much was taken. */
const takeSome = (leases: Leases, lease: Lease) =>
  until('a call that is lent', async () => {
    let taken = 0;
    for (let call = 0; call < 20; call += 1) if (leases.take(lease, performance.now())) taken += 1;
    return taken;
  });

const isSorted = (times: readonly string[]): boolean =>
  times.every((time, n) => n === 0 || Number(time) >= Number(times[n - 1]));

t.test('who asks seldom is lent nothing', async (t) => {
  const leases = openLeases();
  const lease = leases.open('seldom', windowOf('seldom', 1_000));
  for (let call = 0; call < 7; call += 1) t.notOk(leases.take(lease, performance.now()));
  await redis.ping();
  t.same(await listOf('seldom'), []);
});

t.test('what is lent and not used is given back', async (t) => {
  const leases = openLeases();
  const lease = leases.open('back', windowOf('back', 1_000));
  const taken = await takeSome(leases, lease);
  t.ok(leases.isLent(lease, performance.now()) || lease.lots.length === 0);
  await until('all to be given back', async () => (await listOf('back')).length === taken);
  t.notOk(leases.isLent(lease, performance.now()));
});

t.test('lent calls and single ones together never pass the limit, and reach it', async (t) => {
  const limit = 300;
  const window = windowOf('both', limit);
  const both = [openLeases(), openLeases()].map((leases) => ({
    ...{ leases, lease: leases.open('both', window) },
  }));
  let admitted = 0;
  let refused = 0;
  const deadline = Date.now() + 40_000;
  // A refusal is the last word only when nothing is lent any more.
  while (refused < 20 && Date.now() < deadline) {
    for (const { leases, lease } of both) {
      for (let call = 0; call < 12; call += 1) {
        if (leases.take(lease, performance.now())) admitted += 1;
      }
      const { allowed } = await limiter.take([window]);
      if (allowed) admitted += 1;
      const is_over = both.every((one) => one.lease.lots.length === 0 && !one.lease.is_asking);
      refused = allowed || !is_over ? 0 : refused + 1;
    }
    const times = await listOf('both');
    if (times.length > limit) t.fail(`${times.length} calls in a window of ${limit}`);
    if (!isSorted(times)) t.fail('times out of order');
  }
  t.equal(admitted, limit);
  t.equal((await listOf('both')).length, limit);
});

t.test('near its limit nobody is lent anything', async (t) => {
  const leases = openLeases();
  const lease = leases.open('near', windowOf('near', 31));
  for (let call = 0; call < 40; call += 1) {
    t.notOk(leases.take(lease, performance.now()));
    await redis.ping();
  }
  t.same(await listOf('near'), []);
});

t.test('what is shown is what is left, and counts what is lent as left', async (t) => {
  const leases = openLeases();
  const lease = leases.open('shown', windowOf('shown', 1_000));
  const taken = await takeSome(leases, lease);
  const [, policy, left] =
    /^\r\nRateLimit-Policy: (.*)\r\nRateLimit: "ip";r=(\d+);t=\d+$/.exec(
      lease.shown(performance.now()),
    ) ?? [];
  t.equal(Number(left), 1_000 - taken);
  t.equal(policy, '"ip";q=1000;w=60');
});
