import { pino } from 'pino';
import { readConfig } from '../../../src/config.js';
import { openSql } from '../../../src/db/client.js';
import { createWebhooks } from '../../../src/features/webhooks/index.js';
import { createSigner } from '../../../src/process/signer.js';
import { connectRedis, openRedis } from '../../../src/redis/client.js';

/** A signer in its own process, to be killed or stopped. Its settings come from the environment. */
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
const deps = { config, log, sql, reads: sql, redis, clock, public_url: 'http://forum' };
const webhooks = createWebhooks(config, { limits: { wall_ms: 1_000 } });
const lease_ms = Number(process.env['LEASE_MS'] ?? 3_000);
const slot = process.env['SLOT'];
await createSigner(deps, { webhooks, sweep_ms: 50, lease_ms, slot }).start();
