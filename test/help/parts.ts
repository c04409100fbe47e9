import { pino } from 'pino';
import { type Config, readConfig } from '../../src/config.js';
import { openSql } from '../../src/db/client.js';
import type { Deps } from '../../src/http/deps.js';
import { closeRedis, connectRedis, openRedis } from '../../src/redis/client.js';
import { openStores, type Stores, type Teardown } from './stores.js';

/** The deps of one process on its own stores, for tests of a feature without its routes. */

export interface PartsOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly stores?: Stores;
  /** A Redis URL that leads nowhere, for tests of an outage. */
  readonly redis_url?: string;
  readonly log?: Deps['log'];
}

export const makeConfig = (stores: Stores, env: Readonly<Record<string, string>> = {}): Config =>
  readConfig({
    DATABASE_URL: stores.database_url,
    REDIS_URL: stores.redis_url,
    REDIS_PREFIX: stores.redis_prefix,
    NODE_ENV: 'development',
    SECRET_KEY: 'test-secret-key-0123456789abcdefghij',
    ...env,
  });

export type Parts = Awaited<ReturnType<typeof openParts>>;

export const openParts = async (t: Teardown, options: PartsOptions = {}) => {
  const stores = options.stores ?? (await openStores(t));
  const config = makeConfig(stores, options.env);
  const log = options.log ?? pino({ level: 'silent' });
  const sql = openSql({ url: stores.database_url, pool: 4, prepare: true, name: 'test' });
  const redis = openRedis({
    url: options.redis_url ?? stores.redis_url,
    name: 'test',
    log,
    command_timeout_ms: 1_000,
  });
  await connectRedis(redis);
  let now_ms = Date.now();
  t.teardown(async () => {
    closeRedis(redis);
    await sql.end({ timeout: 1 });
  });
  const clock = () => new Date(now_ms);
  const deps: Deps = { config, log, sql, reads: sql, redis, clock, public_url: 'http://forum' };
  return {
    stores,
    deps,
    /** Advances the clock of `deps`. Otherwise its time does not change. */
    advance(ms: number): void {
      now_ms += ms;
    },
  };
};
