import { openSql } from '../../src/db/client.js';
import type { Route } from '../../src/http/route.js';
import { api_routes } from '../../src/routes.js';
import { type CallOptions, no_limits, startApp } from '../help/app.js';
import { openAdmin } from '../help/own-stores.js';
import { startReceiver } from '../help/receiver.js';
import { startPrivateStores } from '../help/stores.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { prepareExamples } from './example-calls.js';
import { grow } from './grown.js';
import { type Executed, logPlans, readPlans, scannedBy } from './plans.js';

/**
 * The query plans of api, relay and signer on a grown database: none reads a whole growing table,
 * and each statement has one plan for all values. Exports and the timer are left out: exports read
 * everything, and the timer works on whole questions and boards.
 */

/** Tables that stay small, each with the reason. */
const bounded: Readonly<Record<string, string>> = {
  migrations: 'one row per migration',
  pillars: 'the taxonomy',
  subcategories: 'the taxonomy',
  tags: 'the taxonomy',
  log_head: 'one row',
  snapshot_cursor: 'one row',
  delivery_plan: 'one row',
  board_head: 'one row',
  adjusted_runs: 'one row',
  adjusted_boards: 'one row per class',
  leases: 'one row per job',
  signers: 'one row per process',
  planned_ranges: 'what signers have planned and not yet put together',
  consensus_fits: 'one row per day',
  event_digests: 'one row per thousand events',
  mails: 'kept for a week',
  news_cursor: 'one row',
  news_queue: 'emptied by the timer',
  outbox: 'emptied by the relay',
  standing_changes: 'emptied by the rebuild of the boards',
  debater_changes: 'emptied by the rebuild of the boards',
  webhook_leavings: 'emptied by the signers',
  webhook_old_secrets: 'at most 20 per webhook',
};

/** Statements that may read a whole growing table: the statement, the tables, and the reason. */
const allowed: readonly (readonly [RegExp, readonly string[], string])[] = [
  [
    /^select count\(\*\)::int(eger)? as total/,
    [
      ...['questions', 'comments', 'disputes', 'agents', 'standings', 'humans', 'audit_log'],
      'report_cases',
    ],
    'a list tells how many there are',
  ],
  [
    /^with keys as .* left join question_counts n /,
    ['questions', 'question_counts'],
    'by a counter that changes too often for an index',
  ],
  [
    /^select q\.id, q\.question, q\.options from questions q join question_counts n /,
    ['questions', 'question_counts'],
    'by the same counter, to compare two families',
  ],
  [
    /^with keys as .* q\.closes_at as key from questions q where (true|q\.status = 'resolved') and q\.status <> 'draft'/,
    ['questions'],
    'the closing times of questions that are not open have no index',
  ],
  [/^with moved as materialized/, ['questions'], 'a day may move any number of questions'],
  [
    /^with (binned|standing) as /,
    ['scores', 'group_scores', 'agents', 'comments'],
    'a board is made of all scores or comments, and kept in Redis',
  ],
  [
    /^with (wanted|placed) as .* from forecaster_scores/,
    ['group_scores'],
    'the crowd and the even guess have a score on every question',
  ],
  [/^with due as materialized/, ['webhooks'], 'each event is matched with every webhook'],
  [/ from webhooks w cross join /, ['webhooks'], 'maintenance goes over all webhooks'],
  [/row_number\(\) over \(order by id\) as place from questions/, ['questions'], 'a map of all'],
  [/^insert into news_queue/, ['followed_searches'], 'it ends at the first row'],
  [/ where not exists \(select from webhooks\)/, ['webhooks'], 'it ends at the first row'],
];

const min_rows = 1_000;

const receiver = await startReceiver();
t.teardown(() => receiver.close());
const stores = await startPrivateStores(t, { durable: false });
const superuser = stores.database_url.replace('forum@', 'postgres@');
const admin = openAdmin(superuser);
await grow(superuser);
await logPlans(admin);
const rows = await admin<{ name: string; is_partition: boolean; count: number }[]>`
  select relname as name, relispartition as is_partition, reltuples::float8 as count
  from pg_class
  where relkind = 'r' and relnamespace = 'public'::regnamespace`;
const indexes = await admin<{ name: string; table: string }[]>`
  select indexrelid::regclass::text as name, indrelid::regclass::text as table
  from pg_index
  where indpred is null`;
const tables_of_indexes = new Map(indexes.map(({ name, table }) => [name, table]));
await admin.end();
const grown = new Set(rows.filter(({ count }) => count >= min_rows).map(({ name }) => name));

const app = await startApp(t, {
  stores,
  check_answers: false,
  roles: ['api', 'relay', 'signer'],
  env: { ...no_limits, WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', WEBHOOK_CA_FILE: receiver.ca_file },
});

const routes = (api_routes as readonly Route[]).filter(
  ({ documented, is_endless, path }) =>
    documented && !is_endless && !path.startsWith('/api/export/'),
);

/** Values to try for filters. Filters with an enum are tried with all its values. */
const filters: Readonly<Record<string, readonly string[]>> = {
  q: ['median', 'series 4711', 'mediam'],
  category: ['technology'],
  subcategory: ['data'],
  tag: ['Benchmarks'],
  ids: ['01900000-0000-7000-8003-000000000001'],
  source: ['survey'],
  created_after: ['2025-01-02T00:00:00Z'],
  closes_before: ['2027-01-02T00:00:00Z'],
  limit: ['100'],
  offset: ['20'],
  unread: ['true', 'false'],
  predicted_on: ['01900000-0000-7000-8003-000000000001'],
};

const grown_agent = (n: number) => `01900000-0000-7000-8002-00000000000${n}`;
/** Each kind of forecaster on each side. */
const comparisons = [
  { a: 'claude', b: 'gpt' },
  { a: 'claude', b: grown_agent(1) },
  { a: grown_agent(1), b: 'claude' },
  { a: grown_agent(1), b: grown_agent(2) },
];

/** The query of the example, and then each value of a filter on its own. */
const queriesOf = (route: Route, query: Readonly<Record<string, string>>) => {
  // No timer runs, so each call would compute the other boards from all scores.
  if (route.path.startsWith('/embed/leaderboard')) return [{ by: 'adjusted' }];
  if (route.id === 'leaderboardHistory') return [query];
  if (route.path.includes('/leaderboard')) return [query, { by: 'adjusted', include: 'scores' }];
  if (route.path === '/api/compare') return comparisons;
  if (route.auth === 'admin') return [query];
  const changes = Object.entries(route.query?.properties ?? {}).flatMap(([name, schema]) =>
    (filters[name] ?? (schema['enum'] as readonly string[] | undefined) ?? []).map((value) => ({
      [name]: value,
    })),
  );
  return [query, ...changes];
};

const problems: string[] = [];
const call = async (route: Route, target: string, send: CallOptions, refusable = false) => {
  const { status, body } = await app.call(route.method, target, send);
  if (status >= 300 && !(refusable && status === 400)) problems.push(`${target}: ${status}`);
  return body;
};

/** Sends the example of a route. For a read, also tries each filter and the second page. */
const callRoute = async (route: Route, prepare: Awaited<ReturnType<typeof prepareExamples>>) => {
  const { path, query, send } = await prepare(route);
  if (route.method !== 'GET') {
    const headers = { ...send.headers, 'idempotency-key': `of-${route.id}` };
    await call(route, path, { ...send, ...(route.method === 'POST' ? { headers } : {}) });
    return;
  }
  for (const [n, changed] of queriesOf(route, query).entries()) {
    const search = new URLSearchParams(changed);
    // Some filters are refused without another filter.
    const body = await call(route, `${path}?${search}`, send, n > 0);
    if (typeof body?.next_cursor !== 'string') continue;
    search.set('cursor', body.next_cursor);
    await call(route, `${path}?${search}`, send);
  }
};

const isAllowed = (text: string, table: string): boolean =>
  allowed.some(([pattern, tables]) => pattern.test(text) && tables.includes(table));

/** Statements that read a whole table although they may not. */
const findScans = (plans: readonly Executed[]): readonly string[] =>
  plans.flatMap(({ role, text, plan }) =>
    scannedBy(plan, tables_of_indexes)
      .filter((table) => grown.has(table))
      .filter((table) => !isAllowed(text, table))
      .map((table) => `${role} reads all of ${table}: ${text}`),
  );

const findCustom = (plans: readonly Executed[]): readonly string[] =>
  plans
    .filter(({ is_generic }) => !is_generic)
    .map(({ role, text }) => `${role} plans again: ${text}`);

t.test('each table has grown or stays small', async (t) => {
  const tables = rows.filter(({ is_partition }) => !is_partition).map(({ name }) => name);
  t.same(
    tables.filter((name) => !grown.has(name) && bounded[name] === undefined),
    [],
  );
  t.same(
    Object.keys(bounded).filter((name) => grown.has(name) || !tables.includes(name)),
    [],
  );
});

t.test('no statement reads a whole table that grows, and none is planned again', async (t) => {
  const { key } = await makeAgent(app, { human: await makeHuman(app) });
  const hook = { url: receiver.url('/hook'), events: ['question.created'] };
  await app.call('POST', '/api/webhooks', { key, body: hook });
  await makeOpenQuestion(app);
  await receiver.waitFor('/hook', 1);
  const prepare = await prepareExamples(app);
  for (const route of routes) await callRoute(route, prepare);
  // Lists that are read to their end: after the last page they look for later revisions.
  for (const path of [
    '/api/questions/01900000-0000-7000-8003-000000000001/predictions',
    `/api/agents/${grown_agent(1)}/predictions`,
  ]) {
    let rows = 0;
    for (let cursor = ''; ; ) {
      const { body } = await app.call('GET', `${path}?limit=4${cursor}`);
      rows += body.predictions.length;
      if (body.next_cursor === null) break;
      cursor = `&cursor=${body.next_cursor}`;
    }
    t.ok(rows > 8, `${path} has ${rows}`);
  }
  t.same(problems, []);
  await until('the relay has moved all', async () => {
    const [row] = await app.sql<{ left: number }[]>`select count(*)::int as left from outbox`;
    return row?.left === 0;
  });
  const plans = readPlans(stores);
  t.same([...new Set(findScans(plans))], []);
  t.same(findCustom(plans), []);
  const texts = new Set(plans.map(({ text }) => text));
  t.ok(texts.size > 300, `${texts.size} statements`);
  t.comment(`${texts.size} statements, ${plans.length} plans`);
});

t.test('a statement that reads a whole table, or is planned again, is found', async (t) => {
  const url = stores.database_url;
  for (const prepare of [true, false]) {
    const sql = openSql({ url, pool: 1, prepare, name: `proof${prepare}-0` });
    await sql`select seq from predictions where id::text = ${'none'}`;
    await sql.end();
  }
  const plans = await until('both are in the log', () => {
    const found = readPlans(stores).filter(({ role }) => role.startsWith('proof'));
    return found.length === 2 && found;
  });
  const text = 'select seq from predictions where id::text = $1';
  t.same(findScans(plans), [
    `prooftrue reads all of predictions: ${text}`,
    `prooffalse reads all of predictions: ${text}`,
  ]);
  t.same(findCustom(plans), [`prooffalse plans again: ${text}`]);
});
