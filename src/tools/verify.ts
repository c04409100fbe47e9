import { existsSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { pino } from 'pino';
import { type Config, ConfigError, readConfig } from '../config.js';
import { embeddedPostgresUrl } from '../embedded/postgres.js';
import { embeddedRedisUrl } from '../embedded/redis.js';
import { openSql } from '../kit/pg/client.js';
import { closeRedis, connectRedis, openRedis } from '../kit/redis/client.js';
import { printable } from './shared/terminal.js';
import { findDifferences } from './verify/differences.js';
import type { VerifyParts } from './verify/parts.js';
import { countRecord } from './verify/record-store.js';

/**
 * `npm run verify`: compares everything that a running service keeps twice: points with the ledger,
 * predictions with their events, deliveries with the log, counters, snapshots and live tallies with
 * the predictions, the Redis stream with the log. Changes nothing. Says what differs and ends with
 * code 1, or says that all is right.
 */

/**
 * What is under way for less than this is no difference yet; what differs all the same only because
 * a part of the service is just being replaced changes from look to look, and is right by then.
 */
const settle_ms = 10_000;
const again_ms = 500;
const same_looks = 3;

const say = (line: string): void => console.log(printable(line));

const findStores = (
  config: Config,
): { readonly database_url: string; readonly redis_url: string } => {
  const { DATA_DIR, DATABASE_URL, REDIS_URL } = config;
  const database_url = DATABASE_URL ?? embeddedPostgresUrl(DATA_DIR);
  if (database_url === null || (REDIS_URL === undefined && !existsSync(DATA_DIR))) {
    throw new Error(`There is no service in ${DATA_DIR}: start it, or set DATA_DIR.`);
  }
  return { database_url, redis_url: REDIS_URL ?? embeddedRedisUrl(DATA_DIR) };
};

const lookUntilSettled = async (parts: VerifyParts): Promise<readonly string[]> => {
  const until_ms = Date.now() + settle_ms;
  let same = 0;
  let before = '';
  for (;;) {
    const found = await findDifferences(parts);
    const text = found.join('\n');
    same = text === before ? same + 1 : 1;
    before = text;
    if (found.length === 0 || same >= same_looks || Date.now() > until_ms) return found;
    await wait(again_ms);
  }
};

const verify = async (config: Config) => {
  const { database_url, redis_url } = findStores(config);
  const log = pino({ level: 'silent' });
  const prepare = config.DATABASE_PREPARE;
  const statement_timeout_ms = 300_000;
  const sql = openSql({
    url: database_url,
    pool: 3,
    prepare,
    name: 'verify',
    statement_timeout_ms,
  });
  const redis = openRedis({ url: redis_url, name: 'verify', log, command_timeout_ms: 60_000 });
  try {
    await connectRedis(redis);
    if (redis.status !== 'ready') throw new Error('Redis does not answer; does the service run?');
    const found = await lookUntilSettled({
      sql,
      redis,
      prefix: config.REDIS_PREFIX,
      under_way_ms: settle_ms,
    });
    return { found, compared: await countRecord(sql) };
  } finally {
    closeRedis(redis);
    await sql.end({ timeout: 1 });
  }
};

try {
  const { found, compared } = await verify(readConfig());
  for (const line of found) say(line);
  const end = found.length === 0 ? 'Nothing differs' : `\n${found.length} differences`;
  say(`${end}; compared: ${compared}.`);
  process.exitCode = found.length === 0 ? 0 : 1;
} catch (error) {
  if (!(error instanceof Error)) throw error;
  const code = (error as NodeJS.ErrnoException).code ?? '';
  console.error(
    printable(
      error instanceof ConfigError || code === ''
        ? error.message
        : `Postgres does not answer: ${error.message}`,
    ),
  );
  process.exitCode = 1;
}
