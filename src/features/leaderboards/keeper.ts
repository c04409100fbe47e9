import type { Redis } from 'ioredis';
import type { Db, Tx } from '../../db/client.js';
import type { Deps } from '../../http/deps.js';
import { makeId } from '../../kit/ids.js';
import { type Loop, makeLoop } from '../../kit/loop.js';
import { boardKey, builtKey, membersOf, most_in_redis, writeBoard } from './live.js';
import { type BoardName, board_kinds, dayOf, type Slice, slicesOf, whole_slice } from './rules.js';
import { holdBoards, readPillars, readTops, takeDebaterMarks, takeMarks } from './store.js';

/**
 * Makes the boards in Redis from the record. Redis tells of each slice from what it was made: the
 * form of the boards, the UTC day (periods move with it), the life of the Redis server, and a
 * number that is lost when Redis is emptied. A slice that was made from something else is due.
 *
 * A turn takes marks away and, before it commits, makes Redis forget of what they moved; then it
 * makes what is due, one slice in a transaction. Any number of keepers may run: each transaction
 * holds the row `board_head`. So nothing is made from what was read before a mark was taken.
 */

/** What boards rank and how members are written; those of another program are made anew. */
const boards_form = 'rows';

const most_marks = 50_000;
/** Others need the stores too: after making boards it rests for so many times as long. */
const rest_of_turn = 3;
const longest_rest_ms = 5_000;
const longest_turn_ms = 3_000;
/** A pass over all scores may take a while. */
const patient = { statement_ms: 30_000 };

/** Redis lost what was being made; the next turn makes it again. */
class BoardsLost extends Error {}

/** Boards that are made together. */
export interface BoardSet {
  readonly slot: string;
  readonly slice: Slice;
  readonly kinds: readonly BoardName[];
}

export const listBoardSets = async (db: Db, day: number): Promise<readonly BoardSet[]> => [
  ...slicesOf(await readPillars(db), day).map((slice) => ({
    ...{ slot: slice.slot, slice, kinds: board_kinds },
  })),
  { slot: 'debaters', slice: whole_slice, kinds: ['debaters'] },
];

export interface Made {
  readonly key: string;
  readonly members: readonly string[];
}

/** The boards of a set, as they belong in Redis. */
export const makeBoards = async (
  db: Db,
  prefix: string,
  { slice, kinds }: BoardSet,
): Promise<readonly Made[]> => {
  const boards = await readTops(db, { slice, kinds, most: most_in_redis });
  return boards.map((board) => ({
    key: boardKey(prefix, { ...board, slot: slice.slot }),
    members: membersOf(board, slice.since),
  }));
};

/** What a slice has to be made from, and by slot what was. */
const readBuilt = async (redis: Redis, prefix: string, day: number) => {
  const key = builtKey(prefix);
  await redis.hsetnx(key, 'life', makeId());
  const [built, server] = await Promise.all([redis.hgetall(key), redis.info('server')]);
  const run = /run_id:(\S+)/.exec(server)?.[1] ?? '';
  return { built, stamp: [boards_form, day, run, built['life']].join(' ') };
};

interface Due extends BoardSet {
  readonly stamp: string;
}

/** Takes marks away; what is due then: nothing while another keeper is at it. */
const findDue = async ({ redis, clock, config }: Deps, tx: Tx): Promise<readonly Due[]> => {
  if (!(await holdBoards(tx))) return [];
  const prefix = config.REDIS_PREFIX;
  const day = dayOf(clock());
  const { built, stamp } = await readBuilt(redis, prefix, day);
  const moved = await takeMarks(tx, most_marks);
  const debaters_moved = await takeDebaterMarks(tx);
  const isMoved = ({ slot, slice: { category } }: BoardSet): boolean => {
    if (slot === 'debaters') return debaters_moved;
    return moved.has(null) || (category === null ? moved.size > 0 : moved.has(category));
  };
  const sets = await listBoardSets(tx, day);
  const gone = sets.filter(isMoved).map(({ slot }) => slot);
  if (gone.length > 0) await redis.hdel(builtKey(prefix), ...gone);
  return sets
    .filter((set) => isMoved(set) || built[set.slot] !== stamp)
    .map((set) => ({ ...set, stamp }));
};

const makeSet = async ({ redis, config }: Deps, tx: Tx, set: Due): Promise<void> => {
  if (!(await holdBoards(tx))) return;
  for (const { key, members } of await makeBoards(tx, config.REDIS_PREFIX, set)) {
    if (!(await writeBoard(redis, key, members))) throw new BoardsLost('Redis was emptied');
  }
  await redis.hset(builtKey(config.REDIS_PREFIX), set.slot, set.stamp);
};

export const createBoardKeeper = (deps: Deps, every_ms = 500): Loop => {
  const { sql, redis, log } = deps;
  let rests_until_ms = 0;
  const turn = async (started_ms: number): Promise<void> => {
    for (const set of await sql.begin(patient, (tx) => findDue(deps, tx))) {
      if (performance.now() - started_ms > longest_turn_ms) return;
      await sql.begin(patient, (tx) => makeSet(deps, tx, set));
    }
  };
  return makeLoop({
    name: 'board keeper',
    log,
    every_ms,
    async turn() {
      const started_ms = performance.now();
      if (redis.status !== 'ready' || started_ms < rests_until_ms) return 'rest';
      try {
        await turn(started_ms);
        const busy_ms = performance.now() - started_ms;
        rests_until_ms = performance.now() + Math.min(rest_of_turn * busy_ms, longest_rest_ms);
      } catch (error) {
        if (!(error instanceof BoardsLost) && redis.status === 'ready') throw error;
        log.info('boards: Redis was lost or emptied, looking again');
      }
      return 'rest';
    },
  });
};
