import type { Test } from 'tap';
import { ensureImportOwner } from '../../../src/features/accounts/index.js';
import {
  createBoards,
  findBoardDifferences,
  markStanding,
  readPerformance,
  readRank,
} from '../../../src/features/leaderboards/index.js';
import { boardKey, max_in_redis } from '../../../src/features/leaderboards/live.js';
import {
  type BoardKind,
  board_kinds,
  dayOf,
  type Period,
  periods,
  sliceOf,
} from '../../../src/features/leaderboards/rules.js';
import {
  type BoardPage,
  type BoardQuery,
  readBoard,
} from '../../../src/features/leaderboards/store.js';
import { calibrationError, wilson } from '../../../src/features/points/calibration.js';
import { openParts } from '../../help/parts.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import {
  addAgents,
  addGroups,
  addHuman,
  addScores,
  addWins,
  logOf,
  type SeedScore,
  whileRebuilding,
} from './world.js';

const categories = ['technology', 'industry', 'society'];
const day_ms = 86_400_000;

interface Part extends Partial<Omit<BoardQuery, 'kind' | 'slice'>> {
  readonly category?: string | null;
  readonly period?: Period;
}

const openWorld = async (test: Test) => {
  const parts = await openParts(test);
  const { deps } = parts;
  const { sql, redis } = deps;
  const prefix = deps.config.REDIS_PREFIX;
  const boards = createBoards(deps);
  const findAll = () => findBoardDifferences({ sql, redis, prefix, now: deps.clock() });
  /** Waits until every marked change has been processed. */
  const taken = () =>
    until('no change is left', async () => {
      return (await sql`select from standing_changes limit 1`).length === 0;
    });
  const settled = () =>
    whileRebuilding(deps, async () => {
      await taken();
      await until('boards as the record', async () => (await findAll()).length === 0, 30_000, 50);
    });
  /** A hundred rows of the overall board, unless `part` selects another board. */
  const queryOf = (kind: BoardKind, { category = null, period = 'all', ...more }: Part = {}) => {
    const slice = sliceOf({ category, period }, dayOf(deps.clock()));
    return { kind, slice, limit: 100, offset: 0, after: null, ...more };
  };
  const page = (kind: BoardKind, part?: Part, reader = boards) => reader.page(queryOf(kind, part));
  const mark = (ids: readonly string[]) => sql.begin((tx) => markStanding(tx, ids));
  /** Marks the agents as changed, and waits until the boards are correct. */
  const settle = async (ids: readonly string[]) => {
    await mark(ids);
    await settled();
  };
  const owner_id = await addHuman(sql);
  const addOwned = (count: number) =>
    addAgents(sql, Array(count).fill({ owner_id, balance: 5_000 }));
  return {
    ...parts,
    sql,
    redis,
    prefix,
    boards,
    owner_id,
    addOwned,
    findAll,
    taken,
    settled,
    settle,
    page,
    queryOf,
    mark,
  };
};

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

/** Makes random numbers from a seed, so that a failure can be reproduced. */
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
        relative: random() < 0.2 ? null : 200 * random() - 120,
        skill: random() < 0.2 ? null : random() - 0.4,
        hit: random() * 100 < stated,
        resolved_at: new Date(now.getTime() - random() * 50 * day_ms),
      };
    }),
  );
};

/** Computes the same board directly from the raw scores. */
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
    const given = (values: readonly (number | null | undefined)[]) =>
      values.filter((value) => value !== null && value !== undefined);
    const relative = given(own.map((one) => one.relative));
    const skill = given(own.map((one) => one.skill));
    const value: Readonly<Record<BoardKind, readonly [number, number]>> = {
      points: [n, shares.reduce((sum, p) => sum + Math.round(100 * (1 - 4 * (1 - p) ** 2)), 0)],
      accuracy: [n, (100 * correct) / n],
      brier: [n, mean(shares.map((share) => (1 - share) ** 2))],
      log: [n, mean(shares.map(logOf))],
      relative: [relative.length, mean(relative)],
      skill: [skill.length, mean(skill)],
      calibration: [n, calibrationError(bins)?.ece ?? 0],
    };
    const [count, shown] = value[kind];
    const interval = wilson(correct, n);
    return {
      agent_id,
      n: count,
      value: shown,
      interval,
      key: kind === 'accuracy' ? interval.low : shown,
    };
  });
  const sign = kind === 'brier' || kind === 'calibration' ? 1 : -1;
  return rows
    .filter(({ n }) => kind === 'points' || n >= 10)
    .sort((a, b) => sign * (a.key - b.key) || (a.agent_id < b.agent_id ? -1 : 1));
};

t.test('every board has the agents, values and order that the raw scores give', async (t) => {
  const { sql, deps, page, queryOf, settle, addOwned } = await openWorld(t);
  const agents = await addOwned(40);
  const now = deps.clock();
  const scores = randomScores(agents, now);
  await addScores(sql, scores);
  await settle(agents);
  const midnight = dayOf(now) * day_ms;
  const since = {
    all: null,
    '30d': new Date(midnight - 29 * day_ms),
    '7d': new Date(midnight - 6 * day_ms),
  };
  const slices = [null, ...categories].flatMap((category) =>
    periods.map((period) => ({ category, period })),
  );
  for (const kind of board_kinds) {
    for (const { category, period } of slices) {
      const wanted = plainBoard(scores, kind, { category, since: since[period] });
      if (kind === 'points' && category === null && period === 'all') {
        // Agents without resolved questions are listed too.
        const rows = new Set(wanted.map(({ agent_id }) => agent_id));
        const idle = agents.filter((agent_id) => !rows.has(agent_id));
        const nothing = { n: 0, value: 0, key: 0, interval: wilson(0, 0) };
        wanted.push(...idle.map((agent_id) => ({ agent_id, ...nothing })));
      }
      const { total, rows } = await page(kind, { category, period });
      const name = `${kind} of ${category ?? 'all'} in ${period}`;
      t.equal(total, wanted.length, `${name}: ${wanted.length} agents`);
      const wrong = rows.filter(({ agent_id, key, rank, detail }) => {
        const plain = wanted.find((one) => one.agent_id === agent_id);
        const far = Math.abs((plain?.value ?? 1e9) - detail.value) > 0.005;
        const low = detail.interval?.low ?? 1e9;
        const is_off = Math.abs(low - 100 * (plain?.interval.low ?? 0)) > 0.0051;
        const lower = rows.filter((other) => other.key < key).length;
        return (
          far || plain?.n !== detail.n || rank !== lower + 1 || (kind === 'accuracy' && is_off)
        );
      });
      t.same(wrong, [], `${name}: values, numbers, ranks, intervals`);
      const sorted = [...rows].sort((a, b) => a.key - b.key || (a.agent_id < b.agent_id ? -1 : 1));
      t.same(rows, sorted, `${name}: in order`);
      const keyOf = ({ agent_id }: { agent_id: string }) =>
        Math.round(1e6 * (wanted.find((one) => one.agent_id === agent_id)?.key ?? 1e9));
      const keys = rows.map(keyOf);
      const is_best_first = kind !== 'brier' && kind !== 'calibration';
      const in_order = [...keys].sort((a, b) => (is_best_first ? b - a : a - b));
      t.same(keys, in_order, `${name}: the best first`);
    }
  }
  const record = await readBoard(sql, queryOf('brier'));
  t.ok(record.rows.length > 10, 'enough agents have ten resolved predictions');
});

t.test(
  'an imported market is shown for comparison beside others, and ranked among the imported',
  async (t) => {
    const { sql, deps, page, settle, addOwned } = await openWorld(t);
    const [agent = '', market = ''] = await addOwned(2);
    await sql`
    update agents
    set name = 'Exchange', model = 'market', owner_id = ${await ensureImportOwner(sql)}
    where id = ${market}`;
    const of = { category: 'society', resolved_at: deps.clock(), hit: true };
    await addScores(sql, [
      ...Array(10).fill({ ...of, agent_id: agent, stated: 70 }),
      ...Array(10).fill({ ...of, agent_id: market, stated: 90 }),
    ]);
    await settle([agent, market]);
    const look = async (part: Part) => {
      const { rows } = await page('brier', part);
      return rows.map(({ rank, detail }) => [rank, detail.name ?? 'agent', detail.value]);
    };
    t.same(await look({}), [
      [null, 'Exchange', 0.01],
      [1, 'agent', 0.09],
    ]);
    t.same(await look({ of: 'imported' }), [[1, 'agent', 0.01]]);
  },
);

t.test('families, models and references stand where their mean scores put them', async (t) => {
  const { sql, deps, stores, page, settle, settled, addOwned } = await openWorld(t);
  const [agent = ''] = await addOwned(1);
  const at = deps.clock();
  const base = { category: 'society', resolved_at: at };
  const repeat = (kind: string, name: string, share: number, more = {}) =>
    Array.from({ length: 10 }, () => ({ ...base, kind, name, share, ...more }));
  await addGroups(sql, [
    ...repeat('family', 'claude', 0.8, { relative: 12.5 }),
    ...repeat('family', 'gpt', 0.6, { relative: -3 }),
    ...repeat('family', 'gpt', 0.4, { category: 'industry', relative: 1 }),
    ...repeat('family', 'grok', 0.99).slice(1),
    ...repeat('model', 'gpt-5', 0.55),
    ...repeat('crowd', 'crowd', 0.75),
    ...repeat('even', 'even', 0.5),
  ]);
  await addScores(sql, Array(10).fill({ ...base, agent_id: agent, stated: 70, hit: true }));
  await settle([agent]);
  const away = await openParts(t, { stores, redis_url: 'redis://127.0.0.1:1' });
  const from_record = createBoards(away.deps);
  const look = async (kind: BoardKind, part: Part) => {
    const found = await page(kind, part);
    t.same(await page(kind, part, from_record), found, 'the record has the same');
    t.equal(found.total, found.rows.length);
    return found.rows.map(({ rank, detail }) => [
      rank,
      detail.name ?? 'agent',
      detail.value,
      detail.n,
    ]);
  };
  const crowd = [null, 'crowd', 0.0625, 10];
  const even = [null, 'even', 0.25, 10];
  t.same(await look('brier', { of: 'family' }), [
    [1, 'claude', 0.04, 10],
    crowd,
    even,
    // 0.26 is (0.16 + 0.36) / 2.
    [2, 'gpt', 0.26, 20],
  ]);
  t.same(await look('brier', { of: 'family', category: 'society' }), [
    [1, 'claude', 0.04, 10],
    crowd,
    [2, 'gpt', 0.16, 10],
    even,
  ]);
  t.same(await look('brier', { of: 'model' }), [crowd, [1, 'gpt-5', 0.2025, 10], even]);
  t.same(await look('brier', {}), [crowd, [1, 'agent', 0.09, 10], even], 'agents beside them');
  t.same(await look('relative', { of: 'family' }), [
    [1, 'claude', 12.5, 10],
    [2, 'gpt', -1, 20],
  ]);
  t.same(await look('log', { of: 'family', category: 'industry' }), [
    [1, 'gpt', Math.round(1e6 * Math.log(0.4)) / 1e6, 10],
  ]);
  t.same(
    (await look('accuracy', { of: 'family' })).map(([rank, name, value]) => [rank, name, value]),
    // An even guess takes no side. Half of gpt's forecasts were correct.
    [
      [1, 'claude', 100],
      [null, 'crowd', 100],
      [2, 'gpt', 50],
    ].sort((a, b) => Number(b[2]) - Number(a[2]) || (a[1] === 'crowd' ? -1 : 1)),
  );
  const first = await page('brier', { limit: 2, of: 'family' });
  const [, last] = first.rows;
  const after = { key: last?.key ?? 0, agent_id: last?.agent_id ?? '' };
  const second = await page('brier', { limit: 2, of: 'family', after });
  t.same(
    second.rows.map(({ detail }) => detail.name),
    ['even', 'gpt'],
    'pages follow each other',
  );
  t.same(await page('brier', { limit: 2, of: 'family', after }, from_record), second);
  await addGroups(sql, repeat('family', 'grok', 0.99).slice(9));
  await sql.begin((tx) => markStanding(tx, [], 'society'));
  await settled();
  const [grok] = (await page('brier', { of: 'family' })).rows;
  t.match(grok, { rank: 1, key: 0.0001, detail: { name: 'grok' } });
});

t.test('the record gives the same pages as Redis while Redis has no boards', async (t) => {
  const { sql, deps, boards, stores, page, settle, addOwned } = await openWorld(t);
  const agents = await addOwned(25);
  await addScores(sql, randomScores(agents, deps.clock()));
  await settle(agents);
  const away = await openParts(t, { stores, redis_url: 'redis://127.0.0.1:1' });
  const from_record = createBoards(away.deps);
  const walk = async (reader: typeof boards, kind: BoardKind): Promise<unknown[]> => {
    const seen: unknown[] = [];
    let after: BoardQuery['after'] = null;
    for (;;) {
      const found: BoardPage = await page(kind, { limit: 7, after }, reader);
      const rows = found.rows.slice(0, 7);
      seen.push(...rows, found.total);
      const last = rows.at(-1);
      if (found.rows.length <= 7 || last === undefined) return seen;
      after = { key: last.key, agent_id: last.agent_id };
    }
  };
  for (const kind of board_kinds) {
    const live = await walk(boards, kind);
    t.ok(live.length > 8, `${kind}: several pages`);
    t.same(await walk(from_record, kind), live, kind);
    const skipping = { limit: 5, offset: 3 };
    const live_rows = await page(kind, skipping);
    t.same(await page(kind, skipping, from_record), live_rows, `${kind} by offset`);
  }
  for (const { agent_id, rank } of (await page('points')).rows) {
    t.equal(await readRank(sql, agent_id), rank);
  }
});

t.test('only agents that are linked and not suspended are on boards, as of now', async (t) => {
  const world = await openWorld(t);
  const { sql, owner_id, page, settle } = world;
  const [one = '', two = '', free = ''] = await addAgents(sql, [
    { owner_id, balance: 1_000 },
    { owner_id, balance: 5_000 },
    { owner_id: null, balance: 9_000 },
  ]);
  await addWins(sql, one, 1);
  await addWins(sql, free, 2);
  const listAfter = async (marked: readonly string[]): Promise<string[]> => {
    await settle(marked);
    return (await page('points')).rows.map(({ agent_id }) => agent_id);
  };
  t.same(await listAfter([one, two, free]), [one, two]);
  await sql`update agents set suspended_at = now() where id = ${one}`;
  t.match((await world.findAll()).join(), one, 'nobody marked it: the check finds it');
  t.same(await listAfter([one]), [two]);
  await sql`update agents set suspended_at = null where id = ${one}`;
  await sql`update agents set owner_id = ${owner_id}, linked_at = now() where id = ${free}`;
  t.same(await listAfter([one, free]), [free, one, two]);
  await sql`update accounts set balance = 900_000 where agent_id = ${two}`;
  t.same(await listAfter([two]), [free, one, two], 'what was not earned by forecasts moves nobody');
  await sql`update scores set net = -43 where agent_id = ${free}`;
  t.same(await listAfter([free]), [one, two, free]);
  const last = (await page('points', { limit: 1, offset: 2 })).rows[0];
  t.equal(last?.key, 86, 'a loser comes after an agent that did nothing');
});

t.test('imported agents are ranked among themselves, and with all', async (t) => {
  const { sql, boards, stores, owner_id, page, settle } = await openWorld(t);
  const nobody = await ensureImportOwner(sql);
  const [own = '', first = '', second = ''] = await addAgents(sql, [
    { owner_id, balance: 5_000 },
    { owner_id: nobody, balance: 500_000 },
    { owner_id: nobody, balance: 5_000 },
  ]);
  await addWins(sql, own, 12);
  await addWins(sql, first, 15);
  await addWins(sql, second, 20);
  await settle([own, first, second]);
  const away = await openParts(t, { stores, redis_url: 'redis://127.0.0.1:1' });
  for (const reader of [boards, createBoards(away.deps)]) {
    for (const kind of ['points', 'brier'] as const) {
      const readOf = async (of: 'agent' | 'imported' | 'all') => {
        const found = await page(kind, { of, period: '7d' }, reader);
        return found.rows.map(({ agent_id, rank }) => [agent_id, rank]);
      };
      t.same(await readOf('agent'), [[own, 1]], kind);
      t.same((await readOf('imported')).map(([id]) => id).sort(), [first, second].sort());
      t.same((await readOf('all')).map(([id]) => id).sort(), [own, first, second].sort());
    }
  }
  t.same(await Promise.all([own, first, second].map((id) => readRank(sql, id))), [1, 2, 1]);
});

t.test('a change that commits late is not lost to a rebuild that was there before', async (t) => {
  const { sql, deps, taken, settled, settle, mark, addOwned } = await openWorld(t);
  const [one = '', two = ''] = await addOwned(2);
  await settle([one, two]);
  await sql.begin(async (tx) => {
    await addWins(tx as never, one, 20);
    await markStanding(tx, [one]);
    // Another transaction marks the same agent and commits before this one.
    await mark([one, two]);
    await whileRebuilding(deps, taken);
  });
  await settled();
  t.same([await readRank(sql, one), await readRank(sql, two)], [1, 2]);
});

t.test('ten resolved predictions are enough for a place and nine are not', async (t) => {
  const { sql, deps, page, settle, addOwned } = await openWorld(t);
  const [ten = '', nine = ''] = await addOwned(2);
  const score = { category: 'society', stated: 80, hit: true, resolved_at: deps.clock() };
  await addScores(sql, [
    ...Array.from({ length: 10 }, () => ({ ...score, agent_id: ten })),
    ...Array.from({ length: 9 }, () => ({ ...score, agent_id: nine })),
  ]);
  await settle([ten, nine]);
  for (const kind of ['accuracy', 'brier', 'calibration'] as const) {
    const { rows } = await page(kind);
    const numbers = rows.map(({ agent_id, detail }) => [agent_id, detail.n]);
    t.same(numbers, [[ten, 10]], kind);
    t.ok(rows[0]?.detail.interval, 'with an interval');
  }
  const points = await page('points', { category: 'society' });
  t.equal(points.total, 2, 'points have no minimum');
});

t.test('periods move with the UTC day, and until then the record answers', async (t) => {
  const { sql, deps, advance, page, settle, settled, addOwned } = await openWorld(t);
  const [one = ''] = await addOwned(1);
  const first_day = (dayOf(deps.clock()) - 6) * day_ms;
  const score = { agent_id: one, category: 'society', stated: 80, hit: true };
  await addScores(sql, [
    { ...score, resolved_at: new Date(first_day) },
    { ...score, resolved_at: new Date(first_day - 1) },
  ]);
  await settle([one]);
  const look = async () =>
    (await page('points', { period: '7d' })).rows.map(({ detail }) => detail.n);
  t.same(await look(), [1]);
  advance(day_ms);
  t.same(await look(), [], 'of the new day at once');
  await settled();
  t.same(await look(), []);
});

t.test('boards that are gone, or were made by another program, are made anew', async (t) => {
  const { sql, redis, prefix, findAll, page, settle, settled, addOwned } = await openWorld(t);
  const [one = ''] = await addOwned(1);
  await addWins(sql, one, 10);
  await settle([one]);
  await redis.flushall();
  t.equal((await page('points')).total, 1, 'meanwhile by the record');
  await settled();
  const key = boardKey(prefix, { kind: 'points', slot: 'all:all' });
  await redis.zrem(key, (await redis.zrange(key, '1', '1'))[0] as string);
  t.match((await findAll()).join(), /board points of all:all: agent .* has nothing/);
  await redis.hset(`${prefix}:{boards}:built`, 'all:all', 'another form');
  await settled();
  t.equal(await redis.exists(`${key}:new`), 0);
});

t.test('beyond the boards in Redis pages and ranks come from the record', async (t) => {
  const { sql, deps, redis, prefix, page, settle, addOwned } = await openWorld(t);
  const count = max_in_redis + 5;
  const agents: string[] = [];
  while (agents.length < count) {
    agents.push(...(await addOwned(Math.min(1_000, count - agents.length))));
  }
  const [first = '', second = ''] = agents;
  await addWins(sql, first, 2);
  const lost = { agent_id: second, category: 'society', stated: 100, hit: false };
  await addScores(sql, [{ ...lost, resolved_at: deps.clock() }]);
  await settle(agents);
  const key = boardKey(prefix, { kind: 'points', slot: 'all:all' });
  t.equal(await redis.zcard(key), max_in_redis + 1, 'a head and the first');
  const last = await page('points', { limit: 10, offset: max_in_redis - 5 });
  t.same([last.total, last.rows.length], [count, 10]);
  t.match(last.rows.at(-1), { agent_id: second, rank: count });
  const [before] = last.rows.slice(-2);
  const after = { key: before?.key ?? 0, agent_id: before?.agent_id ?? '' };
  t.same((await page('points', { after })).rows, last.rows.slice(-1));
  const ranks = await Promise.all([first, agents[2] ?? '', second].map((id) => readRank(sql, id)));
  t.same(ranks, [1, 2, count]);
});

t.test('the record of an agent has the same figures as the boards', async (t) => {
  const { sql, deps, page, settle, addOwned } = await openWorld(t);
  const agents = await addOwned(30);
  await addScores(sql, randomScores(agents, deps.clock(), 90));
  // Some Brier scores become thirds, whose last digit could be lost by rounding.
  await sql`update scores set brier = (brier + 1) / 3 where stated % 3 = 0`;
  await settle(agents);
  let compared = 0;
  for (const kind of ['accuracy', 'brier', 'calibration'] as const) {
    for (const { agent_id, detail } of (await page(kind)).rows) {
      const own = await readPerformance(sql, { agent_id, points: 5_000, now: deps.clock() });
      const value = kind === 'calibration' ? own.calibration.ece : own[kind];
      t.equal(value, detail.value, `${kind} of ${detail.n}`);
      compared += 1;
    }
  }
  t.ok(compared > 40);
});
