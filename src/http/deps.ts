import type { Logger } from 'pino';
import type { Config } from '../config.js';
import type { Sql } from '../db/client.js';
import type { RedisClient } from '../redis/client.js';

/** Parts that every feature gets; one value per process. Features add their own. */
export interface Deps {
  readonly config: Config;
  readonly log: Logger;
  readonly sql: Sql;
  /** For what only reads: from a replica where there is one, and never older than `sql`. */
  readonly reads: Sql;
  /** Commands only: never blocking reads, never subscriptions. May be down at any time. */
  readonly redis: RedisClient;
  /** The time of Postgres, by which everything opens, closes and runs out. */
  readonly clock: () => Date;
  /** Base address for links, without a slash at its end. */
  readonly public_url: string;
}
