import { pino } from 'pino';
import { readConfig } from '../../../src/config.js';
import { openSql } from '../../../src/db/client.js';
import { createDigestTimer, stopRefused } from '../../../src/features/digests/index.js';
import { createMailer } from '../../../src/features/mail/index.js';
import { openRedis } from '../../../src/redis/client.js';

/**
 * The part of the timer that makes and sends digests, as a process that a test can kill. It does
 * not load tap, which would end it after a while.
 */

interface Given {
  readonly database_url: string;
  readonly redis_url: string;
  readonly smtp_url: string;
  readonly secret_key: string;
  /** How far the clock of the process is ahead. */
  readonly ahead_ms: number;
}

const given = JSON.parse(process.argv[2] ?? '') as Given;
const config = readConfig({
  DATABASE_URL: given.database_url,
  REDIS_URL: given.redis_url,
  SMTP_URL: given.smtp_url,
  SECRET_KEY: given.secret_key,
});
const log = pino({ level: 'silent' });
const sql = openSql({ url: given.database_url, pool: 4, prepare: true, name: 'timer' });
const redis = openRedis({ url: given.redis_url, name: 'timer', log, command_timeout_ms: 1_000 });
const clock = () => new Date(Date.now() + given.ahead_ms);
const deps = { config, log, sql, reads: sql, redis, clock, public_url: 'http://forum' };
const every_ms = 50;
const services = [
  createDigestTimer(deps, every_ms),
  createMailer(deps, { onRefused: stopRefused, every_ms }),
];
for (const service of services) await service.start();
process.send?.('started');
