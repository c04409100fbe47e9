import { type Test, t } from 'tap';
import { ensureImportOwner } from '../../../src/features/accounts/index.js';
import {
  createBoardRebuild,
  createBoards,
  findBoardDifferences,
  markStanding,
  readNet,
  readPerformance,
} from '../../../src/features/leaderboards/index.js';
import { boardKey, most_in_redis } from '../../../src/features/leaderboards/live.js';
import {
  type BoardKind,
  board_kinds,
  dayOf,
  intervalView,
  type Period,
  periods,
  shownValue,
  sliceOf,
} from '../../../src/features/leaderboards/rules.js';
import { type BoardPage, readBoard } from '../../../src/features/leaderboards/store.js';
import { calibrationError, wilson } from '../../../src/features/points/index.js';
import { openParts } from '../../help/parts.js';
import { until } from '../../help/until.js';
import { addAgents, addHuman, addScores, addWins, type SeedScore } from './world.js';

const categories = ['technology', 'industry', 'society'];
const day_ms = 86_400_000;

const openWorld = async (test: Test) => {
  const parts = await openParts(test);
  const { deps } = parts;
  const { sql, redis } = deps;
  const prefix = deps.config.REDIS_PREFIX;
  const boards = createBoards(deps);
  const keeper = createBoardRebuild(deps, 20);
  await keeper.start();
  test.teardown(() => keeper.stop());
  const findAll = () => findBoardDifferences({ sql, redis, prefix, now: deps.clock() });
  const settled = () => until('boards as the record', async () => (await findAll()).length === 0);
  const page = (kind: BoardKind, { category = null as string | null, period = 'all' as Period }) =>
    ({ kind, slice: sliceOf({ category, period }, dayOf(deps.clock())) }) as const;
  const mark = (ids: readonly string[]) => sql.begin((tx) => markStanding(tx, ids));
  return { ...parts, sql, redis, prefix, boards, findAll, settled, page, mark };
};

/** Seeded, so that a failure comes back. */
const makeRandom = (seed: number) => () => {
  seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
  return seed / 2 ** 31;
};

const randomScores = (agents: readonly string[], now: Date, most = 60): SeedScore[] => {
  const random = makeRandom(7);
  return agents.flatMap((agent_id) =>
    Array.from({ length: Math.floor(random() * most) }, () => {
      const stated = Math.floor(random() * 101);
      return {
        agent_id,
        category: categories[Math.floor(random() * 3)] ?? '',
        stated,
        hit: random() * 100 < stated,
        resolved_at: new Date(now.getTime() - random() * 50 * day_ms),
      };
    }),
  );
};

/** The same board from the raw scores, by the rules alone. */
const plainBoard = (
  scores: readonly SeedScore[],
  kind: BoardKind,
  chosen: { readonly category: string | null; readonly since: Date | null },
) => {
  const by_agent = new Map<string, SeedScore[]>();
  for (const score of scores) {
    if (chosen.category !== null && score.category !== chosen.category) continue;
    if (chosen.since !== null && score.resolved_at < chosen.since) continue;
    by_agent.set(score.agent_id, [...(by_agent.get(score.agent_id) ?? []), score]);
  }
  const rows = [...by_agent].map(([agent_id, own]) => {
    const shares = own.map(({ stated, hit }) => (hit ? stated : 100 - stated) / 100);
    const n = own.length;
    const correct = shares.filter((share) => share > 0.5).length;
    const bins = Array.from({ length: 10 }, (_, bin) => {
      const some = own.filter(({ stated }) => Math.min(Math.floor(stated / 10), 9) === bin);
      const stated = some.reduce((sum, one) => sum + one.stated / 100, 0);
      return { n: some.length, stated, hits: some.filter(({ hit }) => hit).length };
    });
    const values = {
      points: shares.reduce((sum, p) => sum + Math.round(100 * (1 - 4 * (1 - p) ** 2)), 0),
      accuracy: (100 * correct) / n,
      brier: shares.reduce((sum, share) => sum + (1 - share) ** 2, 0) / n,
      calibration: calibrationError(bins)?.ece ?? 0,
    };
    return { agent_id, n, value: values[kind], interval: wilson(correct, n) };
  });
  const sign = kind === 'points' || kind === 'accuracy' ? -1 : 1;
  return rows
    .filter(({ n }) => kind === 'points' || n >= 10)
    .sort((a, b) => sign * (a.value - b.value) || (a.agent_id < b.agent_id ? -1 : 1));
};

t.test('every board has the agents, values and order that the raw scores give', async (t) => {
  const world = await openWorld(t);
  const { sql, deps, boards } = world;
  const owner_id = await addHuman(sql);
  const agents = await addAgents(sql, Array(40).fill({ owner_id, balance: 5_000 }));
  const now = deps.clock();
  const scores = randomScores(agents, now);
  await addScores(sql, scores);
  await world.mark(agents);
  await world.settled();
  const midnight = Math.floor(now.getTime() / day_ms) * day_ms;
  const since = {
    all: null,
    '30d': new Date(midnight - 29 * day_ms),
    '7d': new Date(midnight - 6 * day_ms),
  };
  for (const kind of board_kinds) {
    for (const category of [null, ...categories]) {
      for (const period of periods) {
        const wanted = plainBoard(scores, kind, { category, since: since[period] });
        if (kind === 'points' && category === null && period === 'all') {
          // There also those are that have nothing resolved.
          const rows = new Set(wanted.map(({ agent_id }) => agent_id));
          const idle = agents.filter((agent_id) => !rows.has(agent_id));
          const nothing = { n: 0, value: 0, interval: wilson(0, 0) };
          wanted.push(...idle.map((agent_id) => ({ agent_id, ...nothing })));
        }
        const ask = {
          ...world.page(kind, { category, period }),
          limit: 100,
          offset: 0,
          after: null,
        };
        const live = await boards.page(ask);
        const name = `${kind} of ${category ?? 'all'} in ${period}`;
        t.equal(live.total, wanted.length, `${name}: ${wanted.length} agents`);
        const told = live.rows.map((row) => ({
          ...row,
          value: shownValue(kind, row.key),
        }));
        const wrong = told.filter((row) => {
          const plain = wanted.find(({ agent_id }) => agent_id === row.agent_id);
          const far = Math.abs((plain?.value ?? 1e9) - row.value) > 0.005;
          return far || plain?.n !== row.detail.n;
        });
        t.same(wrong, [], `${name}: values and numbers`);
        for (const [i, row] of live.rows.entries()) {
          const lower = live.rows.filter((other) => other.key < row.key).length;
          if (row.rank !== lower + 1) t.fail(`${name}: rank ${row.rank} at ${i}`);
        }
        const sorted = [...live.rows].sort(
          (a, b) => a.key - b.key || (a.agent_id < b.agent_id ? -1 : 1),
        );
        t.same(live.rows, sorted, `${name}: in order`);
        if (kind !== 'accuracy') continue;
        for (const row of live.rows) {
          const plain = wanted.find(({ agent_id }) => agent_id === row.agent_id);
          const shown = intervalView(kind, row.detail.interval);
          const far = Math.abs((shown?.low ?? 1e9) - 100 * (plain?.interval.low ?? 0)) > 0.0051;
          if (far) t.fail(`${name}: interval of ${row.agent_id}`);
        }
      }
    }
  }
  const record = await readBoard(sql, {
    ...world.page('brier', {}),
    ...{ limit: 100, offset: 0, after: null },
  });
  t.ok(record.rows.length > 10, 'enough agents have ten resolved predictions');
});

t.test('the record tells the same pages as Redis while Redis has no boards', async (t) => {
  const world = await openWorld(t);
  const { sql, boards, stores } = world;
  const owner_id = await addHuman(sql);
  const agents = await addAgents(
    sql,
    Array.from({ length: 25 }, (_, i) => ({ owner_id, balance: 5_000 + 100 * (i % 3) })),
  );
  await addScores(sql, randomScores(agents, world.deps.clock()));
  await world.mark(agents);
  await world.settled();
  const away = await openParts(t, { stores, redis_url: 'redis://127.0.0.1:1' });
  const from_record = createBoards(away.deps);
  const walk = async (reader: typeof boards, kind: BoardKind): Promise<unknown[]> => {
    const seen: unknown[] = [];
    let after: { key: number; agent_id: string } | null = null;
    for (;;) {
      const ask = { ...world.page(kind, {}), limit: 7, offset: 0, after };
      const found: BoardPage = await reader.page(ask);
      const rows = found.rows.slice(0, 7);
      seen.push(...rows, found.total);
      const last = rows[rows.length - 1];
      if (found.rows.length <= 7 || last === undefined) return seen;
      after = { key: last.key, agent_id: last.agent_id };
    }
  };
  for (const kind of board_kinds) {
    const live = await walk(boards, kind);
    t.ok(live.length > 8, `${kind}: several pages`);
    t.same(await walk(from_record, kind), live, kind);
    const skipping = { ...world.page(kind, {}), limit: 5, offset: 3, after: null };
    t.same(await from_record.page(skipping), await boards.page(skipping), `${kind} by offset`);
  }
  const most = (
    await boards.page({ ...world.page('points', {}), limit: 9, offset: 0, after: null })
  ).rows[0];
  for (const net of [-1_000, 0, 300, 0 - (most?.key ?? 0), 1_000_000]) {
    const of = { net, kind: 'agent' } as const;
    t.equal(await from_record.rank(of), await boards.rank(of), `rank of ${net}`);
  }
  t.equal(await boards.rank({ net: 0 - (most?.key ?? 0), kind: 'agent' }), 1);
  t.equal(await boards.rank({ net: -1_000_000, kind: 'agent' }), 1 + agents.length);
});

t.test('only agents that are linked and not suspended are on boards, as of now', async (t) => {
  const world = await openWorld(t);
  const { sql, boards } = world;
  const owner_id = await addHuman(sql);
  const [one = '', two = '', free = ''] = await addAgents(sql, [
    { owner_id, balance: 1_000 },
    { owner_id, balance: 5_000 },
    { owner_id: null, balance: 9_000 },
  ]);
  await addWins(sql, one, 1);
  await addWins(sql, free, 2);
  await world.mark([one, two, free]);
  const listed = async (): Promise<string[]> => {
    await world.settled();
    const ask = { ...world.page('points', {}), limit: 10, offset: 0, after: null };
    return (await boards.page(ask)).rows.map(({ agent_id }) => agent_id);
  };
  t.same(await listed(), [one, two]);
  // The keeper may look at the agents of a mark once more; after that it knows nothing new.
  await until('no mark is left', async () => {
    const left = await sql`select from standing_changes limit 1`;
    return left.length === 0;
  });
  await sql`update agents set suspended_at = now() where id = ${one}`;
  t.match((await world.findAll()).join(), one, 'nobody marked it: the check tells');
  await world.mark([one]);
  t.same(await listed(), [two]);
  await sql`update agents set suspended_at = null where id = ${one}`;
  await sql`update agents set owner_id = ${owner_id}, linked_at = now() where id = ${free}`;
  await world.mark([one, free]);
  t.same(await listed(), [free, one, two]);
  await sql`update accounts set balance = 900_000 where agent_id = ${two}`;
  await world.mark([two]);
  t.same(await listed(), [free, one, two], 'what was not earned by forecasts moves nobody');
  await sql`update scores set net = -43 where agent_id = ${free}`;
  await world.mark([free]);
  t.same(await listed(), [one, two, free]);
  const ask = { ...world.page('points', {}), limit: 1, offset: 2, after: null };
  t.equal((await boards.page(ask)).rows[0]?.key, 86, 'who lost stands behind who did nothing');
});

t.test('imported agents are ranked among themselves', async (t) => {
  const world = await openWorld(t);
  const { sql, boards } = world;
  const nobody = await ensureImportOwner(sql);
  const [own = '', first = '', second = ''] = await addAgents(sql, [
    { owner_id: await addHuman(sql), balance: 5_000 },
    { owner_id: nobody, balance: 500_000 },
    { owner_id: nobody, balance: 5_000 },
  ]);
  await addWins(sql, own, 12);
  await addWins(sql, first, 15);
  await addWins(sql, second, 20);
  await world.mark([own, first, second]);
  await world.settled();
  const away = await openParts(t, { stores: world.stores, redis_url: 'redis://127.0.0.1:1' });
  for (const reader of [boards, createBoards(away.deps)]) {
    for (const kind of ['points', 'brier'] as const) {
      const of = async (agents: 'agent' | 'imported') => {
        const slice = sliceOf({ category: null, period: '7d' }, dayOf(world.deps.clock()));
        const ask = { kind, agents, slice, limit: 9, offset: 0, after: null };
        const found = await reader.page(ask);
        return found.rows.map(({ agent_id, rank }) => [agent_id, rank]);
      };
      t.same(await of('agent'), [[own, 1]], kind);
      t.same((await of('imported')).map(([id]) => id).sort(), [first, second].sort());
    }
    t.equal(await reader.rank({ net: 1_200, kind: 'agent' }), 1);
    t.equal(await reader.rank({ net: 1_500, kind: 'imported' }), 2);
  }
  t.same(await readNet(sql, first), { net: 1_500, kind: 'imported' });
});

t.test('a mark that commits late is not lost to a keeper that was there before', async (t) => {
  const world = await openWorld(t);
  const { sql } = world;
  const owner_id = await addHuman(sql);
  const [one = '', two = ''] = await addAgents(sql, [
    { owner_id, balance: 5_000 },
    { owner_id, balance: 5_000 },
  ]);
  await world.mark([one, two]);
  await world.settled();
  await sql.begin(async (tx) => {
    await addWins(tx as never, one, 20);
    await markStanding(tx, [one]);
    // Others mark the same agent and are done before this transaction is.
    await world.mark([one, two]);
    await until('the other marks are taken', async () => {
      const [row] = await sql<{ n: number }[]>`select count(*)::int as n from standing_changes`;
      return row?.n === 0;
    });
  });
  await world.settled();
  t.equal(await world.boards.rank({ net: 1_999, kind: 'agent' }), 2);
});

t.test('ten resolved predictions are enough for a place and nine are not', async (t) => {
  const world = await openWorld(t);
  const { sql, boards } = world;
  const owner_id = await addHuman(sql);
  const agents = await addAgents(sql, Array(2).fill({ owner_id, balance: 5_000 }));
  const resolved_at = world.deps.clock();
  const score = { category: 'society', stated: 80, hit: true, resolved_at };
  const [ten = '', nine = ''] = agents;
  await addScores(sql, [
    ...Array.from({ length: 10 }, () => ({ ...score, agent_id: ten })),
    ...Array.from({ length: 9 }, () => ({ ...score, agent_id: nine })),
  ]);
  await world.mark(agents);
  await world.settled();
  for (const kind of ['accuracy', 'brier', 'calibration'] as const) {
    const ask = { ...world.page(kind, {}), limit: 10, offset: 0, after: null };
    const found = await boards.page(ask);
    t.same(
      found.rows.map(({ agent_id, detail }) => [agent_id, detail.n]),
      [[ten, 10]],
      kind,
    );
    t.ok(found.rows[0]?.detail.interval, 'with an interval');
  }
  const ask = {
    ...world.page('points', { category: 'society' }),
    limit: 10,
    offset: 0,
    after: null,
  };
  t.equal((await boards.page(ask)).total, 2, 'points have no minimum');
});

t.test('periods move with the UTC day, and until then the record answers', async (t) => {
  const world = await openWorld(t);
  const { sql, boards, deps } = world;
  const owner_id = await addHuman(sql);
  const [one = ''] = await addAgents(sql, [{ owner_id, balance: 5_000 }]);
  const midnight = Math.floor(deps.clock().getTime() / day_ms) * day_ms;
  await addScores(sql, [
    {
      agent_id: one,
      category: 'society',
      stated: 80,
      hit: true,
      resolved_at: new Date(midnight - 6 * day_ms),
    },
    {
      agent_id: one,
      category: 'society',
      stated: 90,
      hit: true,
      resolved_at: new Date(midnight - 6 * day_ms - 1),
    },
  ]);
  await world.mark([one]);
  await world.settled();
  const look = async () => {
    const ask = { ...world.page('points', { period: '7d' }), limit: 10, offset: 0, after: null };
    return (await boards.page(ask)).rows.map(({ detail }) => detail.n);
  };
  t.same(await look(), [1]);
  world.advance(day_ms);
  t.same(await look(), [], 'of the new day at once');
  await world.settled();
  t.same(await look(), []);
});

t.test('boards that are gone, or were made by another program, are made anew', async (t) => {
  const world = await openWorld(t);
  const { sql, redis, prefix } = world;
  const owner_id = await addHuman(sql);
  const [one = ''] = await addAgents(sql, [{ owner_id, balance: 5_000 }]);
  await addWins(sql, one, 10);
  await world.mark([one]);
  await world.settled();
  await redis.flushall();
  t.equal(await world.boards.rank({ net: 999, kind: 'agent' }), 2, 'meanwhile by the record');
  await world.settled();
  const key = boardKey(prefix, { kind: 'points', slot: 'all:all' });
  await redis.zrem(key, (await redis.zrange(key, '1', '1'))[0] as string);
  t.match((await world.findAll()).join(), /board points of all:all: agent .* has nothing/);
  await redis.hset(`${prefix}:{boards}:built`, 'all:all', 'another form');
  await world.settled();
  t.equal(await redis.exists(`${key}:new`), 0);
});

t.test('beyond the boards in Redis pages and ranks come from the record', async (t) => {
  const world = await openWorld(t);
  const { sql, boards, redis, prefix } = world;
  const owner_id = await addHuman(sql);
  const count = most_in_redis + 5;
  const agents: string[] = [];
  while (agents.length < count) {
    const some = Math.min(1_000, count - agents.length);
    agents.push(...(await addAgents(sql, Array(some).fill({ owner_id, balance: 5_000 }))));
  }
  const [first = '', second = ''] = agents;
  await addWins(sql, first, 2);
  await addScores(sql, [
    {
      ...{ agent_id: second, category: 'society', stated: 100, hit: false },
      resolved_at: world.deps.clock(),
    },
  ]);
  await world.mark(agents);
  await world.settled();
  const key = boardKey(prefix, { kind: 'points', slot: 'all:all' });
  t.equal(await redis.zcard(key), most_in_redis + 1, 'a head and the first');
  const page = world.page('points', {});
  const last = await boards.page({ ...page, limit: 10, offset: most_in_redis - 5, after: null });
  t.equal(last.total, count);
  t.equal(last.rows.length, 10);
  t.match(last.rows.at(-1), { agent_id: second, rank: count });
  const [before] = last.rows.slice(-2);
  const after = { key: before?.key ?? 0, agent_id: before?.agent_id ?? '' };
  t.same((await boards.page({ ...page, limit: 10, offset: 0, after })).rows, last.rows.slice(-1));
  const rank = (net: number) => boards.rank({ net, kind: 'agent' });
  t.same(await Promise.all([rank(200), rank(0), rank(-300)]), [1, 2, count]);
});

t.test('the record of an agent has the same figures as the boards', async (t) => {
  const { sql, deps, boards, mark, settled, page } = await openWorld(t);
  const owner_id = await addHuman(sql);
  const agents = await addAgents(sql, Array(30).fill({ owner_id, balance: 5_000 }));
  await addScores(sql, randomScores(agents, deps.clock(), 90));
  // Thirds and thirty-seconds, whose last digit a rounding could lose.
  await sql`update scores set brier = (brier + 1) / 3 where stated % 3 = 0`;
  await mark(agents);
  await settled();
  let compared = 0;
  for (const kind of ['accuracy', 'brier', 'calibration'] as const) {
    const found = await boards.page({ ...page(kind, {}), limit: 100, offset: 0, after: null });
    for (const { agent_id, key, detail } of found.rows) {
      const ask = { agent_id, points: 5_000, now: deps.clock() };
      const told = await readPerformance(sql, ask);
      const value = kind === 'calibration' ? told.calibration.ece : told[kind];
      t.equal(value, shownValue(kind, key), `${kind} of ${detail.n}`);
      compared += 1;
    }
  }
  t.ok(compared > 40);
});
