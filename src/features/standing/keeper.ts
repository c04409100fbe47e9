import { setTimeout as wait } from 'node:timers/promises';
import type { Deps } from '../../kit/deps.js';
import { type Loop, makeLoop } from '../../kit/loop.js';
import type { Tx } from '../../kit/pg/client.js';
import { loadScript } from '../../kit/redis/scripts.js';
import {
  allBoards,
  boardKey,
  boards_form,
  builtKey,
  detailsKey,
  type Generation,
  type Head,
  headKey,
  readHead,
} from './live.js';
import { type BoardChanges, type Move, noteMove, writePlaces } from './places.js';
import { dayOf, type Slice, slicesOf } from './rules.js';
import { readStandings } from './standings.js';
import { clearMarks, holdBoards, listAgents, readPillars, setFence, takeMarks } from './store.js';

/**
 * Keeps the boards in Redis equal to the record. Any number of keepers may run: a turn is one
 * transaction that holds the row `board_head`, and who finds it held rests.
 *
 * A turn: (1) take marks away, (2) compute their agents anew, (3) write them to Redis, (4) move the
 * fence in the record, commit. Redis carries the fence too, and its script writes only where it is
 * the one expected. So when anything is lost or late (a commit that failed after the write, a Redis
 * that was emptied or came back older, a write that was given up and ran after all), the fences
 * differ, and the boards are made anew, into the generation that nobody reads, and flipped. The
 * same happens when a UTC day begins, because the periods move with it.
 */

const agents_a_turn = 200;
/**
 * While marks are left it rests for so many times as long as its turn took, at most this long:
 * others need the stores and the cores too, and after a settlement of very many the boards may take
 * a minute.
 */
const rest_of_turn = 3;
const longest_rest_ms = 300;
/** So few that a write takes Redis a millisecond at most: every request waits for it meanwhile. */
const agents_a_write = 50;
const first_id = '00000000-0000-0000-0000-000000000000';

const writeScript = loadScript('board-write-n.lua');
const flipScript = loadScript('board-flip-2.lua');

/** The boards changed under the keeper's hands; the next turn finds out how. */
class BoardsMoved extends Error {}

interface Target {
  readonly guard: string;
  readonly gen: Generation;
  readonly day: number;
  readonly slices: readonly Slice[];
}

interface Held {
  readonly tx: Tx;
  /** Where Redis must stand. */
  readonly fence: number;
}

/** Writes where some agents stand, as far as that differs from what Redis has. */
const writeMoves = async (
  { redis, config }: Deps,
  moves: readonly Move[],
  { guard, gen, fence }: Pick<Target & Held, 'guard' | 'gen' | 'fence'>,
): Promise<void> => {
  const prefix = config.REDIS_PREFIX;
  const changes: BoardChanges = new Map();
  const put: string[] = [];
  const gone: string[] = [];
  for (const move of moves) {
    noteMove(changes, move);
    if (move.after === '') gone.push(move.agent_id);
    else put.push(move.agent_id, move.after);
  }
  const boards = [...changes.values()];
  const keys = [guard, detailsKey(prefix, gen), ...boards.map((one) => boardKey(prefix, gen, one))];
  const lists = [[put, gone], ...boards.map((one) => [one.put, one.gone])];
  // One text, because each argument of a command is work for both sides.
  const args = [gen, fence, fence + 1, JSON.stringify(lists)];
  const written = await writeScript(redis, keys, args);
  if (written !== 1) throw new BoardsMoved('a write was refused');
};

/** Writes where these agents stand, or that they are on no board; gives the new fence. */
const writeAgents = async (
  deps: Deps,
  agents: readonly string[],
  { guard, gen, day, slices, tx, fence }: Target & Held,
): Promise<number> => {
  const details = detailsKey(deps.config.REDIS_PREFIX, gen);
  const kept = await deps.redis.hmget(details, ...agents);
  const found = await readStandings(tx, { slices, day, agents });
  const moves = agents
    .map((agent_id, n) => {
      const after = writePlaces(slices, found.get(agent_id));
      return { agent_id, before: kept[n] ?? '', after };
    })
    .filter(({ before, after }) => before !== after);
  let at = fence;
  for (let from = 0; from < moves.length; from += agents_a_write) {
    const some = moves.slice(from, from + agents_a_write);
    await writeMoves(deps, some, { guard, gen, fence: at });
    at += 1;
  }
  return at;
};

const rebuild = async (deps: Deps, { tx, fence }: Held, head: Head | null): Promise<number> => {
  const { redis, log, clock } = deps;
  const prefix = deps.config.REDIS_PREFIX;
  const started = performance.now();
  await clearMarks(tx);
  const day = dayOf(clock());
  const slices = slicesOf(await readPillars(tx), day);
  const gen: Generation = head?.gen === 'a' ? 'b' : 'a';
  const guard = builtKey(prefix);
  const keysOf = (of: Generation): readonly string[] => [
    detailsKey(prefix, of),
    ...allBoards(slices).map((board) => boardKey(prefix, of, board)),
  ];
  await redis.unlink(guard, ...keysOf(gen));
  // Beyond both, so that a write that is late finds another fence.
  let at = Math.max(fence, head?.fence ?? 0) + 1;
  await redis.hset(guard, { gen, day, fence: at, form: boards_form });
  let count = 0;
  let agents = await listAgents(tx, first_id, agents_a_turn);
  while (agents.length > 0) {
    at = await writeAgents(deps, agents, { guard, gen, day, slices, tx, fence: at });
    count += agents.length;
    agents = await listAgents(tx, agents[agents.length - 1] ?? '', agents_a_turn);
  }
  const flipped = await flipScript(redis, [headKey(prefix), guard], [gen, at]);
  if (flipped !== 1) throw new BoardsMoved('what was built is gone');
  await redis.unlink(...keysOf(gen === 'a' ? 'b' : 'a'));
  const ms = Math.round(performance.now() - started);
  log.info({ agents: count, ms }, 'boards: made anew from the record');
  return at;
};

const isCurrent = (head: Head | null, want: Pick<Head, 'day' | 'fence'>): head is Head =>
  head !== null && head.day === want.day && head.fence === want.fence && head.form === boards_form;

interface Turn {
  readonly state: 'again' | 'rest';
  /** The agent behind which the next turn takes marks. */
  readonly after: string;
}

const turnBoards = async (deps: Deps, tx: Tx, after: string): Promise<Turn> => {
  const { redis, clock, config } = deps;
  const fence = await holdBoards(tx);
  if (fence === undefined) return { state: 'rest', after };
  const head = await readHead(redis, config.REDIS_PREFIX);
  const day = dayOf(clock());
  if (!isCurrent(head, { day, fence })) {
    await setFence(tx, await rebuild(deps, { tx, fence }, head));
    return { state: 'again', after: first_id };
  }
  const { agents, next } = await takeMarks(tx, after);
  if (agents.length > 0) {
    const slices = slicesOf(await readPillars(tx), day);
    const target = { guard: headKey(config.REDIS_PREFIX), gen: head.gen, day, slices };
    await setFence(tx, await writeAgents(deps, agents, { ...target, tx, fence }));
  }
  // What came meanwhile to agents before `after` has its turn at once.
  const is_through = next === null && after === first_id;
  return { state: is_through ? 'rest' : 'again', after: next ?? first_id };
};

export const createBoardKeeper = (deps: Deps, every_ms = 1_000): Loop => {
  const { sql, redis, log } = deps;
  let after = first_id;
  return makeLoop({
    name: 'board keeper',
    log,
    every_ms,
    turn: async () => {
      if (redis.status !== 'ready') return 'rest';
      try {
        const started = performance.now();
        const turn = await sql.begin((tx) => turnBoards(deps, tx, after));
        after = turn.after;
        const rest_ms = (performance.now() - started) * rest_of_turn;
        if (turn.state === 'again') await wait(Math.min(rest_ms, longest_rest_ms));
        return turn.state;
      } catch (error) {
        if (!(error instanceof BoardsMoved)) throw error;
        log.info(`boards: ${error.message}, looking again`);
        return 'rest';
      }
    },
  });
};
