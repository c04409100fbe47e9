import { setTimeout as wait } from 'node:timers/promises';
import type { Sql } from '../../src/db/client.js';
import { type FaultWorld, streamLosses } from '../fault/world.js';
import type { startFaultyProxy } from '../help/faulty-proxy.js';
import { openAdmin } from '../help/own-stores.js';
import { type Host, type Part, whileReadOnly } from '../help/service.js';
import { until } from '../help/until.js';

/**
 * The faults of `test/fault`, one at a time. A fault is over when its promise resolves. The first
 * host runs the stores, and the second one reaches them through proxies.
 */

type Proxy = Awaited<ReturnType<typeof startFaultyProxy>>;

export interface Struck {
  readonly world: FaultWorld;
  readonly hosts: readonly [Host, Host];
  readonly postgres: Proxy;
  readonly redis: Proxy;
  readonly random: () => number;
}

const roles = ['api', 'relay', 'signer', 'timer'] as const;
/** Failed deliveries are retried after at least 5 s. */
const receiver_ms = 6_000;
/** More connections than Postgres allows. */
const max_connections = 250;

const isWell = async ({ url }: Host): Promise<boolean> =>
  fetch(`${url}/health`, { signal: AbortSignal.timeout(2_000) }).then(
    (answer) => answer.ok,
    () => false,
  );

const untilReplaced = async (host: Host, role: Part, pid: number): Promise<void> => {
  const isReplaced = async (): Promise<boolean> => {
    const pids = host.pidsOf(role);
    return pids.length > 0 && !pids.includes(pid) && (role !== 'api' || (await isWell(host)));
  };
  await until(`another ${role}`, isReplaced, 60_000, 100);
};

/** Takes every free connection, ends and takes all others, and releases all after a while. */
const takeConnections = async ({ world }: Struck, ms: number): Promise<void> => {
  const { database_url } = world.service;
  // Connects while there are free connections. It does not end its own connection.
  const killer = openAdmin(database_url);
  await killer`select`;
  const taken: Sql[] = [];
  const take = async (): Promise<boolean> => {
    const one = openAdmin(database_url);
    try {
      await one`select`;
      taken.push(one);
      return true;
    } catch {
      await one.end({ timeout: 1 }).catch(() => undefined);
      return false;
    }
  };
  const end_ms = performance.now() + ms;
  while (taken.length < max_connections && (await take()));
  await killer`
    select pg_terminate_backend(pid) from pg_stat_activity
    where application_name like 'prediction-forum %' and application_name not like '% test'`;
  while (performance.now() < end_ms) if (!(await take())) await wait(20);
  await Promise.all([killer, ...taken].map((one) => one.end({ timeout: 1 })));
};

/** The faults by name, as shown in the table of a run. */
export const listFaults = (struck: Struck): Readonly<Record<string, () => Promise<unknown>>> => {
  const { world, hosts, postgres, redis, random } = struck;
  const { service, receiver, hook } = world;
  const between = (from: number, to: number): number => from + random() * (to - from);
  const pickHost = (): Host => hosts[random() < 0.5 ? 0 : 1];

  const killRole = async (role: Part): Promise<void> => {
    const host = pickHost();
    const pid = await until(`a ${role}`, () => host.pidsOf(role)[0]);
    process.kill(pid, 'SIGKILL');
    await untilReplaced(host, role, pid);
  };
  const pausePart = async (part: Part, ms: number): Promise<void> => {
    const wake = service.pause(part);
    await wait(ms);
    wake();
  };
  /** Pauses a role process, which its supervisor replaces after a few seconds. */
  const pauseRole = async (): Promise<void> => {
    const host = pickHost();
    const role = roles[Math.floor(random() * roles.length)] ?? 'api';
    const pid = await until(`a ${role}`, () => host.pidsOf(role)[0]);
    process.kill(pid, 'SIGSTOP');
    await untilReplaced(host, role, pid);
  };
  const pauseHost = async (host: Host, ms: number): Promise<void> => {
    const wake = host.pause();
    await wait(ms);
    wake();
    await until('it is well', () => isWell(host), 60_000, 100);
  };
  const withProxy = async (fault: () => void, ms: number, heal = (): void => undefined) => {
    fault();
    await wait(ms);
    heal();
  };
  const fillDisks = async (names: readonly string[]): Promise<void> => {
    const disks = names.map((name) => service.disks[name]);
    for (const disk of disks) disk?.fill();
    await wait(between(1_000, 4_000));
    for (const disk of disks) disk?.free();
  };
  const answerWith = async (answers: Parameters<typeof receiver.script>[1][]): Promise<void> => {
    receiver.script(hook.path, ...answers);
    await wait(receiver_ms);
  };
  const isStored = async (): Promise<void> => {
    await world.load.more(5, 60_000);
  };

  return {
    ...Object.fromEntries(roles.map((role) => [`${role} killed`, () => killRole(role)])),
    'a role stands still': pauseRole,
    'the second host killed': async () => {
      await hosts[1].kill();
      await hosts[1].start();
    },
    'the second host sleeps': () => pauseHost(hosts[1], between(2_000, 25_000)),
    'the first host sleeps, and the stores': () => pauseHost(hosts[0], between(500, 6_000)),
    'Postgres killed': () => service.kill('Postgres'),
    'Postgres stands still': () => pausePart('Postgres', between(500, 7_000)),
    'Postgres is read-only': async () => {
      await whileReadOnly(service, () => wait(between(1_000, 4_000)));
      await isStored();
    },
    'Postgres is out of connections': () => takeConnections(struck, between(2_000, 4_000)),
    'Redis killed': () => service.kill('Redis'),
    'Redis killed, and back empty': () => service.kill('Redis', { empty: true }),
    'Redis stands still': () => pausePart('Redis', between(500, 7_000)),
    'Redis emptied': () => service.redis.flushall(),
    'the stream lost': async () => {
      const losses = streamLosses(service);
      await losses[Math.floor(random() * losses.length)]?.().catch(() => undefined);
    },
    'connections to Postgres cut': () => withProxy(postgres.cut, 500),
    'connections to Postgres half-open': () => withProxy(postgres.silence, 3_000),
    'Postgres cannot be reached': () =>
      withProxy(postgres.silenceAll, between(1_000, 8_000), postgres.heal),
    'connections to Redis cut': () => withProxy(redis.cut, 500),
    'connections to Redis half-open': () => withProxy(redis.silence, 3_000),
    'Redis cannot be reached': () => withProxy(redis.silenceAll, between(1_000, 8_000), redis.heal),
    'the receiver refuses': () =>
      answerWith(Array.from({ length: 30 }, (_, n) => ({ status: n % 2 === 0 ? 500 : 503 }))),
    'the receiver stalls': () => answerWith(Array.from({ length: 5 }, () => () => undefined)),
    'the receiver hangs up': () =>
      answerWith(Array.from({ length: 20 }, () => (response) => response.destroy())),
    ...(Object.keys(service.disks).length === 0
      ? {}
      : {
          'the disk of the log is full': () => fillDisks(['log']),
          'the disk of the data is full': async () => {
            await fillDisks(['', 'log']);
            await isStored();
          },
        }),
  };
};
