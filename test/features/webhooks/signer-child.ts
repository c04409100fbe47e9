import { pino } from 'pino';
import { readConfig } from '../../../src/config.js';
import { openSql } from '../../../src/db/client.js';
import { createSigner } from '../../../src/process/start.js';
import { connectRedis, openRedis } from '../../../src/redis/client.js';

/** A signer in a process of its own, to be killed. Its settings come from the environment. */
const config = readConfig();
const log = pino({ level: 'silent' });
const sql = openSql({ url: config.DATABASE_URL ?? '', pool: 3, prepare: true, name: 'victim' });
const redis = openRedis({
  url: config.REDIS_URL ?? '',
  name: 'victim',
  log,
  command_timeout_ms: 1_000,
});
await connectRedis(redis);
const clock = (): Date => new Date();
const deps = { config, log, sql, redis, clock, public_url: 'http://forum' };
await createSigner(deps, { sweep_ms: 50, lease_ms: 3_000 }).start();
