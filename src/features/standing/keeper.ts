import type { Redis } from 'ioredis';
import type { Deps } from '../../kit/deps.js';
import { makeId } from '../../kit/ids.js';
import { type Loop, makeLoop } from '../../kit/loop.js';
import type { Db, Tx } from '../../kit/pg/client.js';
import {
  boardKey,
  builtKey,
  membersOf,
  most_in_redis,
  slotOf,
  wholeSlice,
  writeBoard,
} from './live.js';
import { agent_kinds, dayOf, type Slice, slicesOf } from './rules.js';
import {
  holdBoards,
  readBoard,
  readPillars,
  readTops,
  takeDebaterMarks,
  takeMarks,
} from './store.js';

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

const marks_a_time = 10_000;
const most_marks = 200_000;
/** Others need the stores too: after making boards it rests for so many times as long. */
const rest_of_turn = 3;
const longest_rest_ms = 5_000;
const longest_turn_ms = 3_000;
/** A pass over all scores may take a while. */
const patient = { statement_ms: 30_000 };

/** Redis lost what was being made; the next turn makes it again. */
class BoardsLost extends Error {}

export interface Made {
  readonly key: string;
  readonly members: readonly string[];
}

/** The boards of forecasts in one slice, as they belong in Redis. */
export const makeTops = async (db: Db, prefix: string, slice: Slice): Promise<readonly Made[]> => {
  const boards = await readTops(db, slice, most_in_redis);
  return boards.map((board) => ({
    key: boardKey(prefix, { kind: board.kind, slot: slotOf(board, slice) }),
    members: membersOf(board, slice.since),
  }));
};

export const makeDebaters = async (db: Db, prefix: string): Promise<readonly Made[]> => {
  const made: Made[] = [];
  for (const agents of agent_kinds) {
    const [kind, slice] = ['debaters', wholeSlice(agents)] as const;
    const page = { limit: most_in_redis, offset: 0, after: null };
    const { total, rows } = await readBoard(db, { kind, slice, ...page });
    const members = membersOf({ total, rows: rows.slice(0, most_in_redis) }, null);
    made.push({ key: boardKey(prefix, { kind, slot: slice.slot }), members });
  }
  return made;
};

/** One for both kinds of agents. */
export const pairedSlices = async (db: Db, day: number): Promise<readonly Slice[]> =>
  slicesOf(await readPillars(db), day).filter(({ agents }) => agents === 'agent');

/** What a slice has to be made from, and by slot what was. */
const readBuilt = async (redis: Redis, prefix: string, day: number) => {
  const key = builtKey(prefix);
  await redis.hsetnx(key, 'life', makeId());
  const [built, server] = await Promise.all([redis.hgetall(key), redis.info('server')]);
  const run = /run_id:(\S+)/.exec(server)?.[1] ?? '';
  return { built, stamp: [boards_form, day, run, built['life']].join(' ') };
};

const takeAllMarks = async (tx: Tx): Promise<ReadonlySet<string | null>> => {
  const categories = new Set<string | null>();
  for (let taken = 0; taken < most_marks; taken += marks_a_time) {
    const marked = await takeMarks(tx, marks_a_time);
    for (const category of marked.categories) categories.add(category);
    if (marked.count < marks_a_time) break;
  }
  return categories;
};

/** Takes marks away; what is due then, or null while another keeper is at it. */
const findDue = async (deps: Deps, tx: Tx): Promise<readonly (() => Promise<void>)[] | null> => {
  const { redis, clock, config, sql } = deps;
  if (!(await holdBoards(tx))) return null;
  const prefix = config.REDIS_PREFIX;
  const day = dayOf(clock());
  const { built, stamp } = await readBuilt(redis, prefix, day);
  const moved = await takeAllMarks(tx);
  const debaters_moved = await takeDebaterMarks(tx);
  const isMoved = ({ category }: Slice): boolean =>
    moved.has(null) || (category === null ? moved.size > 0 : moved.has(category));
  const jobs = [
    ...(await pairedSlices(tx, day)).map((slice) => ({
      ...{ slot: slice.slot, is_moved: isMoved(slice) },
      make: (db: Db) => makeTops(db, prefix, slice),
    })),
    {
      ...{ slot: 'debaters', is_moved: debaters_moved },
      make: (db: Db) => makeDebaters(db, prefix),
    },
  ];
  const gone = jobs.filter(({ is_moved }) => is_moved).map(({ slot }) => slot);
  if (gone.length > 0) await redis.hdel(builtKey(prefix), ...gone);
  const due = jobs.filter(({ slot, is_moved }) => is_moved || built[slot] !== stamp);
  return due.map(
    ({ slot, make }) =>
      () =>
        sql.begin(patient, async (held) => {
          if (!(await holdBoards(held))) return;
          for (const { key, members } of await make(held)) {
            if (!(await writeBoard(redis, key, members))) throw new BoardsLost('Redis was emptied');
          }
          await redis.hset(builtKey(prefix), slot, stamp);
        }),
  );
};

export const createBoardKeeper = (deps: Deps, every_ms = 500): Loop => {
  const { sql, redis, log } = deps;
  let rests_until_ms = 0;
  let busy_ms = 0;
  /** False when there is more to do than fits into a turn. */
  const turn = async (started_ms: number): Promise<boolean> => {
    const due = await sql.begin(patient, (tx) => findDue(deps, tx));
    for (const make of due ?? []) {
      if (performance.now() - started_ms > longest_turn_ms) return false;
      await make();
    }
    return true;
  };
  return makeLoop({
    name: 'board keeper',
    log,
    every_ms,
    async turn() {
      const started_ms = performance.now();
      if (redis.status !== 'ready' || started_ms < rests_until_ms) return 'rest';
      try {
        const is_done = await turn(started_ms);
        busy_ms += performance.now() - started_ms;
        if (!is_done) return 'again';
        rests_until_ms = performance.now() + Math.min(rest_of_turn * busy_ms, longest_rest_ms);
        busy_ms = 0;
      } catch (error) {
        if (!(error instanceof BoardsLost) && redis.status === 'ready') throw error;
        log.info('boards: Redis was lost or emptied, looking again');
      }
      return 'rest';
    },
  });
};
