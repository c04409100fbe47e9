import path from 'node:path';
import type { Test } from 'tap';
import { applyMigrations, migrate, readMigrations, setRole } from '../../src/db/migrate.js';
import { openAdmin } from '../help/own-stores.js';
import { openStores } from '../help/stores.js';
import { t } from '../help/tap.js';

/** A migrated database whose server uses JIT compilation, as Postgres does by default. */
const openCompiling = async (t: Test): Promise<string> => {
  const { database_url } = await openStores(t);
  const admin = openAdmin(database_url);
  await admin`
    do $$ begin execute format('alter database %I set jit = on', current_database()); end $$`;
  await admin.end();
  return database_url;
};

/** The JIT setting of a new connection. */
const readJit = async (url: string): Promise<string | undefined> => {
  const sql = openAdmin(url);
  const [row] = await sql<{ jit: string }[]>`select current_setting('jit') as jit`;
  await sql.end();
  return row?.jit;
};

t.test('a start turns jit off for its own role, whatever the server has', async (t) => {
  const url = await openCompiling(t);
  t.equal(await readJit(url), 'on');
  t.same(await migrate(url), { adopted: false, applied: [], jit_stays: null });
  t.equal(await readJit(url), 'off');
  t.equal((await migrate(url)).jit_stays, null);
});

t.test('no other database and no other role is changed', async (t) => {
  const url = await openCompiling(t);
  await migrate(url);
  const sql = openAdmin(url);
  const changed = await sql`
    select setrole::regrole::text = session_user as own_role, 'jit=off' = any (setconfig) as is_off
    from pg_db_role_setting
    where setrole <> 0
      and setdatabase = (select oid from pg_database where datname = current_database())`;
  const everywhere = await sql`
    select from pg_db_role_setting where setdatabase = 0 and setconfig::text like '%jit%'`;
  await sql.end();
  t.strictSame([...changed], [{ own_role: true, is_off: true }]);
  t.equal(everywhere.length, 0);
});

t.test('where it may not be turned off, the transaction goes on and it is said why', async (t) => {
  const url = await openCompiling(t);
  const sql = openAdmin(url);
  // A read-only transaction is refused in the same way as a user without the privilege.
  const { why, after } = await sql.begin({ mode: 'read only' }, async (tx) => ({
    why: await setRole(tx),
    after: await tx`select 1 as one`,
  }));
  await sql.end();
  t.match(why, /read-only transaction/);
  t.strictSame([...after], [{ one: 1 }]);
});

const later = {
  '0002_words.sql': '-- compat: adds only.\ncreate table words (word text);',
  '0003_word.sql': "-- compat: adds only.\ninsert into words values ('first');",
};

t.test('later migrations run once, in their order, and a newer database is refused', async (t) => {
  const { database_url } = await openStores(t);
  const sql = openAdmin(database_url);
  t.teardown(() => sql.end());
  const known = readMigrations();
  const all = [
    ...known,
    ...Object.entries(later).map(([name, text], n) => ({
      number: known.length + n + 1,
      name,
      text,
    })),
  ];
  const apply = (migrations: typeof known) => sql.begin((tx) => applyMigrations(tx, migrations));
  t.same(await apply(all), { adopted: false, applied: Object.keys(later) });
  t.same(await apply(all), { adopted: false, applied: [] });
  t.equal((await sql`select from words`).length, 1);
  const { length } = known;
  const ahead = `at migration ${length + 2} and this program knows ${length}. Run the newer program`;
  await t.rejects(apply(known), new RegExp(ahead));
});

t.test('migrations without a gap and with a note are read', async (t) => {
  const first = { '0001_a.sql': '-- compat: first schema.' };
  const read = (name: string, files: Readonly<Record<string, string>>) =>
    readMigrations(path.join(t.testdir({ [name]: { ...files, 'notes.txt': '' } }), name));
  t.same(
    read('whole', { ...later, ...first }).map(({ number }) => number),
    [1, 2, 3],
  );
  t.throws(() => read('gap', { ...first, '0003_b.sql': '-- compat: none.' }), /have a gap/);
  t.throws(() => read('silent', { '0001_a.sql': 'select 1' }), /-- compat: note is missing/);
});
