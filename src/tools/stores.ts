import { existsSync } from 'node:fs';
import { pino } from 'pino';
import type { Config } from '../config.js';
import { openSql, type Sql } from '../db/client.js';
import { checkAge } from '../db/migrate.js';
import { claimDataDir, type Say } from '../process/embedded/data-dir.js';
import { embeddedPostgresUrl, startPostgres } from '../process/embedded/postgres.js';
import { embeddedRedisUrl } from '../process/embedded/redis.js';
import { closeRedis, connectRedis, openRedis, type RedisClient } from '../redis/client.js';
import { type Call, isRunning, unreachable, writeLine } from './command.js';

/**
 * Opens the stores of a command: the ones that the settings name, else the embedded ones of
 * DATA_DIR.
 */

export interface Access {
  /** The database shows the connections under this name. */
  readonly name: string;
  readonly pool?: number;
  /** 0 means no limit. */
  readonly statement_timeout_ms: number;
  /** Receives a line if an embedded Postgres is started for the command. */
  readonly say: Say;
}

/** Returns settings for short statements. Reports go to the screen of the command. */
export const makeAccess = ({ screen }: Call, name: string): Access => ({
  name,
  statement_timeout_ms: 60_000,
  say: (line) => writeLine(screen, line),
});

type Use<T> = (sql: Sql, url: string) => Promise<T>;

const withSql = async <T>(url: string, config: Config, access: Access, use: Use<T>): Promise<T> => {
  const { name, pool = 1, statement_timeout_ms } = access;
  const { DATABASE_PREPARE: prepare } = config;
  const sql = openSql({ url, pool, prepare, name, statement_timeout_ms });
  try {
    await checkAge(sql);
    return await use(sql, url);
  } finally {
    await sql.end({ timeout: 1 });
  }
};

/** Opens the database and claims the folder exclusively: no service may be running in it. */
export const withTarget = async <T>(config: Config, access: Access, use: Use<T>): Promise<T> => {
  const { DATA_DIR, DATABASE_URL } = config;
  const claim = await claimDataDir(DATA_DIR);
  try {
    if (DATABASE_URL !== undefined) return await withSql(DATABASE_URL, config, access, use);
    const postgres = await startPostgres({ data_dir: DATA_DIR, say: access.say });
    try {
      return await withSql(postgres.url, config, access, use);
    } finally {
      await postgres.stop();
    }
  } finally {
    claim.release();
  }
};

const noService = ({ DATA_DIR }: Config) =>
  unreachable(`There is no service in ${DATA_DIR}. Start it, or set DATA_DIR.`);

/** Opens the database, whether or not the service is running. */
export const withSource = async <T>(config: Config, access: Access, use: Use<T>): Promise<T> => {
  const { DATA_DIR, DATABASE_URL } = config;
  if (DATABASE_URL !== undefined) return withSql(DATABASE_URL, config, access, use);
  const url = embeddedPostgresUrl(DATA_DIR);
  if (url === null) throw noService(config);
  const is_up = isRunning(DATA_DIR);
  return is_up ? withSql(url, config, access, use) : withTarget(config, access, use);
};

/** Opens Postgres and Redis. Both must be running, but the service need not. */
export const withBoth = async <T>(
  config: Config,
  access: Access,
  use: (sql: Sql, redis: RedisClient) => Promise<T>,
): Promise<T> => {
  const { DATA_DIR, DATABASE_URL, REDIS_URL } = config;
  const database_url = DATABASE_URL ?? embeddedPostgresUrl(DATA_DIR);
  if (database_url === null || (REDIS_URL === undefined && !existsSync(DATA_DIR))) {
    throw noService(config);
  }
  const redis = openRedis({
    url: REDIS_URL ?? embeddedRedisUrl(DATA_DIR),
    name: access.name,
    log: pino({ level: 'silent' }),
    command_timeout_ms: 60_000,
  });
  try {
    await connectRedis(redis);
    if (redis.status !== 'ready') {
      throw unreachable('Redis does not answer. Is the service running?');
    }
    return await withSql(database_url, config, access, (sql) => use(sql, redis));
  } finally {
    closeRedis(redis);
  }
};
