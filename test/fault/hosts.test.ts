import type { Test } from 'tap';
import { makeReasoning } from '../../bench/load/predict-texts.js';
import { isThereHaproxy, no_haproxy } from '../help/balancer.js';
import { poolerOf } from '../help/pgbouncer.js';
import type { Host, TestService } from '../help/service.js';
import { startPrivateStores } from '../help/stores.js';
import { t } from '../help/tap.js';
import { allow, until } from '../help/until.js';
import { startListeners } from './listeners.js';
import {
  activeRelay,
  type Fault,
  type FaultWorld,
  fault_limits,
  is_long,
  startWorld,
  surviveAll,
  whileReading,
} from './world.js';

/**
 * Two hosts (three in the long form) share Postgres and Redis, behind HAProxy with the
 * configuration of `examples/hosts`. Under load, they are killed and restarted one after another.
 */

t.setTimeout(fault_limits.timeout);

const [host_count, followers] = is_long ? [3, 60] : [2, 20];

/** The longest time in ms without a new event during the work. */
const longestGap = async (
  { listeners }: FaultWorld,
  during: () => Promise<unknown>,
): Promise<number> => {
  const [listener] = listeners;
  let count = listener?.heard.length ?? 0;
  let grown_ms = performance.now();
  let longest_ms = 0;
  const timer = setInterval(() => {
    const heard = listener?.heard.length ?? 0;
    longest_ms = Math.max(longest_ms, performance.now() - grown_ms);
    if (heard > count) grown_ms = performance.now();
    count = heard;
  }, 5);
  await during().finally(() => clearInterval(timer));
  return longest_ms;
};

const untilUp = ({ balancer }: TestService): Promise<boolean> =>
  until('every host is up', async () => {
    const states = (await balancer?.states()) ?? [];
    return states.length === host_count && states.every(({ is_up }) => is_up);
  });

/** Open requests and websockets of each host. */
const openOf = async ({ balancer }: TestService): Promise<readonly number[]> =>
  ((await balancer?.states()) ?? []).map(({ open }) => open);

/** Reports the gaps and checks the longest gap. */
const compareGaps = (t: Test, gaps_ms: readonly number[]): void => {
  const max_ms = Math.max(...gaps_ms);
  t.ok(max_ms < allow(2_000), 'events go on within 2 s');
  t.comment(`longest times without an event: ${gaps_ms.join(', ')} ms`);
};

const hostsAreKilled: Fault['strike'] = async (world, t) => {
  const { service, load } = world;
  const gaps_ms: number[] = [];
  for (let kill = 0; kill < (is_long ? 8 : 1); kill += 1) {
    const { host } = await activeRelay(service);
    const gap_ms = await longestGap(world, async () => {
      await host.kill();
      await load.more(150, 60_000);
    });
    gaps_ms.push(Math.round(gap_ms));
    await host.start();
    await untilUp(service);
  }
  compareGaps(t, gaps_ms);
};

/** Kills only the relay, so that a standby takes over. */
const relaysAreKilled: Fault['strike'] = async (world, t) => {
  const gaps_ms: number[] = [];
  for (let kill = 0; kill < 8; kill += 1) {
    const gap_ms = await longestGap(world, async () => {
      process.kill((await activeRelay(world.service)).pid, 'SIGKILL');
      await world.load.more(150, 60_000);
    });
    gaps_ms.push(Math.round(gap_ms));
  }
  compareGaps(t, gaps_ms);
};

const rollingRestart: Fault['strike'] = async (world, t) => {
  const { service, load } = world;
  // Calls that were in progress on a killed host are not counted.
  await load.stop();
  load.resume();
  const first = load.acknowledged.length;
  const before = await openOf(service);
  await whileReading(t, service, async () => {
    for (const host of service.hosts) {
      t.equal(await host.stop(), 0, 'it has stopped in order');
      await host.start();
      await untilUp(service);
    }
  });
  const during = load.acknowledged.slice(first);
  const again = during.filter(({ tries }) => tries > 1);
  t.equal(again.length, 0, `${during.length} predictions, each at the first try`);
  t.equal(load.odd.length, 0, load.odd[0] ?? 'no failed request');
  const least = followers / host_count / 2;
  const after = await until('sockets are spread', async () => {
    const open = await openOf(service);
    return Math.min(...open) >= least && open;
  });
  t.comment(`open at the hosts: ${before.join(', ')} before, ${after.join(', ')} after`);
};

/** Sends the same call to one host and then to another. */
const callTwice = async (t: Test, { hosts, agents, questions }: TestService) => {
  const [one, two] = hosts;
  const call = async (host: Host | undefined, key: string | null, reasoning: string) => {
    const answer = await fetch(`${host?.url}/api/questions/${questions[0]?.id}/predict`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-api-key': agents[0]?.key ?? '',
        ...(key === null ? {} : { 'idempotency-key': key }),
      },
      body: JSON.stringify({ prediction: true, confidence: 80, reasoning }),
    });
    const replayed = answer.headers.get('idempotency-replayed');
    return { status: answer.status, replayed, body: JSON.parse(await answer.text()) };
  };
  const first = await call(one, 'across', makeReasoning(1e6));
  t.match(first, { status: 201, replayed: null });
  t.match(await call(two, 'across', makeReasoning(1e6)), { status: 201, replayed: 'true' });
  const repeated = await call(two, null, makeReasoning(1e6));
  t.equal(repeated.body.prediction.id, first.body.prediction.id, 'the same body');
  t.match(await call(two, null, makeReasoning(2e6)), { status: 409 });
};

const register = async (host: Host | undefined): Promise<number> => {
  const answer = await fetch(`${host?.url}/api/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-forwarded-for': '198.51.100.7' },
    body: JSON.stringify({ name: `Over hosts ${Math.random()}`, model: 'gpt-4o' }),
  });
  return answer.status;
};

const skip = isThereHaproxy() ? false : no_haproxy;

t.test('several hosts', { ...fault_limits, skip }, async (t) => {
  const stores = await startPrivateStores(t);
  const env = {
    DATABASE_URL: await poolerOf(t, stores.database_url),
    REDIS_URL: stores.redis_url,
    DRAIN_DELAY_S: '1',
    SOCKET_LIFETIME_S: '6',
    LIMIT_REGISTER: '4',
    // At this level, the log says which relay is active.
    LOG_LEVEL: 'info',
  };
  const over = await startWorld(t, { env, stores, hosts: host_count, followers });
  const { service } = over;
  const at_hosts = service.hosts.flatMap((host) => startListeners(t, host.url, []));
  const world = { ...over, listeners: [...over.listeners, ...at_hosts] };

  await t.test('limits are those of all hosts together', async (t) => {
    const [one, two] = service.hosts;
    const answers: number[] = [];
    for (const host of [one, two, one, two, one, two]) answers.push(await register(host));
    t.same(answers, [201, 201, 201, 201, 429, 429]);
  });
  await surviveAll(t, world, {
    'the host whose relay is active is killed': { strike: hostsAreKilled },
    ...(is_long ? { 'relays are killed': { strike: relaysAreKilled } } : {}),
    'hosts are restarted one after the other': { strike: rollingRestart },
  });
  await t.test('a call that is repeated to another host', (t) => callTwice(t, service));
});
