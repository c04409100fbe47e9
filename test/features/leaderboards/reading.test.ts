import { ensureImportOwner } from '../../../src/features/accounts/index.js';
import { makeAdjustedBoards } from '../../../src/features/leaderboards/adjusted.js';
import { findBoardDifferences } from '../../../src/features/leaderboards/index.js';
import { boardKey } from '../../../src/features/leaderboards/live.js';
import { board_kinds, group_kinds } from '../../../src/features/leaderboards/rules.js';
import type { Entry } from '../../../src/features/leaderboards/schema.js';
import { makeId } from '../../../src/kit/ids.js';
import { startApp } from '../../help/app.js';
import { openParts } from '../../help/parts.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { addAgents, addGroups, addHuman, addScores, whileRebuilding } from './world.js';

/** Boards with the values of the other boards, found by name, and over time. */

const app = await startApp(t, { roles: ['api'], env: { LIMIT_IP: '1000000' } });
const { deps } = await openParts(t, { stores: app.stores });
const { sql } = app;
const prefix = app.stores.redis_prefix;
const settle = () =>
  whileRebuilding(deps, () =>
    until(
      'the boards',
      async () =>
        (await findBoardDifferences({ sql, redis: deps.redis, prefix, now: new Date() })).length ===
        0,
      30_000,
      50,
    ),
  );
const read = async (path: string) => (await app.call('GET', path)).body;
const idOf = ({ kind, user_id, name }: Entry): string => user_id ?? `${kind} ${name}`;

const day_ms = 86_400_000;
const questions = Array.from({ length: 40 }, (_, n) => ({
  question_id: makeId(),
  category: n % 2 === 0 ? 'society' : 'technology',
  resolved_at: new Date(Date.now() - (40 - n) * day_ms),
}));

const nobody = await ensureImportOwner(sql);
const owner_id = await addHuman(sql);
const agents = await addAgents(sql, [
  ...Array.from({ length: 10 }, () => ({ owner_id, balance: 5_000 })),
  ...Array.from({ length: 4 }, () => ({ owner_id: nobody, balance: 5_000 })),
]);
const [first = '', second = '', third = '', market = ''] = [...agents.slice(0, 3), agents.at(-1)];
await sql`update agents set name = 'Exchange', model = 'market' where id = ${market}`;
await sql`update agents set name = 'Harbour Lamp', name_key = 'harbour lamp' where id = ${first}`;
await sql`update agents set name = 'Lampion', name_key = 'lampion' where id = ${second}`;
await sql`update agents set name = 'Lamplight', name_key = 'lamplight' where id = ${third}`;
await addScores(
  sql,
  agents.flatMap((agent_id, a) =>
    // The tenth agent has no resolved question, and the ninth has only seven.
    questions
      .slice(0, a === 9 ? 0 : a === 8 ? 7 : 40)
      .map((question, q) => ({
        ...question,
        agent_id,
        stated: (a * 7 + q * 13) % 101,
        hit: (a + q) % 3 !== 0,
        relative: q % 5 === 0 ? null : ((a * 31 + q * 17) % 200) - 100.5,
        skill: q % 4 === 0 ? null : (((a * 3 + q * 11) % 100) - 50) / 100,
      })),
  ),
);
await addGroups(
  sql,
  [
    'family claude',
    'family gpt',
    'model gpt-5',
    'model claude-4',
    'crowd crowd',
    'even even',
  ].flatMap((group, g) => {
    const [kind = '', name = ''] = group.split(' ');
    const is_reference = kind === name;
    return questions.map((question, q) => ({
      ...question,
      kind,
      name,
      share: kind === 'even' ? 0.5 : ((g * 29 + q * 37) % 99) / 100 + 0.01,
      relative: is_reference ? null : g - q,
    }));
  }),
);
/** Gives each scored question a row. It closed an hour before its resolution. */
const hour_ms = 3_600_000;
const addQuestions = () => sql`
  insert into questions (
    id, question, category, question_type, status, timeframe, opens_at, closes_at, closed_at,
    resolution_date, published_at, resolved_at, outcome
  )
  select
    question_id, 'Will series ' || question_id || ' end above its median?', min(category), 'binary',
    'resolved', 'long', at - interval '9 days', at, at, at, at - interval '9 days', max(resolved_at), true
  from forecaster_scores
  cross join lateral (select resolved_at - interval '1 hour' as at) closed
  group by question_id, at
  on conflict do nothing`;
const closeOf = (resolved_at: Date): string =>
  new Date(resolved_at.getTime() - hour_ms).toISOString();
await addQuestions();
// Thirds, whose last digit could be lost by rounding.
await sql`update scores set brier = (brier + 1) / 3 where stated % 300 = 0`;
await sql`insert into standing_changes (agent_id) select unnest(${agents}::uuid[])`;
await settle();
await makeAdjustedBoards(sql, new Date());

const slices = ['', '&category=society', '&category=technology&period=30d'];
const slots = ['all:all', 'society:all', 'technology:30d'];
const figuresKey = (slot: string) => `${prefix}:{boards}:figures:${slot}`;

for (const source of ['Redis', 'Postgres']) {
  t.test(`rows have the values of all boards of their slice, from ${source}`, async (t) => {
    if (source === 'Postgres') await deps.redis.del(...slots.map(figuresKey));
    let compared = 0;
    for (const of of ['agents', 'agents&kind=imported', 'agents&kind=all', 'families', 'models']) {
      for (const slice of slices) {
        const kinds = of.startsWith('agents') ? board_kinds : group_kinds;
        const names = [...kinds, ...(slice === '' ? (['adjusted'] as const) : [])];
        const boards = new Map<string, Map<string, number>>();
        for (const by of names) {
          const path = `/api/leaderboard?by=${by}&of=${of}${slice}&limit=100`;
          const { leaderboard } = await read(path);
          boards.set(by, new Map(leaderboard.map((row: Entry) => [idOf(row), row.value])));
        }
        for (const by of names) {
          const path = `/api/leaderboard?by=${by}&of=${of}${slice}&limit=100&include=scores`;
          for (const row of (await read(path)).leaderboard as Entry[]) {
            const wanted = [...board_kinds, 'adjusted'].map((kind) => [
              kind,
              boards.get(kind)?.get(idOf(row)) ?? null,
            ]);
            t.same(row.scores, Object.fromEntries(wanted), `${row.name} in ${path}`);
            compared += 1;
          }
        }
      }
    }
    t.ok(compared > 300, `${compared} rows`);
    const plain = await read('/api/leaderboard?by=brier');
    t.equal(plain.leaderboard[0].scores, undefined, 'only on request');
  });
}

t.test('values in Redis that are wrong are found', async (t) => {
  const find = () => findBoardDifferences({ sql, redis: deps.redis, prefix, now: new Date() });
  t.match((await find()).join(), /the values of all:all are wrong for/);
  await deps.redis.hdel(`${prefix}:{boards}:built`, ...slots);
  await settle();
  await deps.redis.hset(figuresKey('all:all'), first, '{}');
  t.same(await find(), [`the values of all:all are wrong for ${first}`]);
});

t.test('an even guess has no accuracy', async (t) => {
  const { leaderboard } = await read('/api/leaderboard?by=accuracy&limit=100');
  t.ok(leaderboard.some(({ kind }: Entry) => kind === 'crowd'));
  t.notOk(leaderboard.some(({ kind }: Entry) => kind === 'even'));
});

t.test('a search finds names anywhere on the board, with their true ranks', async (t) => {
  const find = async (text: string, more = '') =>
    read(`/api/leaderboard?by=brier&search=${encodeURIComponent(text)}${more}`);
  const whole = (await read('/api/leaderboard?by=brier&limit=100')).leaderboard as Entry[];
  const lamps = whole.filter(({ name }) => /lamp/i.test(name));
  t.equal(lamps.length, 3);
  for (const source of ['Redis', 'Postgres']) {
    if (source === 'Postgres') {
      await deps.redis.del(boardKey(prefix, { kind: 'brier', slot: 'all:all' }));
    }
    const found = await find(' LAMP');
    t.same(found.leaderboard, lamps, source);
    t.match(found, { total: 3, next_cursor: null });
    const one = await find('lamp', '&limit=2');
    t.same(one.leaderboard, lamps.slice(0, 2));
    const rest = await find('lamp', `&limit=2&cursor=${one.next_cursor}`);
    t.same(rest.leaderboard, lamps.slice(2));
    t.match(await find('nobody at all'), { total: 0, leaderboard: [], next_cursor: null });
    t.match(await find('even'), { total: 0 }, 'references are not searched');
  }
  const model = lamps[0]?.model ?? '';
  t.same(
    (await find(model.toUpperCase(), '&limit=100')).leaderboard,
    whole.filter((row) => row.user_id !== null && row.model === model),
    'by model',
  );
  const families = await read('/api/leaderboard?by=brier&of=families&search=Claud&include=scores');
  t.match(families, { total: 1, leaderboard: [{ name: 'claude' }] });
  t.ok(families.leaderboard[0].scores.accuracy > 0);
  const longest = await app.call('GET', `/api/leaderboard?search=${'x'.repeat(100)}`);
  t.equal(longest.status, 200);
  t.equal((await app.call('GET', `/api/leaderboard?search=${'x'.repeat(101)}`)).status, 400);
});

interface Line {
  readonly kind: string;
  readonly name: string;
  readonly user_id: string | null;
  readonly rank: number | null;
  readonly points: readonly { readonly at: string; readonly n: number; readonly value: number }[];
}

t.test('the first eight of a board have means over time that end at the board', async (t) => {
  for (const query of [
    'by=brier&kind=all',
    'by=log',
    'by=relative&of=families',
    'by=skill&kind=imported',
    'by=brier&category=society',
  ]) {
    const board = (await read(`/api/leaderboard?${query}&limit=100`)).leaderboard as Entry[];
    const { lines } = (await read(`/api/leaderboard/history?${query}`)) as { lines: Line[] };
    const ranked = board.filter(({ rank }) => rank !== null).slice(0, 8);
    const wanted = [
      ...ranked,
      ...['crowd', 'even'].flatMap((kind) => board.filter((row) => row.kind === kind)),
    ];
    t.same(
      lines.map(({ rank, kind, user_id, name, points }) => [
        ...[rank, kind, user_id, name],
        ...[points.at(-1)?.n, points.at(-1)?.value],
      ]),
      wanted.map(({ rank, kind, user_id, name, n, value }) => [
        rank,
        kind,
        user_id,
        name,
        n,
        value,
      ]),
      query,
    );
  }
});

t.test('a history has a point for each close of a question from the tenth on', async (t) => {
  const { lines } = (await read('/api/leaderboard/history?kind=all')) as { lines: Line[] };
  const even = lines.find(({ kind }) => kind === 'even');
  t.same(
    even?.points,
    questions
      .slice(9)
      .map(({ resolved_at }, n) => ({ at: closeOf(resolved_at), n: n + 10, value: 0.25 })),
  );
  const many = Array.from({ length: 130 }, (_, n) => ({
    kind: 'family',
    name: 'grok',
    category: 'industry',
    share: n % 2 === 0 ? 1 : 0,
    resolved_at: new Date(Date.now() - (130 - n) * 60_000),
  }));
  await addGroups(sql, many);
  await addQuestions();
  await sql`insert into standing_changes (agent_id) values (${first})`;
  await settle();
  const path = '/api/leaderboard/history?of=families&category=industry';
  const [grok] = ((await read(path)) as { lines: Line[] }).lines;
  t.ok((grok?.points.length ?? 99) <= 60, `${grok?.points.length} points`);
  t.match(grok?.points.at(-1), { n: 130, value: 0.5, at: closeOf(many.at(-1)!.resolved_at) });
  t.same((await read(`${path}&least=131`)).lines, [], 'nobody has as many');
  t.same(
    ((await read(`${path}&least=130`)).lines as Line[]).map(({ name }) => name),
    ['grok'],
  );
  for (const query of ['by=accuracy', 'by=skill&of=models', 'category=none', 'least=-1']) {
    t.equal((await app.call('GET', `/api/leaderboard/history?${query}`)).status, 400, query);
  }
});
