import { setTimeout as pause } from 'node:timers/promises';
import type { Db, Tx } from '../../db/client.js';
import type { Deps } from '../../http/deps.js';
import { makeId } from '../../kit/ids.js';
import { type Loop, makeLoop } from '../../kit/loop.js';
import { isWhole, loadScript, type RedisClient } from '../../redis/client.js';
import {
  boardKey,
  builtKey,
  findWrongFigures,
  gatherFigures,
  idOf,
  max_in_redis,
  membersOf,
  writeBoard,
  writeFigures,
} from './live.js';
import { type BoardName, board_kinds, dayOf, type Slice, slicesOf, whole_slice } from './rules.js';
import * as store from './store.js';

/**
 * Makes the boards in Redis from Postgres. Redis holds a stamp for each slice: the format of the
 * boards, the UTC day (periods move with it), the run id of the Redis server, and an id that is
 * lost when Redis is emptied. A slice with a different stamp is due.
 *
 * A turn deletes the rows that record changes and, before it commits, the stamps of the slices that
 * they affect. Then it makes the due slices, one per transaction. Any number of timers may run
 * this. Each transaction locks the row `board_head`, so no board is made from data that was read
 * before a change was taken.
 */

/** The format of boards and members. Boards in another format are made again. */
const boards_form = 'figures';

const max_changes = 50_000;
/** After a turn, the loop rests this many times as long, because other work needs the stores. */
const rest_of_turn = 9;
const longest_rest_ms = 5_000;
const longest_turn_ms = 3_000;
/** Allows for a pass over all scores. */
const patient = { statement_ms: 30_000 };

/** Redis lost the board that was being made; the next turn makes it again. */
class BoardsLost extends Error {}

interface BoardSet {
  readonly slot: string;
  readonly slice: Slice;
  readonly kinds: readonly BoardName[];
}

const listBoardSets = async (db: Db, day: number): Promise<readonly BoardSet[]> => [
  ...slicesOf(await store.readPillars(db), day).map((slice) => ({
    slot: slice.slot,
    slice,
    kinds: board_kinds,
  })),
  { slot: 'debaters', slice: whole_slice, kinds: ['debaters'] },
];

const makeBoards = async (db: Db, prefix: string, { slice, kinds }: BoardSet) => {
  const boards = await store.readTops(db, { slice, kinds, most: max_in_redis });
  return {
    boards: boards.map((board) => ({
      key: boardKey(prefix, { ...board, slot: slice.slot }),
      members: membersOf(board, slice.since),
    })),
    figures: kinds.includes('debaters') ? null : gatherFigures(boards, slice.since),
  };
};

const readRun = loadScript('run-1.lua');

/** Returns the stamp that a slice must have, and the current stamps by slot. */
const readBuilt = async (redis: RedisClient, prefix: string, day: number) => {
  const key = builtKey(prefix);
  await redis.hsetnx(key, 'life', makeId());
  const [built, run] = await Promise.all([redis.hgetall(key), readRun(redis, [key], [])]);
  return { built, stamp: [boards_form, day, run, built['life']].join(' ') };
};

interface Due extends BoardSet {
  readonly stamp: string;
}

/** Takes the recorded changes and returns the due sets. Empty if another process has the lock. */
const findDue = async ({ redis, clock, config }: Deps, tx: Tx): Promise<readonly Due[]> => {
  if (!(await store.lockBoards(tx))) return [];
  const prefix = config.REDIS_PREFIX;
  const day = dayOf(clock());
  const { built, stamp } = await readBuilt(redis, prefix, day);
  const moved = await store.takeStandingChanges(tx, max_changes);
  const debaters_moved = await store.takeDebaterChanges(tx);
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
  if (!(await store.lockBoards(tx))) return;
  const prefix = config.REDIS_PREFIX;
  const { boards, figures } = await makeBoards(tx, prefix, set);
  const written = await Promise.all([
    writeFigures(redis, { prefix, slot: set.slot, figures }),
    ...boards.map(({ key, members }) => writeBoard(redis, key, members)),
  ]);
  if (written.includes(false)) throw new BoardsLost('Redis was emptied');
  await redis.hset(builtKey(prefix), set.slot, set.stamp);
};

export const createBoardRebuild = (deps: Deps, every_ms = 1_000): Loop => {
  const { sql, redis, log } = deps;
  let rests_until_ms = 0;
  const turn = async (started_ms: number): Promise<void> => {
    for (const set of await sql.begin(patient, (tx) => findDue(deps, tx))) {
      if (performance.now() - started_ms > longest_turn_ms) return;
      await sql.begin(patient, (tx) => makeSet(deps, tx, set));
    }
  };
  return makeLoop({
    name: 'boards',
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
        if (!(error instanceof BoardsLost) && isWhole(redis)) throw error;
        log.info('boards: Redis was lost or emptied, trying again');
      }
      return 'rest';
    },
  });
};

const look_again_ms = 100;

/** Makes every board again. Timers may make some of them. Returns the number of slices. */
export const rebuildBoards = async (deps: Deps): Promise<number> => {
  const { sql, redis, config, clock } = deps;
  await redis.del(builtKey(config.REDIS_PREFIX));
  for (;;) {
    for (const set of await sql.begin(patient, (tx) => findDue(deps, tx))) {
      await sql.begin(patient, (tx) => makeSet(deps, tx, set));
    }
    const day = dayOf(clock());
    const { built, stamp } = await readBuilt(redis, config.REDIS_PREFIX, day);
    const sets = await listBoardSets(sql, day);
    if (sets.every(({ slot }) => built[slot] === stamp)) return sets.length;
    await pause(look_again_ms);
  }
};

const shown = 5;

/** Describes the first difference between a board in Redis and the board from Postgres. */
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

/**
 * Compares the boards in Redis with Postgres, for `prediction-forum verify`. Returns at most
 * `shown` sentences about differences, or none if all boards are right. A change made in the last
 * seconds can show as a difference until it has reached Redis.
 */
export const findBoardDifferences = async (
  parts: Pick<Deps, 'sql' | 'redis'> & { readonly prefix: string; readonly now: Date },
): Promise<readonly string[]> => {
  const { sql, redis, prefix, now } = parts;
  const found: string[] = [];
  for (const set of await listBoardSets(sql, dayOf(now))) {
    const { boards, figures } = await makeBoards(sql, prefix, set);
    for (const { key, members } of boards) {
      const name = key.slice(key.indexOf('}:') + 2).replace(':', ' of ');
      found.push(...compare(name, await redis.zrange(key, '0', '-1'), members));
    }
    const { slot } = set;
    const [first] = await findWrongFigures(redis, { prefix, slot, figures });
    if (first !== undefined) found.push(`the values of ${slot} are wrong for ${first}`);
    if (found.length >= shown) return found.slice(0, shown);
  }
  const wrong = await store.countWrongStandings(sql);
  if (wrong > 0) found.push(`${wrong} agents have standings that differ from their scores`);
  return found;
};
