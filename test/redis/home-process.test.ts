import { pino } from 'pino';
import type { Test } from 'tap';
import { closeRedis, connectRedis, openRedis } from '../../src/redis/client.js';
import { createHomeProcesses, homeOf, homesAmong } from '../../src/redis/home-process.js';
import { openStores } from '../help/stores.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

const { redis_url, redis_prefix } = await openStores(t);
const log = pino({ level: 'silent' });

interface Done {
  readonly by: number;
  readonly tried: boolean;
}

/** A process that shares one kind of work. Each result names the process that did the work. */
const startProcess = async (t: Test, prefix: string, index: number, is_away = false) => {
  const open = async (subscribes: boolean) => {
    const options = { command_timeout_ms: subscribes ? 0 : 1_000, subscribes };
    const redis = openRedis({ url: redis_url, name: 'test', log, ...options });
    t.teardown(() => closeRedis(redis));
    if (!(subscribes && is_away)) await connectRedis(redis);
    return redis;
  };
  const subscriber = await open(true);
  const homes = createHomeProcesses({
    redis: await open(false),
    openSubscriber: async () => subscriber,
    prefix,
    log,
    index,
    clock: () => new Date(),
  });
  let gate = Promise.resolve();
  let begun = 0;
  const handed = homes.onHome<{ readonly subject: string; readonly fails?: number }, Done>({
    name: 'task',
    subjectOf: ({ subject }) => subject,
    async run({ fails }, tried_ms) {
      begun += 1;
      await gate;
      if (fails === index) throw new Error('it fails here');
      return { by: index, tried: tried_ms !== null };
    },
  });
  await homes.start();
  t.teardown(() => homes.stop());
  return {
    handed,
    homes,
    subscriber,
    begun: () => begun,
    /** Blocks work until the returned function is called. */
    hold(): () => void {
      let release = (): void => undefined;
      gate = new Promise((resolve) => {
        release = resolve;
      });
      return () => release();
    },
  };
};

let prefixes = 0;

const startTwo = async (t: Test) => {
  const prefix = `${redis_prefix}:${prefixes++}`;
  const first = await startProcess(t, prefix, 0);
  const second = await startProcess(t, prefix, 1);
  await until(
    'the first process owns',
    async () => (await second.handed({ subject: 'a' })).by === 0,
  );
  return { first, second };
};

t.test('the first process of a host runs the tasks of all', async (t) => {
  const { first, second } = await startTwo(t);
  t.same(await first.handed({ subject: 'b' }), { by: 0, tried: false });
  const all = Array.from({ length: 100 }, (_, n) => second.handed({ subject: `${n}` }));
  t.same(new Set((await Promise.all(all)).map(({ by }) => by)), new Set([0]));
});

t.test('a task that fails at its home runs in the calling process', async (t) => {
  const { second } = await startTwo(t);
  t.same(await second.handed({ subject: 'a', fails: 0 }), { by: 1, tried: true });
  t.same(await second.handed({ subject: 'a', fails: 1 }), { by: 0, tried: false });
});

t.test('a home that stops finishes its tasks, and then others run them', async (t) => {
  const { first, second } = await startTwo(t);
  const release = first.hold();
  const before = first.begun();
  const handed = second.handed({ subject: 'a' });
  await until('the home works', () => first.begun() > before);
  const stopped = first.homes.stop();
  release();
  t.same(await handed, { by: 0, tried: false });
  await stopped;
  t.same((await second.handed({ subject: 'a' })).by, 1);
  t.ok(second.homes.isHere('a'), 'the only process left');
});

t.test('a home that is gone or frozen delays no task for long', async (t) => {
  const { first, second } = await startTwo(t);
  first.subscriber.disconnect();
  t.same(await second.handed({ subject: 'a' }), { by: 1, tried: true }, 'nobody hears it');
  const still = await startTwo(t);
  const release = still.first.hold();
  const began = performance.now();
  t.same(await still.second.handed({ subject: 'a' }), { by: 1, tried: true });
  t.ok(performance.now() - began < 8_000, 'well before a call is late');
  release();
});

t.test('a process that started without Redis becomes a home when Redis is back', async (t) => {
  const prefix = `${redis_prefix}:${prefixes++}`;
  const first = await startProcess(t, prefix, 0, true);
  const second = await startProcess(t, prefix, 1);
  t.equal((await second.handed({ subject: 'a' })).by, 1, 'nobody hears it');
  await connectRedis(first.subscriber);
  const isHome = async () => (await second.handed({ subject: 'a' })).by === 0;
  await until('the first process is the home', isHome);
});

t.test('one api process in four of each host is a home', async (t) => {
  const names = ['h-1/1/a', 'h-1/0/b', 'h-2/3/c', 'h-3/0/d'];
  t.same(homesAmong(names), ['h-1/0/b', 'h-2/3/c', 'h-3/0/d']);
  const of_nine = Array.from({ length: 9 }, (_, index) => `h/${index}/x`).reverse();
  t.same(homesAmong(of_nine), ['h/0/x', 'h/1/x', 'h/2/x'], 'rounded up');
  t.equal(homeOf([], 'x'), undefined);
  const members = homesAmong(names);
  const subjects = Array.from({ length: 3_000 }, (_, n) => `question ${n}`);
  const homes = subjects.map((subject) => homeOf(members, subject));
  for (const member of members) {
    const share = homes.filter((home) => home === member).length;
    t.ok(share > 800 && share < 1_200, `${member} owns ${share} of 3,000`);
  }
  const left = members.slice(1);
  const moved = subjects.filter((subject, n) => homeOf(left, subject) !== homes[n]);
  t.equal(moved.length, homes.filter((home) => home === members[0]).length, 'no other moves');
});
