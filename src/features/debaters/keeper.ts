import type { Deps } from '../../kit/deps.js';
import { type Loop, makeLoop } from '../../kit/loop.js';
import type { Tx } from '../../kit/pg/client.js';
import { boardKeys, formerKeys, writeBoard } from './live.js';
import {
  clearMarks,
  holdBoard,
  listDebaters,
  readDebaters,
  setVersion,
  takeMarks,
} from './store.js';

/**
 * Keeps the board of debaters in Redis equal to the record. Any number of keepers may run; a turn
 * is one transaction that holds the row `debater_board`, and who finds it held rests.
 *
 * A turn: take marks away, read their agents anew, write them to Redis, move the version, commit.
 * Redis carries the version too and takes a write only at the one expected. So a commit that failed
 * after the write, a Redis that was emptied or came back older, and a write that was given up and
 * ran after all are found by their version, and the board is made anew.
 */

const agents_a_turn = 500;
const first_id = '00000000-0000-0000-0000-000000000000';

class BoardMoved extends Error {}

const rebuild = async ({ redis, config, log }: Deps, tx: Tx, version: number): Promise<void> => {
  const prefix = config.REDIS_PREFIX;
  const [state, order, rows] = boardKeys(prefix);
  await clearMarks(tx);
  const building = `building ${version}`;
  await redis.set(state, building);
  await redis.unlink(order, rows, ...formerKeys(prefix));
  let count = 0;
  let some = await listDebaters(tx, first_id, agents_a_turn);
  while (some.length > 0) {
    const agents = some.map((debater) => [debater.agent_id, debater] as const);
    const written = await writeBoard(redis, prefix, { from: building, to: building, agents });
    if (!written) throw new BoardMoved('a write was refused');
    count += some.length;
    some = await listDebaters(tx, some.at(-1)?.agent_id ?? '', agents_a_turn);
  }
  const done = { from: building, to: String(version), agents: [] };
  if (!(await writeBoard(redis, prefix, done))) throw new BoardMoved('what was built is gone');
  log.info({ agents: count }, 'debaters: the board is made anew from the record');
};

const turnBoard = async (deps: Deps, tx: Tx): Promise<'again' | 'rest'> => {
  const { redis, config } = deps;
  const prefix = config.REDIS_PREFIX;
  const version = await holdBoard(tx);
  if (version === undefined) return 'rest';
  const state = await redis.get(boardKeys(prefix)[0]);
  if (state !== String(version) || version === 0) {
    // Beyond both, so that a write that is late finds another state.
    const next = Math.max(version, Number(/\d+/.exec(state ?? '')?.[0] ?? 0)) + 1;
    await rebuild(deps, tx, next);
    await setVersion(tx, next);
    return 'again';
  }
  const marks = await takeMarks(tx, agents_a_turn);
  if (marks.length === 0) return 'rest';
  const marked = [...new Set(marks)];
  const found = new Map((await readDebaters(tx, marked)).map((row) => [row.agent_id, row]));
  const agents = marked.map((id) => [id, found.get(id)] as const);
  const write = { from: String(version), to: String(version + 1), agents };
  if (!(await writeBoard(redis, prefix, write))) throw new BoardMoved('a write was refused');
  await setVersion(tx, version + 1);
  return marks.length < agents_a_turn ? 'rest' : 'again';
};

export const createDebaterKeeper = (deps: Deps, every_ms = 500): Loop => {
  const { sql, redis, log } = deps;
  return makeLoop({
    name: 'debater keeper',
    log,
    every_ms,
    turn: async () => {
      if (redis.status !== 'ready') return 'rest';
      try {
        return await sql.begin((tx) => turnBoard(deps, tx));
      } catch (error) {
        if (!(error instanceof BoardMoved)) throw error;
        log.info(`debaters: ${error.message}, looking again`);
        return 'rest';
      }
    },
  });
};
