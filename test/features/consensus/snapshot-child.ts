import { pino } from 'pino';
import { openSql } from '../../../src/db/client.js';
import { createSnapshotTimer } from '../../../src/features/consensus/index.js';
import { connectRedis, openRedis } from '../../../src/redis/client.js';
import { makeConfig } from '../../help/parts.js';

/** The snapshot timer in its own process, until it is killed. Argument: its stores as JSON. */

const stores = JSON.parse(process.argv[2] ?? '{}');
const log = pino({ level: 'silent' });
const sql = openSql({ url: stores.database_url, pool: 2, prepare: true, name: 'timer' });
const redis = openRedis({ url: stores.redis_url, name: 'timer', log, command_timeout_ms: 1_000 });
await connectRedis(redis);
const config = makeConfig(stores);
const opened = { sql, reads: sql, redis };
const deps = { config, log, ...opened, clock: () => new Date(), public_url: 'http://forum' };
await createSnapshotTimer(deps, 1).start();
process.send?.('started');
