import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { CannotStart } from '../kit/service.js';
import { adopt, checkEarlier, isEarlier } from './adopt.js';
import { type Db, openSql, type Sql, type Tx } from './client.js';

/**
 * Forward-only migrations: `sql/NNNN_what.sql`, numbered without gaps. Each runs once. All pending
 * migrations run in one transaction, under a lock. A program refuses a newer database.
 */

export interface Migration {
  readonly number: number;
  readonly name: string;
  readonly text: string;
}

/** The folder `sql` next to `dist`, which this file runs in. */
const sqlFolder = (): string => {
  const here = fileURLToPath(import.meta.url);
  return path.join(here.slice(0, here.lastIndexOf(`${path.sep}dist${path.sep}`)), 'sql');
};

export const readMigrations = (folder: string = sqlFolder()): readonly Migration[] => {
  const found = readdirSync(folder)
    .filter((name) => /^\d{4}_[a-z0-9_]+\.sql$/.test(name))
    .sort()
    .map((name) => ({
      number: Number(name.slice(0, 4)),
      name,
      text: readFileSync(path.join(folder, name), 'utf8'),
    }));
  found.forEach((migration, index) => {
    if (migration.number !== index + 1)
      throw new Error(`sql/${migration.name}: numbers have a gap`);
    if (!migration.text.includes('-- compat:')) {
      throw new Error(`sql/${migration.name}: the -- compat: note is missing`);
    }
  });
  return found;
};

/**
 * Settings for every connection of this role to this database. They are not sent when a connection
 * starts, because a pooler refuses start-up parameters or does not pass them on.
 */
const role_settings: Readonly<Record<string, string>> = {
  // Postgres compiles statements with a high estimated cost. A plan that avoids a scan gets an
  // enormous estimate. Postgres would compile for 400 ms and run the statement for 2 ms.
  jit: 'off',
  // If a client's connection breaks silently, Postgres releases the client's locks this soon.
  tcp_keepalives_idle: '5s',
  tcp_keepalives_interval: '2s',
  tcp_keepalives_count: '3',
  tcp_user_timeout: '10s',
  client_connection_check_interval: '2s',
};

/** Returns null, or why compilation (`jit`) stays on. The service works without these settings. */
export const setRole = async (tx: Tx): Promise<string | null> => {
  const [row] = await tx<{ jit: string }[]>`select current_setting('jit') as jit`;
  const texts = Object.entries(role_settings).map(
    ([name, value]) => `
      execute format('alter role %I in database %I set ${name} = %L',
        session_user, current_database(), '${value}');`,
  );
  await tx`savepoint role_settings`;
  try {
    await tx.unsafe(`do $$ begin ${texts.join('')} end $$`);
    return null;
  } catch (error) {
    await tx`rollback to savepoint role_settings`;
    return row?.jit === 'off' ? null : String((error as Error).message);
  }
};

/** Keeps other processes from changing the schema until the transaction ends. */
export const lockSchema = async (tx: Tx): Promise<void> => {
  await tx`set local lock_timeout = '60s'`;
  await tx`select pg_advisory_xact_lock(7366142)`;
};

const listApplied = async (db: Db): Promise<readonly string[]> => {
  const [table] = await db<{ is_there: boolean }[]>`
    select to_regclass('migrations') is not null as is_there`;
  if (table?.is_there !== true) return [];
  const rows = await db<{ name: string }[]>`select name from migrations order by number`;
  return rows.map(({ name }) => name);
};

const oldest_postgres = 14;

/**
 * Returns how many migrations the database has had. If it has had the earlier ones, also returns
 * the migration that adopts it, or throws if it cannot be adopted. Changes nothing.
 */
const readState = async (tx: Tx, migrations: readonly Migration[]) => {
  const [server] = await tx<{ version: string }[]>`
    select current_setting('server_version') as version`;
  if (Number.parseInt(server?.version ?? '0', 10) < oldest_postgres) {
    throw new CannotStart(
      `Postgres (DATABASE_URL) is version ${server?.version}. Use ${oldest_postgres} or newer.`,
    );
  }
  const names = await listApplied(tx);
  const adopts = isEarlier(names) ? migrations[0] : undefined;
  if (adopts !== undefined) await checkEarlier(tx, names, adopts.text);
  return { adopts, last: adopts === undefined ? names.length : 1 };
};

/** Throws if the database is newer than this program, or cannot be adopted. Changes nothing. */
export const checkAge = async (sql: Sql): Promise<void> => {
  await planMigrations(sql);
};

const listPending = (migrations: readonly Migration[], last: number): readonly Migration[] => {
  if (last <= migrations.length) return migrations.slice(last);
  throw new CannotStart(
    `The database is at migration ${last} and this program knows ${migrations.length}. ` +
      'Run the newer program.',
  );
};

/** Returns what `migrate` would do now. Changes nothing. */
export const planMigrations = (sql: Sql) =>
  sql.begin({ statement_ms: 60_000 }, async (tx) => {
    const migrations = readMigrations();
    const { adopts, last } = await readState(tx, migrations);
    const pending = listPending(migrations, last);
    return { adopts: adopts !== undefined, last, known: migrations.length, pending };
  });

/** Adopts the database if it has had the earlier migrations. */
export const adoptEarlier = async (tx: Tx, migrations: readonly Migration[]) => {
  const { adopts, last } = await readState(tx, migrations);
  if (adopts !== undefined) await adopt(tx, adopts.name);
  return { adopted: adopts !== undefined, last };
};

/** Runs the migrations that the database has not had. */
export const applyMigrations = async (tx: Tx, migrations: readonly Migration[]) => {
  const { adopted, last } = await adoptEarlier(tx, migrations);
  const pending = listPending(migrations, last);
  await tx`
    create table if not exists migrations (
      number integer primary key,
      name text not null,
      applied_at timestamptz not null default now()
    )`;
  for (const migration of pending) {
    await tx.unsafe(migration.text);
    await tx`
      insert into migrations (number, name) values (${migration.number}, ${migration.name})`;
  }
  return { adopted, applied: pending.map(({ name }) => name) };
};

export interface Migrated {
  /** True if the database had the earlier migrations and was adopted. */
  readonly adopted: boolean;
  /** Names of the migrations that ran, in order. */
  readonly applied: readonly string[];
  /** Null, or why compilation of statements (`jit`) stays on for the role. */
  readonly jit_stays: string | null;
}

/** Brings the database at `database_url` to this program's schema, and sets up its role. */
export const migrate = async (database_url: string): Promise<Migrated> => {
  const sql = openSql({
    url: database_url,
    pool: 1,
    prepare: false,
    name: 'migrate',
    statement_timeout_ms: 900_000,
  });
  try {
    return await sql.begin(async (tx) => {
      await lockSchema(tx);
      const done = await applyMigrations(tx, readMigrations());
      return { ...done, jit_stays: await setRole(tx) };
    });
  } finally {
    await sql.end({ timeout: 5 });
  }
};
