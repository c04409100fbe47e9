import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { type Test, t } from 'tap';
import type { Sql } from '../../../src/db/client.js';
import {
  createConsensusProjector,
  createLiveConsensus,
  type LiveConsensus,
  tallyKey,
} from '../../../src/features/consensus/index.js';
import { projectedKey } from '../../../src/features/events/index.js';
import type { LogEntry } from '../../../src/features/events/log-entry.js';
import { consensusBySql } from '../../help/consensus-sql.js';
import { makeEntry } from '../../help/log.js';
import { openParts } from '../../help/parts.js';
import { holds } from '../../help/property.js';
import { until } from '../../help/until.js';

/** The consensus in the memory of a process is what SQL makes of the record, to the last digit. */

const families = ['gpt', 'claude', 'gemini', 'llama', 'other'];
/** JSON puts a name that is a number before the others. */
const options = ['Rises', 'Stays', '2026'];

interface Stated {
  readonly question: number;
  readonly owner: number | null;
  readonly family: string;
  readonly value: number;
  readonly yes: boolean;
  readonly option: number;
  /** The whole distribution, where it is stated. */
  readonly percents: readonly [number, number, number] | null;
}

const anyStated: fc.Arbitrary<Stated> = fc.record({
  question: fc.integer({ min: 0, max: 2 }),
  owner: fc.option(fc.integer({ min: 0, max: 5 }), { nil: null }),
  family: fc.constantFrom(...families),
  value: fc.integer({ min: 0, max: 100 }),
  yes: fc.boolean(),
  option: fc.integer({ min: 0, max: 2 }),
  percents: fc.option(
    fc.tuple(fc.nat(50), fc.nat(50)).map(([a, b]) => [a, b, 100 - a - b] as const),
    { nil: null },
  ),
});

const confidenceOf = ({ question, option, percents, value, yes }: Stated): number => {
  if (isMulti(question)) return percents?.[option] ?? value;
  return yes ? value : 100 - value;
};

const idOf = (kind: number, n: number): string =>
  `0190a000-0000-7000-8000-${kind}${String(n).padStart(11, '0')}`;

interface World {
  readonly sql: Sql;
  readonly questions: readonly string[];
  /** Records predictions and hands their events over, as the service does; the log's entries. */
  write(stated: readonly Stated[]): Promise<readonly LogEntry[]>;
  /** Every consensus as SQL has it, without its offset and time. */
  wanted(): Promise<ReadonlyMap<string, unknown>>;
}

let made = 0;

const isMulti = (question: number): boolean => question === 2;

const eventOf = (one: Stated, question_id: string, offset: number): LogEntry => {
  const { family: model_family, value, yes, option, owner, percents } = one;
  const confidence = confidenceOf(one);
  const named = percents && options.map((name, n) => [name, percents[n]]);
  const said = isMulti(one.question)
    ? {
        ...{ confidence, selected_option: options[option], option_index: option, option_count: 3 },
        ...(named === null ? {} : { probabilities: Object.fromEntries(named) }),
      }
    : { confidence, prediction: yes, probability: value };
  return makeEntry(offset, {
    event: 'prediction.placed',
    question_id,
    agent_id: randomUUID(),
    owner_id: owner === null ? null : idOf(1, owner),
    body: JSON.stringify({
      event: 'prediction.placed',
      data: { question_id, model_family, ...said },
      timestamp: new Date(1_800_000_000_000 + offset).toISOString(),
    }),
  });
};

const store = async (sql: Sql, one: Stated, entry: LogEntry): Promise<void> => {
  const multi = isMulti(one.question);
  const percents = multi && one.percents !== null ? `{${one.percents}}` : null;
  await sql`
    insert into predictions (
      question_id, agent_id, id, owner_id, prediction, probability, confidence, selected_option,
      probabilities, reasoning, citations, model_family, body_digest, event_id, created_at
    )
    values (
      ${entry.question_id}, ${entry.agent_id}, ${randomUUID()}, ${entry.owner_id},
      ${multi ? null : one.yes}, ${multi ? null : one.value}, ${confidenceOf(one)},
      ${multi ? one.option : null}, ${percents}::text::smallint[], repeat('x', 200), '{}', ${one.family}, '', ${entry.id},
      ${new Date(1_800_000_000_000 + entry.offset)}
    )`;
};

const makeWorld = async (sql: Sql): Promise<World> => {
  made += 1;
  const questions = [0, 1, 2].map((n) => idOf(2, made * 3 + n));
  for (const [n, id] of questions.entries()) {
    await sql`
      insert into questions (
        id, question, category, question_type, options, status, timeframe, opens_at, closes_at,
        resolution_date, published_at
      )
      values (
        ${id}, 'Will it be what it is now?', 'technology', ${isMulti(n) ? 'multi' : 'binary'},
        ${isMulti(n) ? options : []}::text[], 'open', 'long', now(), now() + interval '60 days',
        now() + interval '61 days', now()
      )`;
    await sql`insert into question_counts (question_id) values (${id})`;
  }
  let offset = 0;
  return {
    sql,
    questions,
    async write(stated) {
      const entries: LogEntry[] = [];
      for (const one of stated) {
        offset += 1;
        const entry = eventOf(one, questions[one.question] ?? '', offset);
        await store(sql, one, entry);
        await sql`
          update question_counts
          set prediction_offset = ${offset}
          where question_id = ${entry.question_id}`;
        entries.push(entry);
      }
      return entries;
    },
    wanted: () => consensusBySql(sql),
  };
};

const readAll = async (live: LiveConsensus, ids: readonly string[]) => {
  const found = await Promise.all(ids.map((id) => live.find(id)));
  return found.map((consensus) => {
    const { offset: _, updated_at: __, ...rest } = consensus ?? { offset: 0, updated_at: null };
    return rest;
  });
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

t.test('loaded early, late or again, it is what SQL says', async (t) => {
  const { deps } = await openParts(t);
  const property = fc.asyncProperty(
    fc.array(anyStated, { maxLength: 25 }),
    fc.array(anyStated, { maxLength: 25 }),
    fc.integer({ min: 1, max: 3 }),
    fc.integer({ min: 0, max: 3 }),
    async (before, after, most, projected) => {
      const world = await makeWorld(deps.sql);
      const projector = createConsensusProjector(deps);
      await deps.redis.set(projectedKey(deps.config.REDIS_PREFIX), 0);
      const project = async (entries: readonly LogEntry[], upto: number): Promise<void> => {
        await projector.project?.(entries);
        await deps.redis.set(projectedKey(deps.config.REDIS_PREFIX), upto);
      };
      const roomy = createLiveConsensus(deps);
      const cramped = createLiveConsensus(deps, most);
      await compare(t, world, roomy);
      let early: readonly LogEntry[] = [];
      for (const [n, some] of [before, after].entries()) {
        const entries = await world.write(some);
        // Redis is brought along, or stays behind once, or for good.
        const upto = before.length + (n === 0 ? 0 : after.length);
        const brought = n === 0 ? entries : [...((projected & 1) === 1 ? [] : early), ...entries];
        if (((projected >> n) & 1) === 1) await project(brought, upto);
        early = entries;
        for (const live of [roomy, cramped]) live.onEvents(entries);
        for (const live of [roomy, cramped]) await compare(t, world, live);
      }
      t.ok(keptBy(cramped, world) <= most);
      const [offset, at] = [before.length + after.length, roomy.peek(world.questions[0] ?? '')];
      t.ok((at?.offset ?? 0) <= offset);
    },
  );
  await holds(t, property, { numRuns: 12 });
});

t.test('predictions that come while it is loaded are counted once', async (t) => {
  const { deps } = await openParts(t);
  const world = await makeWorld(deps.sql);
  const [first, second, third] = await Promise.all(
    [10, 10, 10].map((n) => fc.sample(anyStated, { numRuns: n, seed: n })),
  );
  const live = createLiveConsensus(deps);
  live.onEvents(await world.write(first ?? []));
  // The load may see the second batch in the record or not; its events come beside it.
  const entries = await world.write(second ?? []);
  const asked = readAll(live, world.questions);
  live.onEvents(entries);
  await asked;
  live.onEvents(await world.write(third ?? []));
  await compare(t, world, live);
});

t.test('after a hole in the log everything is loaded again', async (t) => {
  const { deps } = await openParts(t);
  const world = await makeWorld(deps.sql);
  const live = createLiveConsensus(deps);
  live.onEvents(await world.write(fc.sample(anyStated, { numRuns: 10, seed: 1 })));
  await compare(t, world, live);
  await world.write(fc.sample(anyStated, { numRuns: 10, seed: 2 }));
  live.onEvents(await world.write(fc.sample(anyStated, { numRuns: 3, seed: 3 })));
  t.equal(keptBy(live, world), 0);
  await compare(t, world, live);
  t.equal(keptBy(live, world), 3);
});

t.test('a load that fails is tried again by the next who asks', async (t) => {
  const { deps } = await openParts(t);
  const world = await makeWorld(deps.sql);
  await world.write(fc.sample(anyStated, { numRuns: 10, seed: 4 }));
  let fails = true;
  const sql = new Proxy(deps.sql, {
    apply: (target, self, args) => {
      if (fails && String(args[0]).includes('string_agg')) return Promise.reject(new Error('away'));
      return Reflect.apply(target as never, self, args);
    },
  });
  const live = createLiveConsensus({ ...deps, sql });
  await t.rejects(live.find(world.questions[0] ?? ''), { message: 'away' });
  fails = false;
  await compare(t, world, live);
});

t.test(
  'Redis alone is asked while it is as far as the log, and the record where it is not',
  async (t) => {
    const { deps } = await openParts(t);
    const { redis, config } = deps;
    const world = await makeWorld(deps.sql);
    const entries = await world.write(fc.sample(anyStated, { numRuns: 30, seed: 5 }));
    await createConsensusProjector(deps).project?.(entries);
    await redis.set(projectedKey(config.REDIS_PREFIX), 30);
    const wanted = await readAll(createLiveConsensus(deps), world.questions);
    let reads = 0;
    const sql = new Proxy(deps.sql, {
      apply: (target, self, args) => {
        if (String(args[0]).includes('string_agg')) reads += 1;
        return Reflect.apply(target as never, self, args);
      },
    });
    const cold = () => {
      const live = createLiveConsensus({ ...deps, sql });
      live.onEvents(entries);
      return live;
    };
    t.strictSame(await readAll(cold(), world.questions), wanted);
    t.equal(reads, 0);
    await redis.set(projectedKey(config.REDIS_PREFIX), 29);
    t.strictSame(await readAll(cold(), world.questions), wanted);
    t.equal(reads, 3, 'behind the log');
    await redis.set(projectedKey(config.REDIS_PREFIX), 30);
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
  },
);
