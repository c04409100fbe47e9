import type { Fragment, Sql, Tx } from '../../db/client.js';
import type { RedisClient } from '../../redis/client.js';

export interface VerifyParts {
  readonly sql: Sql;
  readonly redis: RedisClient;
  readonly prefix: string;
  /**
   * Time for which something may be under way (in the outbox, or between the log and Redis) before
   * it counts as a difference. 0 is for a service at rest, in which nothing may be under way.
   */
  readonly under_way_ms?: number;
  /** True: skips the leaderboards, because they are not updated if no timer runs. */
  readonly without_boards?: boolean;
}

/** Maximum number of sentences for one kind of difference. */
export const shown = 5;

/** Number of rows or keys that are checked together. */
export const chunk = 500;

/**
 * Returns a sentence for each difference, in the column `what`. Rows with a UUIDv7 after
 * `settled_before_id` may still be under way.
 */
export type Query = (tx: Tx, settled_before_id: string) => Fragment;

export const findBy = async (
  tx: Tx,
  queries: readonly Query[],
  settled_before_id: string,
): Promise<readonly string[]> => {
  const found: string[] = [];
  for (const query of queries) {
    const rows = await tx<{ what: string }[]>`
      select what from (${query(tx, settled_before_id)}) differences limit ${shown}`;
    found.push(...rows.map(({ what }) => what));
  }
  return found;
};
