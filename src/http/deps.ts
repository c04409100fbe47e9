import type { Logger } from 'pino';
import type { Config } from '../config.js';
import type { Sql } from '../db/client.js';
import type { RedisClient } from '../redis/client.js';

/** The values that every feature gets; each process makes them once. Features may need more. */
export interface Deps {
  readonly config: Config;
  readonly log: Logger;
  readonly sql: Sql;
  /** For reads only. Uses a replica if there is one, and is never older than `sql`. */
  readonly reads: Sql;
  /** Commands only: never blocking reads, never subscriptions. May be down at any time. */
  readonly redis: RedisClient;
  /** The time of Postgres, which decides when everything opens, closes and expires. */
  readonly clock: () => Date;
  /** Base URL for links, without a trailing slash. */
  readonly public_url: string;
}
