import { readFileSync } from 'node:fs';
import path from 'node:path';
import { leading_columns } from '../../src/db/hash-partition-store.js';
import { migrate } from '../../src/db/migrate.js';
import { type CallOptions, startApp } from '../help/app.js';
import { openAdmin, startOwnStores, withDatabase } from '../help/own-stores.js';
import type { Teardown } from '../help/stores.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';

/** The growing tables in hash partitions: the same schema, and what a request looks into. */

const partitions = 8;
const tables = Object.keys(leading_columns);

/** Why a table cannot be distributed by its leading column; from Citus's rules of tables. */
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

/** Own servers with one database of whole tables and one with partitions. */
const makeDatabases = async (t: Teardown) => {
  const stores = await startOwnStores(false);
  t.teardown(stores.stop);
  const { admin_url } = stores.postgres;
  const admin = openAdmin(admin_url);
  const make = async (name: string, count: number): Promise<string> => {
    await admin.unsafe(`create database ${name}`);
    const url = withDatabase(admin_url, name);
    await migrate(url, count);
    return url;
  };
  const urls = { whole: await make('whole', 0), divided: await make('divided', partitions) };
  const log_file = path.join(stores.folder, 'log', 'postgres.log');
  t.teardown(() => admin.end());
  return { ...urls, admin, log_file, redis_url: stores.redis.url };
};

/** Columns, defaults, keys, checks and indexes of the growing tables, as Postgres writes them. */
const describe = async (url: string): Promise<unknown> => {
  const sql = openAdmin(url);
  const rows = await sql`
    select c.relname::text as name,
      array(
        select concat_ws(' ', attname, format_type(atttypid, atttypmod), attnotnull,
          attgenerated, pg_get_expr(adbin, adrelid))
        from pg_attribute left join pg_attrdef on adrelid = attrelid and adnum = attnum
        where attrelid = c.oid and attnum > 0 and not attisdropped order by attnum
      ) as columns,
      array(
        select conname || ' ' || pg_get_constraintdef(oid) from pg_constraint
        where conrelid = c.oid and contype <> 'n' order by conname
      ) as constraints,
      array(
        select replace(pg_get_indexdef(indexrelid), ' ON ONLY ', ' ON ') as text
        from pg_index where indrelid = c.oid order by text
      ) as indexes
    from pg_class c where c.relname = any (${tables}::text[]) order by 1`;
  const views = await sql`select viewname, definition from pg_views where schemaname = 'public'`;
  await sql.end();
  return { rows: [...rows], views: [...views] };
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

/** What `auto_explain` wrote of the statements of api processes. */
const readPlans = (file: string): readonly Explained[] =>
  readFileSync(file, 'utf8')
    .split(/^(?=\d{4}-\d\d-\d\d )/m)
    .filter((entry) => / api-0 LOG: {2}duration: .* plan:/.test(entry.slice(0, 200)))
    .map((entry) => JSON.parse(entry.slice(entry.indexOf('{'))));

/** Statements that look once, by an index, into each partition: they know no question. */
const by_other_keys = [
  /** The last prediction or comment of an agent, when it writes another. */
  /where [pc]\.agent_id = d\.agent_id order by [pc]\.id desc limit 1/,
  /** How many predictions an agent has. */
  /count\(\*\)::integer from predictions p where p\.agent_id = \w+\./,
  /** A prediction or a comment of which only the id is given. */
  / where (\w+\.)?id = (any \()?\$\d/,
  /[pc]\.id = d\.subject_id/,
  /c\.prediction_id = \$1/,
];

t.test('a partitioned database has the same tables', async (t) => {
  const { whole, divided, admin, log_file, redis_url } = await makeDatabases(t);
  t.same(await describe(divided), await describe(whole));
  t.same(await findObstacles(whole), []);

  for (const setting of [
    "session_preload_libraries = 'auto_explain'",
    'auto_explain.log_min_duration = 0',
    'auto_explain.log_analyze = on',
    'auto_explain.log_timing = off',
    "auto_explain.log_format = 'json'",
    // As plans of large tables are.
    'enable_seqscan = off',
    'enable_hashjoin = off',
    'enable_mergejoin = off',
  ]) {
    await admin.unsafe(`alter database divided set ${setting}`);
  }
  const stores = { database_url: divided, redis_url, redis_prefix: 'pf' };
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
