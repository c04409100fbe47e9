import path from 'node:path';
import type { Test } from 'tap';
import type { Sql } from '../../src/db/client.js';
import { migrate, planMigrations, readMigrations } from '../../src/db/migrate.js';
import { loadOldSchema } from '../help/old-schema.js';
import { openAdmin } from '../help/own-stores.js';
import { runProgram } from '../help/run-command.js';
import { openStores } from '../help/stores.js';
import { t } from '../help/tap.js';

const openOld = async (t: Test) => {
  const stores = await openStores(t);
  await loadOldSchema(stores.database_url);
  const sql = openAdmin(stores.database_url);
  t.teardown(() => sql.end());
  return { ...stores, sql };
};

const listMigrations = async (sql: Sql): Promise<readonly string[]> => {
  const rows = await sql<{ name: string }[]>`select name from migrations order by number`;
  return rows.map(({ name }) => name);
};

/** Row counts of all tables except the list of migrations and the partitions. */
const countRows = async (sql: Sql): Promise<Readonly<Record<string, number>>> => {
  const tables = await sql<{ name: string }[]>`
    select relname as name from pg_class
    where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
      and relname <> 'migrations'
    order by 1`;
  const counts: Record<string, number> = {};
  for (const { name } of tables) {
    const [row] = await sql<{ count: number }[]>`select count(*)::integer from ${sql(name)}`;
    counts[name] = row?.count ?? -1;
  }
  return counts;
};

/** The catalog entries of everything that is not built into Postgres, and the migrations. */
const readCatalogs = async (sql: Sql): Promise<readonly unknown[]> =>
  sql`
    with own as (select oid from pg_namespace where nspname !~ '^(pg_|information_schema)')
    select 'schema', oid, nspname::text, null as more from pg_namespace where oid in (table own)
    union all
    select 'relation', oid, relname, concat_ws(' ', relfilenode, relkind, relowner, reloptions)
    from pg_class where relnamespace in (table own)
    union all
    select 'column', attrelid, attname, concat_ws(' ', atttypid, attnum, attnotnull, attisdropped)
    from pg_attribute join pg_class on pg_class.oid = attrelid where relnamespace in (table own)
    union all
    select 'constraint', oid, conname, pg_get_constraintdef(oid)
    from pg_constraint where connamespace in (table own)
    union all
    select 'function', oid, proname, prosrc from pg_proc where pronamespace in (table own)
    union all
    select 'trigger', oid, tgname, tgenabled::text from pg_trigger
    union all
    select 'role', setrole, null, setconfig::text from pg_db_role_setting
    where setdatabase = (select oid from pg_database where datname = current_database())
    union all
    select 'migration', number, name, applied_at::text from migrations
    order by 1, 2, 3, 4`;

const later = readMigrations()
  .slice(1)
  .map(({ name }) => name);
const leftovers = ['sequence', 'sequence_head', 'shard_batches', 'shard_events', 'shard_head'];

t.test('a database of the earlier migrations is adopted with its rows', async (t) => {
  const { database_url, sql } = await openOld(t);
  const before = await countRows(sql);
  t.equal((await listMigrations(sql)).length, 45);
  t.match(await planMigrations(sql), { adopts: true, pending: later.map((name) => ({ name })) });
  t.equal((await listMigrations(sql)).length, 45, 'a plan changes nothing');
  const at_once = await Promise.all([1, 2, 3].map(() => migrate(database_url)));
  t.same(at_once.map(({ adopted }) => adopted).sort(), [false, false, true], 'one start adopts');
  t.same(
    at_once.flatMap(({ applied }) => applied),
    later,
  );
  t.same(await listMigrations(sql), ['0001_schema.sql', ...later]);
  const wanted = Object.entries(before).filter(([name]) => !leftovers.includes(name));
  const { last_predictions, webhook_old_secrets, ...after } = await countRows(sql);
  const kept = Object.entries(after).filter(([name]) => name in before);
  t.same(Object.fromEntries(kept), { ...Object.fromEntries(wanted), consensus_fits: 1 });
  t.match(after, { question_words: 2, agent_words: 3, news_cursor: 1 });
  const fits = await sql`select number, rho, mixture from consensus_fits`;
  t.same([...fits], [{ number: 0, rho: 0.6, mixture: null }], 'old questions keep the pool alone');
  t.equal(last_predictions, before['agents'], 'a migration adds a row for each agent');
  t.equal(webhook_old_secrets, 0, 'and no secret was being replaced');
  t.equal(before['predictions'], 4);

  const catalogs = await readCatalogs(sql);
  t.same(await migrate(database_url), { adopted: false, applied: [], jit_stays: null });
  t.same(await readCatalogs(sql), catalogs, 'then there is nothing to do');
});

t.test('what else is in the schema does not matter, nor days and storage settings', async (t) => {
  const { database_url, sql } = await openOld(t);
  await sql.unsafe(`
    create table own_charts (id serial primary key, agent_id uuid references agents (id));
    create view busy_agents as select agent_id, count(*) from predictions group by 1;
    create function report() returns integer language sql return 1;
    create table events_20250122 partition of events for values from ('20250122') to ('20250123');
    alter table ledger set (autovacuum_vacuum_scale_factor = 0.01);
    alter table comments alter column content set storage external`);
  t.match(await migrate(database_url), { adopted: true });
  t.same([...(await sql`select * from busy_agents`)].length, 2);
});

const changes: readonly (readonly [string, said: RegExp])[] = [
  ['drop table told_tiers', /table told_tiers is missing/],
  ['alter table mails add column body text', /column mails\.body is unexpected/],
  ['alter table mails drop column subject', /column mails\.subject is missing/],
  ['alter table accounts alter column balance type bigint', /column accounts\.balance differs/],
  ['alter table accounts alter column balance drop not null', /column accounts\.balance differs/],
  ['alter table webhooks alter column active drop default', /column webhooks\.active differs/],
  [
    'alter table predictions drop constraint predictions_check3',
    /constraint predictions_check3 of predictions is missing/,
  ],
  [
    'alter table votes rename constraint votes_check1 to votes_other',
    /constraint votes_check1 of votes is missing/,
  ],
  [
    `alter table votes drop constraint votes_check1,
      add constraint votes_check1 check (agent_id <> author_id) not valid`,
    /constraint votes_check1 of votes differs/,
  ],
  [
    'alter table votes add check (value <> 7)',
    /constraint votes_value_check of votes is unexpected/,
  ],
  ['drop index comments_top', /index comments_top is missing/],
  [
    'drop index comments_top; create index comments_top on comments (upvotes desc)',
    /index comments_top differs/,
  ],
  ['create index votes_value on votes (value)', /index votes_value is unexpected/],
  ['alter table audit_log disable trigger audit_log_rows', /trigger audit_log_rows .* differs/],
  ['drop trigger questions_begin_seq on questions', /trigger questions_begin_seq .* is missing/],
  [
    'create or replace function is_imported(owner_id uuid) returns boolean language sql return true',
    /function is_imported\(uuid\) differs/,
  ],
  ['alter view forecasts rename column reason to why', /view forecasts differs/],
  [
    `alter table votes rename to votes_whole;
    create table votes (like votes_whole including all) partition by hash (question_id);
    create table votes_0 partition of votes for values with (modulus 1, remainder 0);
    drop table votes_whole`,
    /table votes differs/,
  ],
];

t.test('a database with another schema is refused and stays as it is', async (t) => {
  const { database_url, sql } = await openOld(t);
  for (const [change, said] of changes) {
    await sql.unsafe(change);
    const catalogs = await readCatalogs(sql);
    const refused = migrate(database_url);
    await t.rejects(refused, { name: 'CannotStart', message: said }, change);
    t.same(await readCatalogs(sql), catalogs, 'nothing has changed');
    await loadOldSchema(database_url);
  }
  t.match(await migrate(database_url), { adopted: true });
});

t.test('migrate ends with 2 and one sentence where the schema is another', async (t) => {
  const { database_url, sql } = await openOld(t);
  for (const [change, difference] of [
    ['alter table mails add column body text', 'column mails.body is unexpected'],
    [
      'alter table votes drop constraint votes_check1',
      'constraint votes_check1 of votes is missing',
    ],
    ['drop index comments_top', 'index comments_top is missing'],
  ] as const) {
    await sql.unsafe(change);
    const catalogs = await readCatalogs(sql);
    const env = { DATA_DIR: t.testdir(), DATABASE_URL: database_url };
    const { code, output, errors } = await runProgram(env, 'migrate');
    t.equal(code, 2, change);
    t.equal(
      output + errors,
      `The database does not have the schema of this program (${difference}). Check out commit ` +
        'dd20781e, make a backup with it, and restore it into an empty database with this ' +
        'program.\n',
    );
    t.same(await readCatalogs(sql), catalogs, 'nothing has changed');
    await loadOldSchema(database_url);
  }
});

t.test('a database of fewer migrations is refused by every command', async (t) => {
  const { database_url, redis_url, redis_prefix, sql } = await openOld(t);
  await sql`delete from migrations where number > 40`;
  const catalogs = await readCatalogs(sql);
  const folder = t.testdir();
  const env = {
    DATA_DIR: folder,
    PORT: '0',
    DATABASE_URL: database_url,
    REDIS_URL: redis_url,
    REDIS_PREFIX: redis_prefix,
  };
  const sentence =
    'The database has 40 of the 45 migrations of an earlier program. Check out commit dd20781e, ' +
    'start it once, then start this program again.';
  for (const args of [
    ['start'],
    ['migrate'],
    ['migrate', '--dry-run'],
    ['doctor'],
    ['verify'],
    ['rebuild'],
    ['backup', path.join(folder, 'kept.tar.gz')],
    ['admin', 'list'],
  ]) {
    const { code, document, errors } = await runProgram(env, ...args, '--json');
    t.equal(code, 2, `${args}`);
    t.ok(errors.includes(sentence), errors);
    t.equal(document.exit_code, 2);
  }
  t.same(await readCatalogs(sql), catalogs, 'nothing has changed');
});

t.test('without the right to compare, a start says which right is missing', async (t) => {
  const { database_url, sql } = await openOld(t);
  const role = `limited_${process.pid}`;
  await sql.unsafe(`
    create role ${role} login;
    grant usage on schema public to ${role};
    grant all on all tables in schema public to ${role}`);
  t.teardown(async () => {
    const admin = openAdmin(database_url);
    await admin.unsafe(`drop owned by ${role}; drop role ${role}`);
    await admin.end();
  });
  const url = new URL(database_url);
  url.username = role;
  await t.rejects(migrate(url.href), { name: 'CannotStart', message: /grant create on database/ });
});
