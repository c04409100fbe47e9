import { existsSync, mkdirSync, readdirSync, rmSync, statfsSync } from 'node:fs';
import { userInfo } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { startTime } from '../../src/boot/processes.mjs';
import { openSql, type Sql } from '../../src/db/client.js';
import { migrate } from '../../src/db/migrate.js';
import { makeDataFolder } from '../../src/process/embedded/data-dir.js';
import { startPostgres, stopPostgresLeftovers } from '../../src/process/embedded/postgres.js';
import { removePlace } from '../../src/process/embedded/postgres-home.js';
import { startRedis, stopRedisLeftover } from '../../src/process/embedded/redis.js';
import { unmountSmallDisks } from './small-disk.js';

/** Postgres and Redis for one test run or one test file, in a folder that is removed with them. */

export const project_root = fileURLToPath(new URL('../../..', import.meta.url));

/** In memory if there is room, because creating a database on disk takes ten times as long. */
const chooseFolder = (): string => {
  const memory = '/dev/shm';
  if (existsSync(memory)) {
    const { bavail, bsize } = statfsSync(memory);
    if (bavail * bsize > 4 * 2 ** 30) return path.join(memory, `pf-test-${userInfo().uid}`);
  }
  return path.join(project_root, '.data', 'test');
};
const tests_folder = chooseFolder();
export const template_name = 'pf_template';

let folders = 0;

/** Makes an empty folder, named after this pid so that a later run knows which process made it. */
export const makeTestFolder = (): string => {
  mkdirSync(tests_folder, { recursive: true });
  folders += 1;
  const folder = path.join(tests_folder, `${process.pid}-${folders}`);
  rmSync(folder, { recursive: true, force: true });
  makeDataFolder(folder);
  return folder;
};

export const removeTestFolder = (folder: string): void => {
  unmountSmallDisks(folder);
  removePlace(folder);
  rmSync(folder, { recursive: true, force: true });
};

/** Removes the folders of killed runs. */
export const sweepTestFolders = async (): Promise<void> => {
  mkdirSync(tests_folder, { recursive: true });
  for (const name of readdirSync(tests_folder)) {
    if (startTime(Number.parseInt(name, 10)) !== null) continue;
    const folder = path.join(tests_folder, name);
    await stopRedisLeftover(folder).catch(() => undefined);
    await stopPostgresLeftovers(folder).catch(() => undefined);
    removeTestFolder(folder);
  }
};

const quiet = (): void => undefined;

export type OwnStores = Awaited<ReturnType<typeof startOwnStores>>;

/** If `durable`, every write is flushed to disk: for tests that kill the stores, and benchmarks. */
export const startOwnStores = async (durable: boolean) => {
  const folder = makeTestFolder();
  const options = { data_dir: folder, say: quiet };
  const [pg, redis] = await Promise.all([
    startPostgres({ ...options, durable }),
    startRedis(options),
  ]);
  const stop = async (): Promise<void> => {
    await Promise.all([pg.stop(), redis.stop()]);
    removeTestFolder(folder);
  };
  return { folder, postgres: pg, redis, stop };
};

/** A single connection for a test's direct changes to a database. */
export const openAdmin = (url: string): Sql =>
  openSql({
    url,
    pool: 1,
    prepare: false,
    name: 'test',
    statement_timeout_ms: 60_000,
    lock_timeout_ms: 60_000,
  });

/** URL of another database on the same server. */
export const withDatabase = (url: string, database: string): string => {
  const other = new URL(url);
  other.pathname = `/${database}`;
  return other.href;
};

/** Makes the migrated database that is copied for every test file. */
export const makeTemplate = async (admin_url: string): Promise<void> => {
  const admin = openAdmin(admin_url);
  try {
    await admin.unsafe(`create database ${template_name}`);
    await migrate(withDatabase(admin_url, template_name));
  } finally {
    await admin.end();
  }
};
