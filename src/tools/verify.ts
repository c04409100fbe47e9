import { existsSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { pino } from 'pino';
import { type Config, readConfig } from '../config.js';
import { openSql } from '../db/client.js';
import { embeddedPostgresUrl } from '../process/embedded/postgres.js';
import { embeddedRedisUrl } from '../process/embedded/redis.js';
import { closeRedis, connectRedis, openRedis } from '../redis/client.js';
import { type Call, runCommand, Stopped, startCommand, writeLine } from './command.js';
import { findDifferences } from './verify/differences.js';
import type { VerifyParts } from './verify/parts.js';
import { countRecord } from './verify/record-store.js';

const help = `Usage: npm run verify

Compares everything that a running service keeps twice: points with the ledger, predictions with
their events, deliveries with the log, counters, snapshots and live tallies with the predictions, the
Redis stream with the log. Changes nothing.

Exit code: 0 all is right, 1 something differs.`;

/** What is under way for less than this is no difference yet. */
const settle_ms = 10_000;
/**
 * A difference that exists only because a part of the service is being replaced changes from look
 * to look; one that stays the same for so many looks is real.
 */
const same_looks = 3;
const again_ms = 500;

const findStores = ({ DATA_DIR, DATABASE_URL, REDIS_URL }: Config) => {
  const database_url = DATABASE_URL ?? embeddedPostgresUrl(DATA_DIR);
  if (database_url === null || (REDIS_URL === undefined && !existsSync(DATA_DIR))) {
    throw new Stopped(`There is no service in ${DATA_DIR}: start it, or set DATA_DIR.`);
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
  const { database_url: url, redis_url } = findStores(config);
  const log = pino({ level: 'silent' });
  const { DATABASE_PREPARE: prepare, REDIS_PREFIX: prefix } = config;
  const sql = openSql({ url, pool: 3, prepare, name: 'verify', statement_timeout_ms: 300_000 });
  const redis = openRedis({ url: redis_url, name: 'verify', log, command_timeout_ms: 60_000 });
  try {
    await connectRedis(redis);
    if (redis.status !== 'ready') throw new Stopped('Redis does not answer; does the service run?');
    const found = await lookUntilSettled({ sql, redis, prefix, under_way_ms: settle_ms });
    return { found, compared: await countRecord(sql) };
  } finally {
    closeRedis(redis);
    await sql.end({ timeout: 1 });
  }
};

const runVerify = (call: Call): Promise<number> =>
  runCommand(call, {
    ...{ help, takes_one: false, options: {} },
    async work() {
      const { found, compared } = await verify(readConfig());
      const is_right = found.length === 0;
      const end = is_right ? 'Nothing differs' : `\n${found.length} differences`;
      for (const line of [...found, `${end}; compared: ${compared}.`]) writeLine(call.screen, line);
      return is_right ? 0 : 1;
    },
  });

await startCommand(import.meta.filename, runVerify);
