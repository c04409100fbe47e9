import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type Answered, startApp } from '../../help/app.js';
import { startStopwatch } from '../../help/stopwatch.js';
import { openStores, startPrivateStores, type Teardown } from '../../help/stores.js';
import { makeAgent, makeHuman } from '../../help/story.js';
import { t } from '../../help/tap.js';
import type { HammerAsk, Shot } from './limiter-child.js';

/** Limits under eight parallel clients of two api processes are exact, even at window edges. */

const stores = await openStores(t);
const child = fileURLToPath(new URL('./limiter-child.js', import.meta.url));

const startHammer = async (t: Teardown) => {
  const running = fork(child);
  t.teardown(() => running.kill('SIGKILL'));
  await once(running, 'message');
  return async (ask: HammerAsk): Promise<readonly Shot[]> => {
    const message = once(running, 'message');
    running.send(ask);
    const [shots] = (await message) as [readonly Shot[]];
    return shots;
  };
};

/** A tolerance, because several processes read the clock and Redis counts whole milliseconds. */
const slack_ms = 3;

/**
 * Counts runs of limit + 1 consecutive admissions that certainly fall within one window. Each may
 * have been admitted at any moment of its call.
 */
const findExcess = (shots: readonly Shot[], { limit, window_ms }: HammerAsk): number => {
  const admitted = shots.filter(({ allowed }) => allowed).sort((a, b) => a.got - b.got);
  let excess = 0;
  for (let last = limit; last < admitted.length; last += 1) {
    const group = admitted.slice(last - limit, last + 1);
    const first_sent = Math.min(...group.map(({ sent }) => sent));
    const last_got = Math.max(...group.map(({ got }) => got));
    if (last_got - first_sent < window_ms - slack_ms) excess += 1;
  }
  return excess;
};

/** Counts refusals at times when the window certainly held fewer calls than the limit. */
const findUndue = (shots: readonly Shot[], { limit, window_ms }: HammerAsk): number => {
  const admitted = shots.filter(({ allowed }) => allowed);
  return shots.filter(({ allowed, sent, got }) => {
    if (allowed) return false;
    const could_count = admitted.filter(
      (one) => one.got > sent - window_ms - slack_ms && one.sent < got + slack_ms,
    );
    return could_count.length < limit;
  }).length;
};

t.test('in no sliding window more than the limit, and nothing is refused below it', async (t) => {
  const hammers = [await startHammer(t), await startHammer(t)];
  for (const [round, [limit, window_ms]] of [
    [1, 60],
    [7, 120],
    [40, 250],
  ].entries()) {
    const ask: HammerAsk = {
      redis_url: stores.redis_url,
      prefix: stores.redis_prefix,
      key: `race:${round}`,
      limit: limit ?? 0,
      window_ms: window_ms ?? 0,
      clients: 4,
      for_ms: 1_500,
    };
    const shots = (await Promise.all(hammers.map((hammer) => hammer(ask)))).flat();
    const admitted = shots.filter(({ allowed }) => allowed).length;
    const refused = shots.length - admitted;
    // The number of calls depends on the machine, so the checks below look at each single answer.
    t.ok(refused > 0 && admitted >= ask.limit, `${refused} refused, ${admitted} admitted`);
    t.equal(findExcess(shots, ask), 0, 'more than the limit');
    t.equal(findUndue(shots, ask), 0, 'refused below the limit');
    const odd = shots.filter(({ allowed, left, retry_ms }) =>
      allowed
        ? left < 0 || left >= ask.limit
        : left !== 0 || retry_ms < 1 || retry_ms > ask.window_ms,
    );
    t.same(odd.slice(0, 3), [], 'what is told of the calls left, and when to come back');
  }
});

t.test('the checks of this test find excess and undue refusals', async (t) => {
  const ask = { limit: 2, window_ms: 100 } as HammerAsk;
  const shot = (at: number, allowed: boolean): Shot => ({
    sent: at,
    got: at + 1,
    allowed,
    left: 0,
    retry_ms: 1,
  });
  t.equal(findExcess([shot(0, true), shot(10, true), shot(90, true)], ask), 1);
  t.equal(findExcess([shot(0, true), shot(10, true), shot(101, true)], ask), 0);
  t.equal(findUndue([shot(0, true), shot(10, true), shot(150, false)], ask), 1);
  t.equal(findUndue([shot(0, true), shot(10, true), shot(90, false)], ask), 0);
});

interface Header {
  readonly left: number;
  readonly reset_s: number;
}

const readHeader = ({ headers }: Answered, name: string): Header => {
  const found = new RegExp(`"${name}";r=(\\d+);t=(\\d+)`).exec(headers.get('ratelimit') ?? '');
  return { left: Number(found?.[1] ?? -1), reset_s: Number(found?.[2] ?? -1) };
};

t.test('eight clients of two api processes share one limit, and the headers say it', async (t) => {
  const limit = 25;
  const env = { LIMIT_WEBHOOKS: String(limit), LIMIT_KEY: '1000', LIMIT_IP: '5000' };
  const options = { roles: ['api'] as const, stores, env };
  const apps = [await startApp(t, options), await startApp(t, options)];
  const agent = await makeAgent(apps[0]!, { human: await makeHuman(apps[0]!) });
  const answers: Answered[] = [];
  const work = async (n: number): Promise<void> => {
    for (let turn = 0; turn < 8; turn += 1) {
      const one = apps[n % 2]!;
      answers.push(await one.call('POST', '/api/webhooks', { key: agent.key, body: {} }));
    }
  };
  await Promise.all(Array.from({ length: 8 }, (_, n) => work(n)));
  const refused = answers.filter(({ status }) => status === 429);
  const admitted = answers.filter(({ status }) => status === 400);
  t.equal(admitted.length, limit, 'the limit, not one more or less');
  t.equal(refused.length, 64 - limit);
  t.same(
    admitted.map((one) => readHeader(one, 'webhooks').left).sort((a, b) => b - a),
    Array.from({ length: limit }, (_, n) => limit - 1 - n),
    'each of them was told another number of calls left',
  );
  for (const one of answers) {
    const policy = '"ip";q=5000;w=60, "key";q=1000;w=60, "webhooks";q=25;w=60';
    t.equal(one.headers.get('ratelimit-policy'), policy);
    const { reset_s } = readHeader(one, 'webhooks');
    t.ok(reset_s >= 0 && reset_s <= 60, `${reset_s} s`);
  }
  for (const one of refused) {
    t.match(one.body, { code: 'RATE_LIMITED', status: 429, retryable: true });
    t.match(one.headers.get('retry-after'), /^(?:[1-9]|[1-5]\d|60)$/);
    t.equal(readHeader(one, 'webhooks').left, 0);
  }
  const { body } = await apps[1]!.call('GET', '/api/limits', { key: agent.key });
  const left = Object.fromEntries(
    (body.limits as { name: string; left: number }[]).map((one) => [one.name, one.left]),
  );
  t.equal(left['key'], 1_000 - limit - 1, 'refusals consume nothing of any other limit');
  t.equal(left['webhooks'], 0);
});

t.test('without Redis each api process admits its share, at once', async (t) => {
  const own = await startPrivateStores(t, { durable: false });
  const env = { LIMIT_REGISTER: '9', API_PROCESSES: '4' };
  const app = await startApp(t, { roles: ['api'], stores: own, env });
  await own.redis.kill();
  const statuses: number[] = [];
  const readWatch = startStopwatch();
  for (let n = 0; n < 6; n += 1) {
    statuses.push((await app.call('POST', '/api/register', { body: {} })).status);
  }
  t.same(statuses, [400, 400, 429, 429, 429, 429], '9 ÷ 4');
  t.ok(readWatch() < 3_000, 'and nobody waits for Redis');
});
