import { setTimeout as wait } from 'node:timers/promises';
import { type Test, t } from 'tap';
import { parentOf } from '../src/boot/processes.mjs';
import { startListeners } from './fault/listeners.js';
import { awaitTruth, countRepeats, deliveredIds } from './fault/truth.js';
import { type FaultWorld, startWorld } from './fault/world.js';
import { startFaultyProxy } from './help/faulty-proxy.js';
import { makeLoad } from './help/load.js';
import { makeRandom, readNumbers } from './help/long-run.js';
import { type Host, startMoreRoles } from './help/service.js';
import { withoutSmallDisks } from './help/small-disk.js';
import { startCalls } from './soak/calls.js';
import { listFaults } from './soak/faults.js';
import { watchMemory } from './soak/memory.js';

/**
 * `npm run soak -- [--minutes N] [--seed N]`: two hosts on the stores of the first one, under
 * predictions, comments, votes, reads, sockets and webhooks. Random faults strike one after
 * another. Kinds that end a process of the service strike only once. The run lasts until the time
 * is up and every kind has struck. At the end, everything acknowledged exists exactly once,
 * everything agrees with Postgres, and the memory of surviving processes has not grown.
 */

const { minutes, seed } = readNumbers('soak', { minutes: 30, seed: 1 + (Date.now() % 1_000_000) });
/** The longest pause between two faults. */
const rest_ms = 20_000;
const predictions_per_second = 25;
const recovery_ms = 90_000;
/** Once a role was watched this long after its warm-up, its growth may be at most `max_slope`. */
const judged_min = 10;
const max_slope = 1;
/** Within the warm-up, caches fill and the heap reaches its size. Further growth is a leak. */
const small_memory = { ORIGINALITY_MB: '8', PROCESS_HEAP_MB: '160' };
const roles = ['api', 'relay', 'signer', 'timer'] as const;

const random = makeRandom(seed);

const shuffle = <T>(all: readonly T[]): T[] =>
  all
    .map((one) => ({ one, at: random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ one }) => one);

const table = (t: Test, rows: readonly (readonly string[])[]): void => {
  const widths = rows[0]?.map((_, n) => Math.max(...rows.map((row) => row[n]?.length ?? 0))) ?? [];
  for (const row of rows) {
    t.comment(
      row
        .map((cell, n) => (n === 0 ? cell.padEnd(widths[n]!) : cell.padStart(widths[n]!)))
        .join('  '),
    );
  }
};

/** These strike only once. Processes then live on, so that their memory can be judged. */
const ends_processes = /^(api|relay|signer|timer) killed|a role stands|host (killed|sleeps)/;

/** Strikes random faults until the time is up and each kind has struck. Returns the counts. */
const strikeUntil = async (
  t: Test,
  end_ms: number,
  faults: ReturnType<typeof listFaults>,
): Promise<ReadonlyMap<string, number>> => {
  const drawn = new Map(Object.keys(faults).map((name) => [name, 0]));
  const rest = Math.min(rest_ms, (minutes * 60_000) / drawn.size / 2);
  const began_ms = performance.now();
  let deck: string[] = [];
  while (performance.now() < end_ms || [...drawn.values()].includes(0)) {
    await wait(rest * (0.2 + 0.8 * random()));
    if (deck.length === 0) {
      const names = [...drawn.keys()];
      deck = shuffle(names.filter((name) => drawn.get(name) === 0 || !ends_processes.test(name)));
    }
    const name = deck.pop() ?? '';
    const from_ms = performance.now();
    try {
      await faults[name]?.();
    } catch (error) {
      t.fail(`${name}: ${String(error)}`);
      return drawn;
    }
    drawn.set(name, (drawn.get(name) ?? 0) + 1);
    const seconds = (ms: number): string => (ms / 1_000).toFixed(1);
    t.comment(
      `${seconds(from_ms - began_ms)} s: ${name}, ${seconds(performance.now() - from_ms)} s`,
    );
  }
  return drawn;
};

/** Refused deliveries wait for minutes. At the end they are made due immediately. */
const makeDue = async ({ service: { sql } }: FaultWorld): Promise<void> => {
  await sql`update webhooks set paused_until = now() where paused_until > now()`;
  await sql`update deliveries set next_at = now() where state = 'waiting' and next_at > now()`;
};

t.setTimeout(0);
t.test(`${minutes} minutes, seed ${seed}`, { timeout: 0 }, async (t) => {
  const is_small = withoutSmallDisks() === false;
  const first_world = await startWorld(t, {
    agents: 500,
    questions: 100,
    followers: 20,
    env: { LIMIT_COMMENTS: '100000000', LIMIT_VOTES: '100000000', ...small_memory },
    ...(is_small ? { small_disks: { '': 1_500, log: 64 } } : {}),
  });
  const { service } = first_world;
  const [postgres, redis] = await Promise.all([
    startFaultyProxy(t, service.database_url),
    startFaultyProxy(t, service.redis_url),
  ]);
  const by_proxies = { ...service, database_url: postgres.url, redis_url: redis.url };
  const second = await startMoreRoles(t, by_proxies, roles);
  const hosts: readonly [Host, Host] = [service.hosts[0]!, second];
  const spread = {
    agents: service.agents.slice(1),
    questions: service.questions,
    get url() {
      return hosts[random() < 0.5 ? 0 : 1].url;
    },
  };
  const world: FaultWorld = {
    ...first_world,
    load: makeLoad(spread),
    listeners: [...first_world.listeners, ...startListeners(t, second.url, [])],
  };
  const calls = startCalls(
    Object.defineProperty(
      { ...spread, agents: service.agents, acknowledged: world.load.acknowledged, random },
      'url',
      { get: () => spread.url },
    ),
  );
  const pidsOf = (role: (typeof roles)[number]) => hosts.flatMap((host) => host.pidsOf(role));
  const grown = watchMemory(t, {
    ...Object.fromEntries(roles.map((role) => [role, () => pidsOf(role)])),
    supervisor: () => pidsOf('api').map((pid) => parentOf(pid) ?? 0),
  });

  world.load.resume(predictions_per_second);
  await world.load.more(50);
  calls.resume();
  const faults = listFaults({ world, hosts, postgres, redis, random });
  const drawn = await strikeUntil(t, performance.now() + minutes * 60_000, faults);
  await Promise.all([calls.stop(), world.load.stop()]);

  await makeDue(world);
  await awaitTruth(t, world, recovery_ms);
  await awaitTruth(t, { ...world, service: { ...service, url: second.url } }, recovery_ms);
  t.same(await calls.findWrong(service.sql), [], 'comments and votes are those acknowledged');
  const logged = (min_level: number) =>
    hosts.flatMap((host) => host.log()).filter(({ level }) => level >= min_level);
  const ended = logged(60);
  t.same(ended, [], 'no process died of an error');

  table(t, [['fault', 'drawn'], ...[...drawn].map(([name, n]) => [name, String(n)])]);
  const { acknowledged } = world.load;
  const heard = world.listeners.reduce((sum, listener) => sum + listener.heard.length, 0);
  table(t, [
    ['call', 'count'],
    ['predictions acknowledged', String(acknowledged.length)],
    ['of them sent again', String(acknowledged.filter(({ tries }) => tries > 1).length)],
    ...[...calls.counts].sort().map(([name, n]) => [name, String(n)]),
    ['events to listeners', String(heard)],
    [
      'connections of listeners ended',
      String(world.listeners.reduce((n, { ends }) => n + ends, 0)),
    ],
    ['deliveries', String(deliveredIds(world).length)],
    ['of them repeated', String(countRepeats(world))],
  ]);
  const growth = grown();
  table(t, [
    ['role', 'processes', 'minutes', 'most MB', 'MB/min'],
    ...growth.map(({ role, series, watched_min, max_mb, slope }) => [
      role,
      String(series),
      watched_min.toFixed(1),
      max_mb.toFixed(0),
      slope.toFixed(2),
    ]),
  ]);
  for (const { role, longest } of growth) {
    t.comment(`${role}, MB at each minute: ${longest.map((mb) => mb.toFixed(0)).join(' ')}`);
  }
  for (const { role, watched_min, slope } of growth) {
    if (watched_min < judged_min) t.comment(`${role}: watched too short to judge its slope`);
    else t.ok(slope <= max_slope, `${role} grows by ${slope.toFixed(2)} MB a minute`);
  }
  const lines = logged(50).map(({ role, msg, err }) => JSON.stringify({ role, msg, err }));
  for (const line of new Set(lines)) t.comment(line.slice(0, 400));
});
