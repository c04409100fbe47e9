import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Sql } from '../../src/db/client.js';
import { migrate } from '../../src/db/migrate.js';
import { type CallOptions, startApp } from '../help/app.js';
import { openAdmin, startOwnStores, withDatabase } from '../help/own-stores.js';
import { openStores, type Teardown } from '../help/stores.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';

/**
 * The growing tables are ready for Citus: their keys start with the column that would distribute
 * them, and a request names that column. Hash partitions stand in for the nodes.
 */

const partitions = 8;
const leading_columns = {
  ledger: 'agent_id',
  predictions: 'question_id',
  earlier_forecasts: 'question_id',
  scores: 'question_id',
  comments: 'question_id',
  votes: 'question_id',
  notifications: 'agent_id',
  consensus_snapshots: 'question_id',
  deliveries: 'webhook_id',
} as const;
const tables = Object.keys(leading_columns);

/** Reasons why Citus would not distribute a table by its leading column. */
const findObstacles = async (url: string): Promise<readonly string[]> => {
  const sql = openAdmin(url);
  const rows = await sql<{ name: string; why: string }[]>`
    with d as (
      select key::text as name, key::regclass as oid, value as by_column
      from json_each_text(${JSON.stringify(leading_columns)}::text::json)
    )
    select name, 'key without it: ' || indexrelid::regclass as why
    from d join pg_index on indrelid = d.oid
    where indisunique and not exists (
      select from pg_attribute
      where attrelid = d.oid and attname = by_column and attnum = any (indkey)
    )
    union all
    select name, 'foreign key: ' || conname
    from d join pg_constraint on contype = 'f' and d.oid in (conrelid, confrelid)
    union all
    select name, 'trigger: ' || tgname from d join pg_trigger on tgrelid = d.oid and not tgisinternal
    union all
    select name, 'no uuid that is always there: ' || by_column
    from d join pg_attribute on attrelid = d.oid and attname = by_column
    where atttypid <> 'uuid'::regtype or not attnotnull
    union all
    select name, 'sequence: ' || relname
    from d join pg_depend on refobjid = d.oid join pg_class c on c.oid = objid
    where relkind = 'S'`;
  await sql.end();
  return rows.map(({ name, why }) => `${name}: ${why}`);
};

/** Partitions the growing tables of an empty database by the hash of their leading columns. */
const divide = async (sql: Sql): Promise<void> => {
  const views = await sql<{ name: string; text: string }[]>`
    select viewname as name, definition as text from pg_views where schemaname = 'public'`;
  for (const [table, column] of Object.entries(leading_columns)) {
    await sql.unsafe(`
      alter table ${table} rename to ${table}_whole;
      create table ${table} (like ${table}_whole including all) partition by hash (${column});
      drop table ${table}_whole cascade`);
    for (let n = 0; n < partitions; n += 1) {
      await sql.unsafe(`
        create table ${table}_${n} partition of ${table}
        for values with (modulus ${partitions}, remainder ${n})`);
    }
  }
  for (const { name, text } of views) await sql.unsafe(`create view ${name} as ${text}`);
};

/** Separate servers with a partitioned database, and the file where they log query plans. */
const openDivided = async (t: Teardown) => {
  const stores = await startOwnStores(false);
  t.teardown(stores.stop);
  const { admin_url } = stores.postgres;
  const admin = openAdmin(admin_url);
  await admin.unsafe('create database divided');
  const database_url = withDatabase(admin_url, 'divided');
  await migrate(database_url);
  const sql = openAdmin(database_url);
  await divide(sql);
  await sql.end();
  for (const setting of [
    "session_preload_libraries = 'auto_explain'",
    'auto_explain.log_min_duration = 0',
    'auto_explain.log_analyze = on',
    'auto_explain.log_timing = off',
    "auto_explain.log_format = 'json'",
    // Makes Postgres use the plans that it uses for large tables.
    'enable_seqscan = off',
    'enable_hashjoin = off',
    'enable_mergejoin = off',
  ]) {
    await admin.unsafe(`alter database divided set ${setting}`);
  }
  await admin.end();
  const log_file = path.join(stores.folder, 'log', 'postgres.log');
  return { stores: { database_url, redis_url: stores.redis.url, redis_prefix: 'pf' }, log_file };
};

interface Plan {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Actual Loops': number;
  readonly Plans?: readonly Plan[];
}

interface Explained {
  readonly 'Query Text': string;
  readonly Plan: Plan;
}

/** The tables and partitions that a statement read. */
const listRead = (plan: Plan): readonly string[] => [
  ...(plan['Node Type'].endsWith('Scan') && plan['Actual Loops'] > 0
    ? [plan['Relation Name'] ?? '']
    : []),
  ...(plan.Plans ?? []).flatMap(listRead),
];

/** The growing tables of which a statement read several partitions. */
const listSpread = ({ Plan }: Explained): readonly string[] => {
  const read = [...new Set(listRead(Plan))].map((name) => name.replace(/_\d+$/, ''));
  return tables.filter((table) => read.indexOf(table) !== read.lastIndexOf(table));
};

/** The statements of api processes, as logged by `auto_explain`. */
const readPlans = (file: string): readonly Explained[] =>
  readFileSync(file, 'utf8')
    .split(/^(?=\d{4}-\d\d-\d\d )/m)
    .filter((entry) => / api-0 LOG: {2}duration: .* plan:/.test(entry.slice(0, 200)))
    .map((entry) => JSON.parse(entry.slice(entry.indexOf('{'))));

/** These statements have no question id, so they look into each partition once, by an index. */
const by_other_keys = [
  /** The last comment of an agent, read when the agent writes another one. */
  /where c\.agent_id = d\.agent_id order by c\.id desc limit 1/,
  /** Sources that an agent cited in predictions unknown to the process. */
  /where agent_id = d\.agent_id and id > d\.known_id/,
  /** The number of an agent's predictions. */
  /count\(\*\)::integer from predictions p where p\.agent_id = \w+\./,
  /** A prediction or a comment given only by its id. */
  / where (\w+\.)?id = (any \()?\$\d/,
  /[pc]\.id = d\.subject_id/,
  /c\.prediction_id = \$1/,
];

t.test('every growing table stores_answer the rules of Citus for distributed tables', async (t) => {
  const { database_url } = await openStores(t);
  t.same(await findObstacles(database_url), []);
});

t.test('a request about one question reads one partition of a table', async (t) => {
  const { stores, log_file } = await openDivided(t);
  const app = await startApp(t, { stores });
  const call = async (method: string, url: string, options: CallOptions = {}) => {
    const answer = await app.call(method, url, options);
    t.ok(answer.status < 300, `${method} ${url} ${answer.status}`);
    return answer.body;
  };
  const ids = await Promise.all([1, 2, 3].map(() => makeOpenQuestion(app)));
  const [id = ''] = ids;
  const author = await makeAgent(app, { human: await makeHuman(app) });
  const other = await makeAgent(app, { human: await makeHuman(app) });
  const at = `/api/questions/${id}`;
  const predict = (question_id: string, key: string) =>
    call('POST', `/api/questions/${question_id}/predict`, {
      key,
      body: { prediction: true, confidence: 80, reasoning: makeReasoning() },
    });
  const { prediction } = await predict(id, author.key);
  for (const question_id of ids) await predict(question_id, other.key);
  const say = (text: string) => ({ body: { content: `${text}, as the branch said in May.` } });
  const { comment } = await call('POST', `${at}/comments`, {
    key: author.key,
    ...say('Nobody opens a reading room in August'),
  });
  await call('POST', `/api/comments/${comment.id}/reply`, {
    key: other.key,
    ...say('They did it twice before'),
  });
  await call('POST', `/api/comments/${comment.id}/upvote`, { key: other.key, body: {} });
  await call('POST', `${at}/predictions/${prediction.id}/reply`, {
    key: other.key,
    ...say('The floor is not laid yet'),
  });
  for (const under of [
    '',
    '/predictions',
    '/comments',
    '/consensus',
    '/chart',
    '/changes',
    '/debates',
    '/drift',
    '/intel-brief',
    '/snapshots',
    '/disputes',
    '/preflight',
    `/predictions/${prediction.id}/replies`,
  ]) {
    await call('GET', at + under, { key: author.key });
  }
  for (const under of ['', '/replies', '/revisions']) {
    await call('GET', `/api/predictions/${prediction.id}${under}`);
  }
  await call('GET', '/api/me/transactions', { key: author.key });

  const plans = readPlans(log_file);
  const of_growing = plans.filter(({ Plan }) => listRead(Plan).some((name) => /_\d$/.test(name)));
  t.ok(of_growing.length > 20, `${of_growing.length} statements read partitions`);
  const spread = plans.filter((plan) => listSpread(plan).length > 0);
  t.ok(spread.length > 0, 'those by other keys are found');
  const said = (plan: Explained): string => plan['Query Text'].replaceAll(/\s+/g, ' ');
  const wrong = spread.filter((plan) => !by_other_keys.some((key) => key.test(said(plan))));
  t.same(
    wrong.map((plan) => `${listSpread(plan)}: ${said(plan)}`),
    [],
  );
});
