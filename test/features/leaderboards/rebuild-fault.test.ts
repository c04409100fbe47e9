import {
  createBoardRebuild,
  findBoardDifferences,
  markStanding,
} from '../../../src/features/leaderboards/index.js';
import { builtKey } from '../../../src/features/leaderboards/live.js';
import { openParts } from '../../help/parts.js';
import { startPrivateStores } from '../../help/stores.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { addAgents, addHuman, addScores } from './world.js';

/** Two rebuilds, constant writers, and a Redis that is emptied, frozen and killed. */

const stores = await startPrivateStores(t, { durable: false });
const here = await openParts(t, { stores });
const there = await openParts(t, { stores });
const { sql, redis } = here.deps;
const prefix = here.deps.config.REDIS_PREFIX;
const now = new Date();
const rebuilds = [createBoardRebuild(here.deps, 20), createBoardRebuild(there.deps, 20)];
for (const rebuild of rebuilds) await rebuild.start();
t.teardown(() => Promise.all(rebuilds.map((rebuild) => rebuild.stop())));

const owner_id = await addHuman(sql);
const agents = await addAgents(sql, Array(150).fill({ owner_id, balance: 5_000 }));
await sql.begin((tx) => markStanding(tx, agents));
let changes = 0;

const changeOnce = async (): Promise<void> => {
  const pick = () => agents[Math.floor(Math.random() * agents.length)] ?? '';
  const some = [pick(), pick(), pick()].sort();
  const move = Math.floor(Math.random() * 100);
  await sql.begin(async (tx) => {
    await tx`
      update accounts
      set balance = balance + ${move}
      where agent_id in (
        select agent_id from accounts
        where agent_id = any (${some}::uuid[])
        order by agent_id
        for update
      )`;
    await addScores(
      tx as never,
      some.map((agent_id) => ({
        agent_id,
        category: 'society',
        resolved_at: now,
        hit: Math.random() < 0.7,
        stated: Math.floor(Math.random() * 101),
      })),
    );
    await markStanding(tx, some);
  });
  changes += 1;
};

const startWriters = (): (() => Promise<unknown>) => {
  let writing = true;
  const write = async (): Promise<void> => {
    while (writing) await changeOnce();
  };
  const writers = Promise.all([write(), write(), write()]);
  return () => {
    writing = false;
    return writers;
  };
};

const moreChanges = async (count: number): Promise<void> => {
  const goal = changes + count;
  await until('more changes', () => changes >= goal);
};

const find = () => findBoardDifferences({ sql, redis, prefix, now });
const rightWithin = async (ms: number): Promise<number> => {
  const since = performance.now();
  let last: readonly string[] = [];
  await until(
    'boards as the record',
    async () => {
      last = await find().catch((error: Error) => [error.message]);
      return last.length === 0;
    },
    ms,
  ).catch((error: Error) => {
    throw new Error(`${error.message}: ${last.join('; ')}`);
  });
  return Math.round(performance.now() - since);
};

const strikes: readonly (readonly [string, () => Promise<unknown>])[] = [
  ['FLUSHALL', () => redis.flushall()],
  [
    'a FLUSHALL that comes while the boards are being made',
    async () => {
      for (let i = 0; i < 3; i += 1) {
        await redis.flushall();
        await until('boards are made', async () => (await redis.exists(builtKey(prefix))) > 0);
      }
      await redis.flushall();
    },
  ],
  [
    'a Redis that stands still for longer than its commands may take',
    async () => {
      stores.redis.pause();
      const fails = () =>
        redis.ping().then(
          () => false,
          () => true,
        );
      await until('a command was given up', fails);
      stores.redis.resume();
    },
  ],
  [
    'kill -9 of Redis, which comes back with what it had written down',
    async () => {
      await stores.redis.kill();
      await stores.redis.restart();
    },
  ],
  [
    'kill -9 of Redis, which comes back empty',
    async () => {
      await stores.redis.kill();
      await stores.redis.restart({ empty: true });
    },
  ],
];

for (const [what, strike] of strikes) {
  await t.test(`the boards are right again after ${what}`, async (t) => {
    const stopWriters = startWriters();
    await moreChanges(30);
    await strike();
    await moreChanges(60);
    await stopWriters();
    t.comment(`right after ${await rightWithin(15_000)} ms`);
    t.same(await find(), []);
  });
}
