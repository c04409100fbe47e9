import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { openSql, type Sql } from '../../src/db/client.js';
import { migrate } from '../../src/db/migrate.js';
import { makeDataFolder } from '../../src/process/embedded/data-dir.js';
import { startPostgres } from '../../src/process/embedded/postgres.js';
import { removePlace } from '../../src/process/embedded/postgres-home.js';
import { startRedis } from '../../src/process/embedded/redis.js';
import { treeOf } from './processes.js';

/**
 * One Postgres and one Redis for all subjects of a bench, the same that `npm start` would start:
 * every commit is on the disk before it is answered (fsync and synchronous_commit on).
 */
export interface Stores {
  readonly redis_url: string;
  /** Connection of the superuser, for checkpoints and counting. */
  readonly admin: Sql;
  readonly server_version: number;
  urlOf(database: string): string;
  /** Makes a migrated, empty database. */
  createDatabase(name: string): Promise<void>;
  /** Makes databases that equal the template in every byte. */
  copyDatabase(template: string, names: readonly string[]): Promise<void>;
  postgresPids(): readonly number[];
  redisPids(): readonly number[];
  close(): Promise<void>;
}

const requireDurable = async (admin: Sql): Promise<number> => {
  const [row] = await admin<{ fsync: string; commit: string; version: number }[]>`
    select
      current_setting('fsync') as fsync,
      current_setting('synchronous_commit') as commit,
      current_setting('server_version_num')::int as version`;
  if (row?.fsync !== 'on' || row.commit !== 'on') throw new Error('Postgres is not durable.');
  return row.version;
};

/** Its statements wait for what Postgres does by itself: a `vacuum` for an autovacuum, for one. */
export const openPool = (url: string, name: string): Sql => {
  const patient = { statement_timeout_ms: 120_000, lock_timeout_ms: 60_000 };
  return openSql({ url, pool: 2, prepare: true, name, ...patient });
};

export const startStores = async (
  folder: string,
  tell: (line: string) => void,
): Promise<Stores> => {
  const data_dir = path.join(folder, `stores-${randomBytes(3).toString('hex')}`);
  makeDataFolder(data_dir);
  const postgres = await startPostgres({ data_dir, say: tell });
  const redis = await startRedis({ data_dir, say: tell }).catch(async (error: unknown) => {
    await postgres.stop();
    throw error;
  });
  const admin = openPool(postgres.admin_url, 'bench');
  const urlOf = (database: string): string => {
    const url = new URL(postgres.url);
    url.pathname = `/${database}`;
    return url.href;
  };
  return {
    redis_url: redis.url,
    admin,
    server_version: await requireDurable(admin),
    urlOf,
    async createDatabase(name) {
      await admin.unsafe(`create database ${name} owner forum`);
      await migrate(urlOf(name));
    },
    async copyDatabase(template, names) {
      for (const name of names) {
        await admin.unsafe(`create database ${name} owner forum template ${template}`);
      }
    },
    postgresPids: () => treeOf(postgres.pid),
    redisPids: () => treeOf(redis.pid),
    async close() {
      await admin.end({ timeout: 5 });
      await redis.stop();
      await postgres.stop();
      removePlace(data_dir);
    },
  };
};
