import type { Redis } from 'ioredis';
import type { Sql } from '../../db/client.js';
import { listBoardSets, makeBoards } from './keeper.js';
import { idOf } from './live.js';
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
  const of = (members: readonly string[]) =>
    new Map(members.slice(1).map((one) => [idOf(one), one]));
  const [found, meant] = [of(has), of(wanted)];
  const wrong = [...found.keys(), ...meant.keys()].find((id) => found.get(id) !== meant.get(id));
  if (wrong !== undefined) {
    const [row = 'nothing', right = 'nothing'] = [found.get(wrong), meant.get(wrong)];
    return [`board ${name}: agent ${wrong} has ${row}, not ${right}`];
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
