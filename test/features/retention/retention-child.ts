import { pino } from 'pino';
import { openSql } from '../../../src/db/client.js';
import { createRetention } from '../../../src/features/retention/index.js';
import { openRedis } from '../../../src/redis/client.js';
import { makeConfig } from '../../help/parts.js';

/** Retention in its own process, until it is killed. Argument: its stores and `env` as JSON. */

const { env, ...stores } = JSON.parse(process.argv[2] ?? '{}');
const log = pino({ level: 'silent' });
const sql = openSql({ url: stores.database_url, pool: 2, prepare: true, name: 'timer' });
const redis = openRedis({ url: stores.redis_url, name: 'timer', log, command_timeout_ms: 1_000 });
const config = makeConfig(stores, env);
const opened = { sql, reads: sql, redis };
const deps = { config, log, ...opened, clock: () => new Date(), public_url: 'http://forum' };
await createRetention(deps, { every_ms: 5, settle_ms: 20 }).start();
process.send?.('started');
