import { existsSync } from 'node:fs';
import path from 'node:path';
import { pino } from 'pino';
import type { Config } from '../../config.js';
import { openSql, type Sql } from '../../db/client.js';
import { deriveKey } from '../../kit/sealing.js';
import { claimDataDir, readOrEmpty } from '../../process/embedded/data-dir.js';
import { embeddedPostgresUrl, startPostgres } from '../../process/embedded/postgres.js';
import { emptyRedis, stopRedisLeftover } from '../../process/embedded/redis.js';
import { closeRedis, connectRedis, deleteKeys, openRedis } from '../../redis/client.js';
import { isRunning, Stopped } from '../command.js';

/** Where backup and restore find the database, the key and Redis: running, resting or set. */

const withSql = async <T>(
  url: string,
  { DATABASE_PREPARE: prepare }: Config,
  use: (sql: Sql) => Promise<T>,
): Promise<T> => {
  const sql = openSql({ url, pool: 1, prepare, name: 'backup', statement_timeout_ms: 0 });
  try {
    return await use(sql);
  } finally {
    await sql.end({ timeout: 1 });
  }
};

/** The database to write into, with the folder to itself: no service may run on it. */
export const withTarget = async <T>(config: Config, use: (sql: Sql) => Promise<T>): Promise<T> => {
  const { DATA_DIR, DATABASE_URL } = config;
  const claim = await claimDataDir(DATA_DIR);
  try {
    if (DATABASE_URL !== undefined) return await withSql(DATABASE_URL, config, use);
    const postgres = await startPostgres({ data_dir: DATA_DIR, say: console.log });
    try {
      return await withSql(postgres.url, config, use);
    } finally {
      await postgres.stop();
    }
  } finally {
    claim.release();
  }
};

/** The database to read from, whether the service runs or not. */
export const withSource = async <T>(config: Config, use: (sql: Sql) => Promise<T>): Promise<T> => {
  const { DATA_DIR, DATABASE_URL } = config;
  if (DATABASE_URL !== undefined) return withSql(DATABASE_URL, config, use);
  const url = existsSync(DATA_DIR) ? embeddedPostgresUrl(DATA_DIR) : null;
  if (url === null) throw new Stopped(`There is no service in ${DATA_DIR}: set DATA_DIR.`);
  return isRunning(DATA_DIR) ? withSql(url, config, use) : withTarget(config, use);
};

/** Says whether two keys are the same one, and nothing else; null where there is no key. */
export const checkOfSecretKey = ({ SECRET_KEY, DATA_DIR }: Config): string | null => {
  const key = SECRET_KEY ?? readOrEmpty(path.join(DATA_DIR, 'secret-key')).trim();
  return key === '' ? null : deriveKey(key, 'prediction-forum backup 1').toString('hex', 0, 8);
};

/**
 * Everything in Redis tells of the history that the database had: the stream, boards, tallies. The
 * service makes it again from what is restored.
 */
export const forgetRedis = async ({ REDIS_URL, REDIS_PREFIX, DATA_DIR }: Config): Promise<void> => {
  if (REDIS_URL === undefined) {
    await stopRedisLeftover(DATA_DIR);
    return emptyRedis(DATA_DIR);
  }
  const log = pino({ level: 'silent' });
  const redis = openRedis({ url: REDIS_URL, name: 'backup', log, command_timeout_ms: 10_000 });
  try {
    await connectRedis(redis);
    if (redis.status !== 'ready') {
      throw new Stopped('Redis (REDIS_URL) does not answer, and what it keeps has to go first.');
    }
    await deleteKeys(redis, REDIS_PREFIX);
  } finally {
    closeRedis(redis);
  }
};
