import type { Redis } from 'ioredis';
import type { Sql } from '../../kit/pg/client.js';
import { boardKeys, writeRow } from './live.js';
import { listDebaters } from './store.js';

/**
 * Compares the board in Redis with the record, for `npm run verify`. Sentences about what differs,
 * a few; none: all is right.
 */

export interface DebatersAsk {
  readonly sql: Sql;
  readonly redis: Redis;
  readonly prefix: string;
}

const shown = 5;
const agents_a_page = 500;
const first_id = '00000000-0000-0000-0000-000000000000';

export const findDebaterDifferences = async (ask: DebatersAsk): Promise<readonly string[]> => {
  const { sql, redis, prefix } = ask;
  const [state, order, rows] = boardKeys(prefix);
  if (!/^\d+$/.test((await redis.get(state)) ?? '')) return ['Redis has no board of debaters'];
  const found: string[] = [];
  let count = 0;
  let some = await listDebaters(sql, first_id, agents_a_page);
  while (some.length > 0) {
    const ids = some.map(({ agent_id }) => agent_id);
    const live = await redis.hmget(rows, ...ids);
    for (const [index, debater] of some.entries()) {
      const wanted = writeRow(debater);
      if (live[index] === wanted) continue;
      found.push(`debater ${debater.agent_id} has ${live[index]} on the board, not ${wanted}`);
    }
    count += some.length;
    some = await listDebaters(sql, ids.at(-1) ?? '', agents_a_page);
  }
  for (const size of [await redis.zcard(order), await redis.hlen(rows)]) {
    if (size !== count) found.push(`the board of debaters has ${size} agents, not ${count}`);
  }
  return found.slice(0, shown);
};
