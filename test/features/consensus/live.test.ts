import fc from 'fast-check';
import type { Test } from 'tap';
import { questionId } from '../../../bench/env/seed.js';
import type { Sql } from '../../../src/db/client.js';
import {
  createConsensusProjector,
  createLiveConsensus,
  type LiveConsensus,
  tallyKey,
} from '../../../src/features/consensus/index.js';
import { writeProjected } from '../../../src/features/events/index.js';
import { type LogEntry, timeOf } from '../../../src/features/events/log-entry.js';
import { recomputeConsensus } from '../../help/consensus-oracle.js';
import { openParts } from '../../help/parts.js';
import { holds } from '../../help/property.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import {
  addPredictions,
  addQuestions,
  addRevisions,
  options,
  type Placed,
  without,
} from './world.js';

/** The consensus in memory equals the consensus of the stored predictions, to the last digit. */

type Stated = Omit<Placed, 'agent' | 'at'>;

const anyStated: fc.Arbitrary<Stated> = fc
  .record({
    question: fc.integer({ min: 0, max: 2 }),
    owner: fc.option(fc.integer({ min: 0, max: 5 }), { nil: null }),
    family: fc.constantFrom('gpt', 'claude', 'gemini', 'llama', 'other'),
    value: fc.integer({ min: 0, max: 10_000 }).map((bp) => bp / 100),
    option: fc.integer({ min: 0, max: 2 }),
    percents: fc.option(fc.tuple(fc.nat(5_000), fc.nat(5_000)), { nil: null }),
  })
  .map(({ option, percents, ...one }) => {
    if (one.question !== 2) return one;
    const whole =
      percents && [...percents, 10_000 - percents[0] - percents[1]].map((bp) => bp / 100);
    return { ...one, option, ...(whole === null ? {} : { percents: whole }) };
  });

const sample = (numRuns: number, seed: number) => fc.sample(anyStated, { numRuns, seed });

let made = 0;
const start = Date.parse('2026-03-01T00:00:00.000Z');

/** Three new questions, the last with options. */
const makeWorld = async (sql: Sql) => {
  const first = made;
  made += 3;
  await addQuestions(sql, { count: 2, first });
  await addQuestions(sql, { count: 1, first: first + 2, options });
  let agent = 0;
  const placed: Placed[] = [];
  return {
    questions: [0, 1, 2].map((n) => questionId(first + n)),
    /** Places these predictions. After every second one, revises an earlier prediction. */
    async write(stated: readonly Stated[]) {
      const all = stated.map((one): Placed => {
        agent += 1;
        return {
          ...one,
          question: first + one.question,
          agent,
          at: new Date(start + agent * 1_000),
        };
      });
      const entries = await addPredictions(sql, all);
      placed.push(...all);
      const revised = all.flatMap((one, n) => {
        const own = placed.filter(({ question }) => question === one.question);
        const { agent: earlier = 0 } = own[(7 * n) % own.length] ?? {};
        // Revisions are later than all first predictions, and still in log order.
        const at = new Date(one.at.getTime() + 500_000);
        return n % 2 === 0 ? [] : [{ ...one, agent: earlier, at }];
      });
      return [...entries, ...(await addRevisions(sql, revised))];
    },
    wanted: () => recomputeConsensus(sql),
  };
};
type World = Awaited<ReturnType<typeof makeWorld>>;

/** Calls `onRead` when a tally is read. A promise that `onRead` returns replaces the result. */
const watchTallies = (sql: Sql, onRead: () => Promise<never> | null): Sql =>
  new Proxy(sql, {
    get: (target, name) =>
      name === 'begin'
        ? (...args: Parameters<Sql['begin']>) => onRead() ?? target.begin(...args)
        : Reflect.get(target, name),
  });

const readAll = async (live: LiveConsensus, ids: readonly string[]) => {
  const found = await Promise.all(ids.map((id) => live.find(id)));
  return found.map((consensus) => without({ ...consensus }));
};

const keptBy = (live: LiveConsensus, { questions }: World): number =>
  questions.filter((id) => live.peek(id) !== undefined).length;

const compare = async (t: Test, world: World, live: LiveConsensus): Promise<void> => {
  const wanted = await world.wanted();
  t.strictSame(
    await readAll(live, world.questions),
    world.questions.map((id) => wanted.get(id)),
  );
};

t.test('loaded early, late or again, it is what the record says', async (t) => {
  const { deps } = await openParts(t);
  const property = fc.asyncProperty(
    fc.array(anyStated, { maxLength: 25 }),
    fc.array(anyStated, { maxLength: 25 }),
    fc.integer({ min: 1, max: 3 }),
    fc.integer({ min: 0, max: 3 }),
    async (before, after, most, projected) => {
      const world = await makeWorld(deps.sql);
      const projector = createConsensusProjector(deps);
      const roomy = createLiveConsensus(deps);
      const cramped = createLiveConsensus(deps, most);
      await compare(t, world, roomy);
      let early: readonly LogEntry[] = [];
      for (const [n, some] of [before, after].entries()) {
        const entries = await world.write(some);
        // Redis either gets every batch, misses one, or stays behind for good.
        const brought = n === 0 ? entries : [...((projected & 1) === 1 ? [] : early), ...entries];
        if (((projected >> n) & 1) === 1) {
          await projector.project?.(brought);
          const [head] = await deps.sql<{ offset: number }[]>`select "offset" from log_head`;
          await writeProjected(deps.redis, deps.config.REDIS_PREFIX, head?.offset ?? 0);
        }
        early = entries;
        for (const live of [roomy, cramped]) live.onEvents(entries);
        for (const live of [roomy, cramped]) await compare(t, world, live);
      }
      t.ok(keptBy(cramped, world) <= most);
    },
  );
  await holds(t, property, { numRuns: 12 });
});

t.test('predictions that come while it is loaded are counted once', async (t) => {
  const { deps } = await openParts(t);
  const world = await makeWorld(deps.sql);
  const live = createLiveConsensus(deps);
  live.onEvents(await world.write(sample(10, 10)));
  // The events of this batch arrive during a load, which may or may not read them from Postgres.
  const entries = await world.write(sample(10, 11));
  const asked = readAll(live, world.questions);
  live.onEvents(entries);
  await asked;
  live.onEvents(await world.write(sample(10, 12)));
  await compare(t, world, live);
});

t.test('as it stood at a moment, by the times of forecasts and of revisions', async (t) => {
  const { deps } = await openParts(t);
  const world = await makeWorld(deps.sql);
  const live = createLiveConsensus(deps);
  const entries = [];
  for (let n = 0; n < 12; n += 1) entries.push(...(await world.write(sample(6, 20 + n))));
  const times = entries.map((entry) => Date.parse(timeOf(entry)));
  for (const ms of [Math.min(...times) - 1, ...times.filter((_, n) => n % 9 === 0)]) {
    const at = new Date(ms);
    const wanted = await recomputeConsensus(deps.sql, undefined, at);
    const found = await live.findAll(world.questions, at);
    t.equal(found.length, 3);
    for (const one of found) {
      t.strictSame(without({ ...one }), wanted.get(one.question_id));
      t.equal(one.offset, 0);
    }
  }
});

t.test('after a hole in the log everything is loaded again', async (t) => {
  const { deps } = await openParts(t);
  const world = await makeWorld(deps.sql);
  const live = createLiveConsensus(deps);
  live.onEvents(await world.write(sample(10, 1)));
  await compare(t, world, live);
  await world.write(sample(10, 2));
  live.onEvents(await world.write(sample(3, 3)));
  t.equal(keptBy(live, world), 0);
  await compare(t, world, live);
  t.equal(keptBy(live, world), 3);
});

t.test(
  'the tally has the time of the newest forecast, although an older one came later',
  async (t) => {
    const { deps } = await openParts(t);
    const { questions } = await makeWorld(deps.sql);
    const projector = createConsensusProjector(deps);
    const place = async (agent: number, day: number) => {
      const at = new Date(start + day * 86_400_000);
      const one = { question: made - 3, agent, at, family: 'gpt', value: 60 };
      await projector.project?.(await addPredictions(deps.sql, [one]));
      return deps.redis.hget(tallyKey(deps.config.REDIS_PREFIX, questions[0] ?? ''), 't');
    };
    t.equal(await place(1, 20), '2026-03-21T00:00:00.000Z');
    t.equal(await place(2, 10), '2026-03-21T00:00:00.000Z');
    t.equal(await place(3, 30), '2026-03-31T00:00:00.000Z');
  },
);

t.test('a load that fails is tried again by the next who asks', async (t) => {
  const { deps } = await openParts(t);
  const world = await makeWorld(deps.sql);
  await world.write(sample(10, 4));
  let fails = true;
  const sql = watchTallies(deps.sql, () => (fails ? Promise.reject(new Error('away')) : null));
  const live = createLiveConsensus({ ...deps, sql });
  await t.rejects(live.find(world.questions[0] ?? ''), { message: 'away' });
  fails = false;
  await compare(t, world, live);
});

t.test('Redis is asked while it is as far as the log, otherwise the record', async (t) => {
  const { deps } = await openParts(t);
  const { redis, config } = deps;
  const world = await makeWorld(deps.sql);
  const entries = await world.write(sample(30, 5));
  const head = entries.length;
  await createConsensusProjector(deps).project?.(entries);
  await writeProjected(redis, config.REDIS_PREFIX, head);
  const wanted = await readAll(createLiveConsensus(deps), world.questions);
  let reads = 0;
  const sql = watchTallies(deps.sql, () => {
    reads += 1;
    return null;
  });
  const cold = () => {
    const live = createLiveConsensus({ ...deps, sql });
    live.onEvents(entries);
    return live;
  };
  t.strictSame(await readAll(cold(), world.questions), wanted);
  t.equal(reads, 0);
  await writeProjected(redis, config.REDIS_PREFIX, head - 1);
  t.strictSame(await readAll(cold(), world.questions), wanted);
  t.equal(reads, 3, 'behind the log');
  await writeProjected(redis, config.REDIS_PREFIX, head);
  const key = tallyKey(config.REDIS_PREFIX, world.questions[0] ?? '');
  await redis.del(key, `${key}:owners`);
  t.strictSame(await readAll(cold(), world.questions), wanted);
  t.equal(reads, 4, 'one is missing');
  await until('it is written back', async () => (await redis.exists(key)) === 1);
  t.strictSame(await readAll(cold(), world.questions), wanted);
  t.equal(reads, 4);
  const all = await redis.keys(`${config.REDIS_PREFIX}*`);
  await redis.del(...all);
  t.strictSame(await readAll(cold(), world.questions), wanted);
});
