import type { Test } from 'tap';
import { emit } from '../../../src/db/event.js';
import { createConsensusProjector, tallyKey } from '../../../src/features/consensus/index.js';
import { prediction_placed } from '../../../src/features/events/catalogue.js';
import {
  createRelay,
  type Projector,
  readProjected,
  writeProjected,
} from '../../../src/features/events/index.js';
import { type LogEntry, wakeUpChannel } from '../../../src/features/events/log-entry.js';
import { createProjection, createStreamWriter } from '../../../src/features/events/relay.js';
import { hand_over_settings, handOver, moveRows } from '../../../src/features/events/store.js';
import { makeId } from '../../../src/kit/ids.js';
import { closeRedis, connectRedis, openRedis } from '../../../src/redis/client.js';
import { findDifferences } from '../../../src/tools/verify.js';
import { range } from '../../help/hub.js';
import { makeLogWriter } from '../../help/log.js';
import { openParts, type Parts } from '../../help/parts.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';

/** The relay when its memory and the stores disagree. */

interface World extends Parts {
  /** Places predictions as the group commit does, without telling the relay. */
  place(question_id: string, count?: number): Promise<void>;
  nudge(): Promise<unknown>;
  /** Checks that the stores agree, once all work is finished. */
  settle(): Promise<void>;
  startRelay(more?: readonly Projector[]): Promise<void>;
  head(): Promise<number>;
  newQuestion(): Promise<string>;
}

const insertPrediction = async ({ deps }: Parts, question_id: string): Promise<void> => {
  const [agent_id, id] = [makeId(), makeId()];
  await deps.sql.begin(async (tx) => {
    const event_id = await emit(tx, prediction_placed, {
      at: new Date(),
      scope: { question_id, agent_id },
      data: {
        question_id,
        prediction_id: id,
        user_id: agent_id,
        user_name: 'Agent',
        model_family: 'gpt',
        confidence: 70,
        prediction: true,
        probability: 70,
      },
    });
    await tx`
      insert into predictions (
        question_id, agent_id, id, prediction, probability, confidence, reasoning, citations,
        model_family, body_digest, event_id, revision
      )
      values (
        ${question_id}, ${agent_id}, ${id}, true, 7000, 7000, repeat('x', 200), '{}', 'gpt', '',
        ${event_id}, 0
      )`;
    await tx`insert into accounts (agent_id, balance) values (${agent_id}, 0)`;
  });
};

const newQuestion = async ({ deps }: Parts): Promise<string> => {
  const id = makeId();
  await deps.sql`
    insert into questions (
      id, question, category, question_type, status, timeframe, opens_at, closes_at,
      resolution_date, published_at
    )
    values (
      ${id}, 'Will it be seen in the log?', 'technology', 'binary', 'open', 'long', now(),
      now() + interval '1 day', now() + interval '1 day', now()
    )`;
  await deps.sql`insert into question_counts (question_id) values (${id})`;
  return id;
};

/** Counts events in the transaction that hands them over, as the question counters do. */
const counter: Projector = {
  name: 'counter',
  async record(tx, entries) {
    for (const { question_id, offset } of entries) {
      await tx`
        update question_counts
        set
          prediction_count = prediction_count + 1,
          yes_count = yes_count + 1,
          prediction_offset = ${offset}
        where question_id = ${question_id}`;
    }
  },
};

const makeWorld = async (t: Test): Promise<World> => {
  const parts = await openParts(t);
  const { deps, stores } = parts;
  const prefix = deps.config.REDIS_PREFIX;
  const head = async (): Promise<number> => {
    const [row] = await deps.sql<{ offset: number }[]>`select "offset" from log_head`;
    return row?.offset ?? 0;
  };
  return {
    ...parts,
    head,
    newQuestion: () => newQuestion(parts),
    async place(question_id, count = 1) {
      for (let n = 0; n < count; n += 1) await insertPrediction(parts, question_id);
    },
    nudge: () => deps.redis.spublish(wakeUpChannel(prefix), ''),
    async settle() {
      let found: readonly string[] = [];
      const look = async () => {
        found = await findDifferences({
          sql: deps.sql,
          redis: deps.redis,
          prefix,
          without_boards: true,
        });
        return found.length === 0;
      };
      await until('nothing differs', look).catch(() => undefined);
      t.same(found, [], 'nothing differs');
    },
    async startRelay(more = []) {
      const subscriber = openRedis({
        url: stores.redis_url,
        name: 'nudges',
        log: deps.log,
        command_timeout_ms: 0,
        subscribes: true,
      });
      await connectRedis(subscriber);
      const projectors = [counter, createConsensusProjector(deps), ...more];
      // Polls so slowly that only nudges trigger this relay during a test.
      const relay = createRelay(deps, { subscriber, projectors, poll_ms: 20_000 });
      await relay.start();
      t.teardown(async () => {
        await relay.stop();
        closeRedis(subscriber);
      });
    },
  };
};

const shared = await openParts(t);

const idsOf = (offsets: readonly number[]): string[] => offsets.map((offset) => `${offset}-0`);

/** Starts a new log, and removes every trace of the old one from Redis. */
const beginLog = async () => {
  const { sql, redis, config } = shared.deps;
  const prefix = config.REDIS_PREFIX;
  const stream = `${prefix}:{log}:events`;
  await sql`truncate events`;
  await sql`update log_head set "offset" = 0`;
  await redis.del(stream);
  await writeProjected(redis, prefix, -1);
  return { sql, redis, prefix, stream, log: makeLogWriter(sql, redis, prefix) };
};

t.test('a hand-over whose answer was lost is found when the relay goes on', async (t) => {
  const world = await makeWorld(t);
  const { sql } = world.deps;
  const question_id = await world.newQuestion();
  await world.startRelay();
  await world.place(question_id);
  await world.nudge();
  await world.settle();
  await world.place(question_id, 3);
  // This transaction hands the events over. The relay does not learn of this: its own turn fails,
  // because it waits for the lease longer than the lock timeout.
  await sql.begin(async (tx) => {
    await tx`lock table leases in access exclusive mode`;
    const entries = await handOver(tx, 10);
    await counter.record?.(tx, entries);
    await world.nudge();
    const turnIs = async (what: 'under way' | 'over'): Promise<boolean> => {
      const [row] = await tx<{ count: number }[]>`
        select count(*)::integer as count
        from pg_locks
        where not granted and relation = 'leases'::regclass`;
      return (row?.count ?? 0) > 0 === (what === 'under way');
    };
    await until('the turn waits for the lease', () => turnIs('under way'));
    await until('the turn has failed', () => turnIs('over'));
  });
  await world.settle();
});

t.test('a stream that is further than the relay is left alone', async (t) => {
  const { sql, redis, prefix, stream, log } = await beginLog();
  await log.write(700);
  // This relay slept while another one advanced the log from 20 to 700.
  await createStreamWriter({ sql, redis, prefix })(20, log.entries.slice(15, 20));
  const ids = (await redis.xrange(stream, '-', '+')).map(([id]) => id);
  t.same(ids, idsOf(range(1, 700)));
});

t.test('a stream that was trimmed to nothing is filled again', async (t) => {
  const { sql, redis, prefix, stream, log } = await beginLog();
  await log.write(3);
  await redis.xtrim(stream, 'MAXLEN', 0);
  await createStreamWriter({ sql, redis, prefix })(3, []);
  t.equal(await redis.xlen(stream), 3);
});

t.test('a stream of another life of the database is made anew', async (t) => {
  const { sql, redis, prefix, stream, log } = await beginLog();
  await log.record(3);
  await redis.xadd(stream, '9-0', 'i', 'of another database');
  await createStreamWriter({ sql, redis, prefix })(3, []);
  const ids = (await redis.xrange(stream, '-', '+')).map(([id]) => id);
  t.same(ids, idsOf([1, 2, 3]));
});

t.test('a Redis that comes back with an older state is brought up to the log', async (t) => {
  const world = await makeWorld(t);
  const { redis, config } = world.deps;
  const prefix = config.REDIS_PREFIX;
  const question_id = await world.newQuestion();
  await world.startRelay();
  await world.place(question_id);
  await world.nudge();
  await world.settle();
  const tally = tallyKey(prefix, question_id);
  const owners = `${tally}:owners`;
  const [older, older_owners] = [await redis.hgetall(tally), await redis.hgetall(owners)];
  const stream = `${prefix}:{log}:events`;
  const [first] = await redis.xrange(stream, '-', '+');
  await world.place(question_id);
  await world.nudge();
  await world.settle();
  // Simulates a failover to a replica that missed the last event.
  await writeProjected(redis, prefix, 1);
  await redis
    .multi()
    .del(tally, owners)
    .hset(tally, older)
    .hset(owners, older_owners)
    .del(stream)
    .xadd(stream, '1-0', ...(first?.[1] ?? []))
    .exec();
  const id = await redis.client('ID');
  await redis.call('CLIENT', 'KILL', 'ID', id, 'SKIPME', 'no').catch(() => undefined);
  await until('the connection is back', async () => {
    return redis.status === 'ready' && (await redis.client('ID').catch(() => id)) !== id;
  });
  await world.place(question_id);
  await world.nudge();
  await until('the third is counted', async () => (await redis.hget(tally, 'o')) === '3');
  const { o, t: _, ...counts } = await redis.hgetall(tally);
  t.same(counts, cellOf(3, 70));
  await world.settle();
});

t.test('a Redis that is ahead of the record is emptied and made anew', async (t) => {
  const world = await makeWorld(t);
  const { redis, config } = world.deps;
  const prefix = config.REDIS_PREFIX;
  const question_id = await world.newQuestion();
  await world.place(question_id);
  // Simulates a restore to an earlier time: the same question is further ahead in Redis.
  const tally = tallyKey(prefix, question_id);
  await redis.hset(tally, 'o', 900, 't', '', 9_900, 9);
  await writeProjected(redis, prefix, 900);
  await redis.xadd(`${prefix}:{log}:events`, '900-0', 'h', 'x', 'b', '{}');
  await redis.hset(`${prefix}:{boards}:built`, 'life', 'another');
  await world.startRelay();
  await until('it is counted', async () => (await redis.hget(tally, 'o')) === '1');
  const { o, t: _, ...counts } = await redis.hgetall(tally);
  t.same(counts, cellOf(1, 70));
  t.equal(await redis.exists(`${prefix}:{boards}:built`), 0, 'boards are made anew as well');
  await world.place(question_id);
  await world.nudge();
  await world.settle();
});

t.test('the log goes on while the state in Redis is made anew', async (t) => {
  const world = await makeWorld(t);
  const { redis, config } = world.deps;
  const question_id = await world.newQuestion();
  await world.place(question_id);
  let letGo = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const projected: number[] = [];
  await world.startRelay([
    {
      name: 'slow',
      rebuild: () => held,
      project: async (entries: readonly LogEntry[]) => {
        projected.push(...entries.map(({ offset }) => offset));
      },
    },
  ]);
  await until('the first event is in the log', async () => (await world.head()) === 1);
  for (let n = 2; n <= 4; n += 1) {
    await world.place(question_id);
    await world.nudge();
    await until('the next event is in the log', async () => (await world.head()) === n);
  }
  const stream = `${config.REDIS_PREFIX}:{log}:events`;
  await until('it is in the stream', async () => (await redis.xlen(stream)) === 4);
  t.same(projected, [], 'nothing is projected on a state that is half made');
  letGo();
  await until('the projection stands at the head', async () => {
    await world.nudge();
    return (await readProjected(redis, config.REDIS_PREFIX)) === 4;
  });
  t.same(projected, [2, 3, 4], 'what came meanwhile is projected, once');
  await world.settle();
});

t.test('a hand-over finds every row by an index and is too cheap to be compiled', async (t) => {
  const { sql } = await beginLog();
  const plan = await sql.begin(
    hand_over_settings,
    (tx) => tx<{ 'QUERY PLAN': string }[]>`explain ${moveRows(tx, 2_000)}`,
  );
  const text = plan.map((row) => row['QUERY PLAN']).join('\n');
  t.notMatch(text, /Seq Scan|Disabled: true/);
  const most = Math.max(...[...text.matchAll(/cost=[\d.]+\.\.([\d.]+)/g)].map((m) => Number(m[1])));
  t.ok(most > 0 && most < 100_000, text);
});

t.test('while events come they are projected in portions, and at once when none do', async (t) => {
  const { redis, prefix, log } = await beginLog();
  await writeProjected(redis, prefix, 0);
  const portions: number[][] = [];
  const seen = {
    name: 'seen',
    project: async (entries: readonly LogEntry[]) => {
      portions.push(entries.map(({ offset }) => offset));
    },
  };
  const projection = createProjection({ ...shared.deps, prefix, projectors: [seen] });
  await projection.update(1, await log.record(1));
  t.same(portions, [[1]], 'the first one does not wait');
  await projection.update(3, await log.record(2));
  await projection.update(4, await log.record(1));
  await projection.update(4, []);
  t.same(portions.flat(), [1, 2, 3, 4], 'each of them once, in order');
  t.equal(await readProjected(redis, prefix), 4);
  await log.record(2);
  await projection.update(6, []);
  t.same(portions.at(-1), [5, 6], 'what is not at hand is read from the record');
});

/** The tally's fields for this many YES forecasts of one value, each from a different owner. */
const cellOf = (count: number, percent: 70): Readonly<Record<string, string>> => {
  const value = 100 * percent;
  // ln(7/3) is 0.8472978604.
  const sums = { n: count, v: count * value, x: count * 847_297_860 };
  const cell = Object.entries(sums).map(([what, sum]) => [`gpt|y|1|${what}`, String(sum)]);
  return { ...Object.fromEntries(cell), [value]: String(count), 'gpt:1': String(count) };
};

const entryAt = (question_id: string, offset: number, probability: number): LogEntry => {
  const data = { model_family: 'gpt', prediction: true, probability };
  return {
    offset,
    id: makeId(),
    event: 'prediction.placed',
    question_id,
    agent_id: makeId(),
    audience_id: null,
    category: null,
    subcategory: null,
    owner_id: null,
    body: JSON.stringify({ data, timestamp: `2026-01-01T00:00:0${offset}.000Z` }),
  };
};

t.test('of a portion that is counted in part, the rest is counted', async (t) => {
  const { redis, prefix } = await beginLog();
  const projector = createConsensusProjector(shared.deps);
  const question_id = makeId();
  const probabilities = [70, 70, 80, 70];
  const entries = probabilities.map((one, i) => entryAt(question_id, i + 1, one));
  const tally = tallyKey(prefix, question_id);
  await redis.hset(tally, { o: 2, t: '2026-01-01T00:00:02.000Z', ...cellOf(2, 70) });
  for (const times of [1, 2]) {
    await projector.project?.(entries);
    t.same(
      { ...(await redis.hgetall(tally)) },
      {
        o: '4',
        t: '2026-01-01T00:00:04.000Z',
        7000: '3',
        8000: '1',
        'gpt:1': '4',
        // The sum x is 3 · 0.847297860 + 1.386294361.
        'gpt|y|1|n': '4',
        'gpt|y|1|v': '29000',
        'gpt|y|1|x': '3928187941',
      },
      `projected ${times} times`,
    );
  }
});

t.test('predictions of one owner move together, and options add up', async (t) => {
  const { sql, redis, prefix } = await beginLog();
  const question_id = makeId();
  await sql`
    insert into questions (
      id, question, category, question_type, options, status, timeframe, opens_at, closes_at,
      resolution_date, published_at
    )
    values (
      ${question_id}, 'Which of them will it be?', 'technology', 'multi', '{2026,Rain}', 'open',
      'long', now(), now() + interval '1 day', now() + interval '1 day', now()
    )`;
  const tally = tallyKey(prefix, question_id);
  await redis.hset(tally, 'o', 0, 't', '');
  const owner_id = makeId();
  const projector = createConsensusProjector(shared.deps);
  const says = (offset: number, more: object): LogEntry => ({
    ...entryAt(question_id, offset, 0),
    owner_id,
    body: JSON.stringify({
      data: { model_family: 'gpt', confidence: 60, option_index: 1, option_count: 2, ...more },
      timestamp: `2026-01-01T00:00:0${offset}.000Z`,
    }),
  });
  const entries = [
    says(1, {}),
    says(2, { probabilities: { Rain: 60, 2026: 40 } }),
    { ...says(3, { model_family: 'claude' }), owner_id: null },
    { ...says(4, { model_family: 'claude' }), owner_id },
  ];
  await projector.project?.(entries);
  const cellsOf = (cell: string, n: number, v: number) => {
    return { [`${cell}|n`]: `${n}`, [`${cell}|v`]: `${v}`, [`${cell}|x`]: '0' };
  };
  const logOdds = (chance: number): number => Math.round(1e9 * Math.log(chance / (1 - chance)));
  /** The sums of the log odds of both options, for owners with `size` predictions. */
  const logOddsOf = (family: string, size: number, of_first: number) => ({
    [`${family}|0|${size}`]: `${of_first}`,
    [`${family}|1|${size}`]: `${-of_first}`,
  });
  const others = {
    ...cellsOf('claude|1|1', 1, 6_000),
    'claude:1': '1',
    'claude:1,gpt:2': '1',
    ...cellsOf('claude|1|3', 1, 6_000),
    'claude|0': '8000',
    'claude|1': '12000',
    ...logOddsOf('claude', 1, logOdds(0.4)),
    ...logOddsOf('claude', 3, logOdds(0.4)),
  };
  t.same(
    { ...(await redis.hgetall(tally)) },
    {
      o: '4',
      t: '2026-01-01T00:00:04.000Z',
      6000: '4',
      ...others,
      '0/4000': '4',
      '1/6000': '4',
      ...cellsOf('gpt|1|3', 2, 12_000),
      ...logOddsOf('gpt', 3, 2 * logOdds(0.4)),
      'gpt|0': '8000',
      'gpt|1': '12000',
    },
  );
  // A revision moves the earlier forecast and does not change the owner's number of predictions.
  const previous = { confidence: 60, option_index: 1, probabilities: { Rain: 60, 2026: 40 } };
  const now = { confidence: 99.87, option_index: 0, previous };
  await projector.project?.([{ ...says(5, now), event: 'prediction.revised' }]);
  t.same(
    { ...(await redis.hgetall(tally)) },
    {
      o: '5',
      t: '2026-01-01T00:00:05.000Z',
      6000: '3',
      9987: '1',
      ...others,
      '0/4000': '3',
      '1/6000': '3',
      '0/9987': '1',
      '1/13': '1',
      ...cellsOf('gpt|1|3', 1, 6_000),
      ...cellsOf('gpt|0|3', 1, 9_987),
      // A chance above 99 % has the log odds of 99 %.
      ...logOddsOf('gpt', 3, logOdds(0.4) + logOdds(0.99)),
      'gpt|0': '13987',
      'gpt|1': '6013',
    },
  );
  // An unknown forecast cannot be revised. The tally is rebuilt from the record, which is empty.
  const unsaid = { confidence: 50, option_index: 0, previous: { confidence: 1, option_index: 0 } };
  await projector.project?.([{ ...says(6, unsaid), event: 'prediction.revised' }]);
  t.same({ ...(await redis.hgetall(tally)) }, { o: '0', t: '' });
});
