import type { Redis } from 'ioredis';
import type { Sql } from '../../kit/pg/client.js';
import { allBoards, boardKey, boards_form, detailsKey, type Head, readHead } from './live.js';
import { writePlaces } from './places.js';
import { dayOf, keyOn, type Slice, slicesOf } from './rules.js';
import { readStandings } from './standings.js';
import { listAgents, readPillars } from './store.js';

/**
 * Compares the boards in Redis with the record, for `npm run verify`. Sentences about what differs,
 * at most `shown`; none: all is right. A change of the last second may not have arrived yet and
 * shows until it has.
 */

export interface BoardsAsk {
  readonly sql: Sql;
  readonly redis: Redis;
  readonly prefix: string;
  readonly now: Date;
}

const shown = 5;
const agents_a_page = 500;
const first_id = '00000000-0000-0000-0000-000000000000';

interface Look extends BoardsAsk {
  readonly head: Head;
  readonly slices: readonly Slice[];
}

/** What is on the boards about one page of agents, and how many it should be on each. */
const comparePage = async (look: Look, agents: readonly string[], sizes: Map<string, number>) => {
  const { redis, prefix, head, slices } = look;
  const standings = await readStandings(look.sql, { slices, day: head.day, agents });
  const found: string[] = [];
  const told = new Set<string>();
  for (const board of allBoards(slices)) {
    const name = boardKey(prefix, head.gen, board);
    const live = await redis.zmscore(name, ...agents);
    for (const [index, agent_id] of agents.entries()) {
      const standing = standings.get(agent_id)?.get(board.slot);
      const wanted = standing === undefined ? null : keyOn(board.kind, standing);
      const has = live[index] ?? null;
      if (wanted !== null) sizes.set(name, (sizes.get(name) ?? 0) + 1);
      if ((has === null) === (wanted === null) && Number(has) === (wanted ?? 0)) continue;
      told.add(agent_id);
      found.push(
        `board ${board.kind} of ${board.slot}: agent ${agent_id} has ${has}, not ${wanted}`,
      );
    }
  }
  const details = await redis.hmget(detailsKey(prefix, head.gen), ...agents);
  for (const [index, agent_id] of agents.entries()) {
    const wanted = writePlaces(slices, standings.get(agent_id));
    const has = details[index] ?? '';
    // A place holds the keys as well: who is wrong on a board is told of already.
    if (has === wanted || told.has(agent_id)) continue;
    found.push(`boards: the places of agent ${agent_id} are '${has}', not '${wanted}'`);
  }
  return found;
};

export const findBoardDifferences = async (ask: BoardsAsk): Promise<readonly string[]> => {
  const { sql, redis, prefix, now } = ask;
  const head = await readHead(redis, prefix);
  if (head === null) return ['Redis has no boards'];
  if (head.form !== boards_form) return ['the boards in Redis are those of another program'];
  if (head.day !== dayOf(now)) return ['the boards in Redis are those of another day'];
  const slices = slicesOf(await readPillars(sql), head.day);
  const look = { ...ask, head, slices };
  const sizes = new Map<string, number>();
  const found: string[] = [];
  let agents = await listAgents(sql, first_id, agents_a_page);
  while (agents.length > 0) {
    found.push(...(await comparePage(look, agents, sizes)));
    agents = await listAgents(sql, agents[agents.length - 1] ?? '', agents_a_page);
  }
  for (const board of allBoards(slices)) {
    const name = boardKey(prefix, head.gen, board);
    const [size, wanted] = [await redis.zcard(name), sizes.get(name) ?? 0];
    if (size !== wanted) {
      found.push(`board ${board.kind} of ${board.slot} has ${size} agents, not ${wanted}`);
    }
  }
  return found.slice(0, shown);
};
