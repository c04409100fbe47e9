import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { openSql, type Sql } from '../../src/db/client.js';
import { migrate } from '../../src/db/migrate.js';
import { makeApiKey } from '../../src/features/accounts/rules.js';
import { makeDataFolder } from '../../src/process/embedded/data-dir.js';
import { startPostgres } from '../../src/process/embedded/postgres.js';
import { removePlace } from '../../src/process/embedded/postgres-home.js';
import { startRedis } from '../../src/process/embedded/redis.js';
import type { Bench, BenchContext, Prepared } from '../frame/bench.js';
import type { LoadHandlers } from '../load/load-process.js';
import { type Child, startChild } from './child.js';
import { treeOf } from './processes.js';

/**
 * The common ground of a bench: one Postgres and one Redis for all subjects, the same that `npm start`
 * starts, and a load generator. Every commit is on the disk before it is answered.
 */
export interface Bed {
  readonly context: BenchContext;
  readonly redis_url: string;
  /** Connection of the superuser. */
  readonly admin: Sql;
  readonly loader: Child<LoadHandlers>;
  /** The stores and the load generator, as groups of a meter. */
  readonly groups: Readonly<Record<'postgres' | 'redis' | 'load', () => readonly number[]>>;
  urlOf(database: string): string;
  /** A pool that closes at the end of the bench. */
  open(database: string): Sql;
  /** A migrated database that `fill` fills; `copies` equal it in every byte. */
  createDatabase(
    name: string,
    fill?: (sql: Sql) => Promise<unknown>,
    copies?: readonly string[],
  ): Promise<void>;
  startLoader(): Child<LoadHandlers>;
  /** Called at the end of the bench, in reverse order. */
  onClose(close: () => unknown): void;
}

const requireDurable = async (admin: Sql): Promise<void> => {
  const [row] = await admin<{ durable: string }[]>`
    select concat(current_setting('fsync'), current_setting('synchronous_commit')) as durable`;
  if (row?.durable !== 'onon') throw new Error('Postgres is not durable.');
};

/** The deadlines leave time for an autovacuum that holds a lock. */
const openPool = (url: string): Sql => {
  const deadlines = { statement_timeout_ms: 120_000, lock_timeout_ms: 60_000 };
  return openSql({ url, pool: 2, prepare: true, name: 'bench', ...deadlines });
};

const startBed = async (context: BenchContext, onClose: Bed['onClose']): Promise<Bed> => {
  const data_dir = path.join(context.folder, `stores-${randomBytes(3).toString('hex')}`);
  makeDataFolder(data_dir);
  onClose(() => removePlace(data_dir));
  const postgres = await startPostgres({ data_dir, say: context.log });
  onClose(postgres.stop);
  const redis = await startRedis({ data_dir, say: context.log });
  onClose(redis.stop);
  const admin = openPool(postgres.admin_url);
  onClose(() => admin.end({ timeout: 5 }));
  await requireDurable(admin);
  const urlOf = (database: string): string => {
    const url = new URL(postgres.url);
    url.pathname = `/${database}`;
    return url.href;
  };
  const startLoader = () => {
    const child = startChild<LoadHandlers>(new URL('../load/load-process.js', import.meta.url));
    onClose(child.stop);
    return child;
  };
  const loader = startLoader();
  return {
    ...{ context, admin, loader, urlOf, startLoader, onClose, redis_url: redis.url },
    groups: {
      postgres: () => treeOf(postgres.pid),
      redis: () => treeOf(redis.pid),
      load: () => [loader.pid],
    },
    open(database) {
      const sql = openPool(urlOf(database));
      onClose(() => sql.end({ timeout: 5 }));
      return sql;
    },
    async createDatabase(name, fill, copies = []) {
      await admin.unsafe(`create database ${name} owner forum`);
      await migrate(urlOf(name));
      const sql = openPool(urlOf(name));
      await fill?.(sql);
      await sql.end({ timeout: 5 });
      for (const copy of copies) {
        await admin.unsafe(`create database ${copy} owner forum template ${name}`);
      }
    },
  };
};

/** `prepare` of a bench; all that was started is closed at its end, and when a part of it fails. */
export const prepareOnBed =
  (make: (bed: Bed) => Promise<Omit<Prepared, 'close'>>): Bench['prepare'] =>
  async (context) => {
    const closers: (() => unknown)[] = [];
    const close = async (): Promise<void> => {
      for (const closeOne of closers.splice(0).reverse()) {
        await Promise.resolve(closeOne()).catch(() => undefined);
      }
    };
    try {
      const bed = await startBed(context, (closeOne) => void closers.push(closeOne));
      return { ...(await make(bed)), close };
    } catch (error) {
      await close();
      throw error;
    }
  };

export const makeKeys = (count: number): readonly string[] =>
  Array.from({ length: count }, makeApiKey);

/** The keys in a file that the load generator reads. */
export const writeKeys = ({ context }: Bed, keys: readonly string[]): string => {
  const keys_file = path.join(context.folder, 'keys.json');
  writeFileSync(keys_file, JSON.stringify(keys), { mode: 0o600 });
  return keys_file;
};

/** Waits for the work that the service does after its answers, as part of the round; in seconds. */
export const waitUntilEmpty = async (
  sql: Sql,
  tables: readonly string[],
  longest_s = 60,
): Promise<number> => {
  const started_ms = performance.now();
  for (;;) {
    const looks = tables.map((table) => sql`select from ${sql(table)} limit 1`);
    const left = (await Promise.all(looks)).some((rows) => rows.length > 0);
    const waited_s = (performance.now() - started_ms) / 1_000;
    if (!left) return waited_s;
    if (waited_s > longest_s) throw new Error(`${tables.join(' and ')} did not become empty.`);
    await delay(50);
  }
};
