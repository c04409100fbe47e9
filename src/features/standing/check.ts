import type { Redis } from 'ioredis';
import type { Sql } from '../../kit/pg/client.js';
import { listBoardSets, makeBoards } from './keeper.js';
import { readRow } from './live.js';
import { dayOf } from './rules.js';
import { countWrongNets } from './store.js';

/**
 * Compares the boards in Redis with the record, for `npm run verify`. Sentences about what differs,
 * at most `shown`; none: all is right. A change of the last seconds may not have arrived yet and
 * shows until it has.
 */

export interface BoardsAsk {
  readonly sql: Sql;
  readonly redis: Redis;
  readonly prefix: string;
  readonly now: Date;
}

const shown = 5;

/** What differs first between what a board has and what it should have. */
const compare = (name: string, has: readonly string[], wanted: readonly string[]): string[] => {
  if (has.length === 0) return [`Redis has no board ${name}`];
  const [here, right] = [new Set(has), new Set(wanted)];
  const wrong = has.slice(1).find((member) => !right.has(member));
  const missing = wanted.slice(1).find((member) => !here.has(member));
  if (wrong !== undefined || missing !== undefined) {
    const { agent_id } = readRow((wrong ?? missing) as string);
    const of = (members: readonly string[]) => members.find((one) => one.startsWith(agent_id, 16));
    const [found, meant] = [of(has)?.slice(52), of(wanted)?.slice(52)];
    return [
      `board ${name}: agent ${agent_id} has ${found ?? 'nothing'}, not ${meant ?? 'nothing'}`,
    ];
  }
  return has[0] === wanted[0] ? [] : [`board ${name} says ${has[0]}, not ${wanted[0]}`];
};

export const findBoardDifferences = async (ask: BoardsAsk): Promise<readonly string[]> => {
  const { sql, redis, prefix, now } = ask;
  const found: string[] = [];
  for (const set of await listBoardSets(sql, dayOf(now))) {
    for (const { key, members } of await makeBoards(sql, prefix, set)) {
      const name = key.slice(key.indexOf('}:') + 2).replace(':', ' of ');
      found.push(...compare(name, await redis.zrange(key, '0', '-1'), members));
    }
    if (found.length >= shown) return found.slice(0, shown);
  }
  const wrong = await countWrongNets(sql);
  if (wrong > 0) found.push(`${wrong} agents have won something else than board_nets says`);
  return found;
};
