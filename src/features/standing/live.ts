import type { Redis } from 'ioredis';
import type { Deps } from '../../kit/deps.js';
import { describeError } from '../../kit/log.js';
import { loadScript } from '../../kit/redis/scripts.js';
import {
  type BoardKind,
  board_kinds,
  type Detail,
  dayOf,
  readDetail,
  type Slice,
  sliceOf,
  writeDetails,
} from './rules.js';
import { type BoardAsk, type NetRow, readBoard, readNets } from './store.js';

/**
 * The boards in Redis: sorted sets of agents by their key, and one hash of details with the places
 * of each agent, in one of two generations. `head` says which generation is read, of which UTC day
 * its periods are, how often it was written to and in which form. All of it shares one hash tag,
 * because an agent moves on all boards at once.
 */

export type Generation = 'a' | 'b';

const key = (prefix: string, rest: string): string => `${prefix}:{boards}:${rest}`;
export const headKey = (prefix: string): string => key(prefix, 'head');
/** Head of the boards that are being made. */
export const builtKey = (prefix: string): string => key(prefix, 'built');
export const detailsKey = (prefix: string, gen: Generation): string => key(prefix, `${gen}:rows`);
export interface Board {
  readonly kind: BoardKind;
  readonly slot: string;
}

export const nameOf = ({ kind, slot }: Board): string => `${kind}:${slot}`;

export const boardKey = (prefix: string, gen: Generation, board: Board): string =>
  key(prefix, `${gen}:${nameOf(board)}`);

export interface Head {
  readonly gen: Generation;
  readonly day: number;
  readonly fence: number;
  readonly form: string;
}

/** What boards rank and how details are written; those of an older program are made anew. */
export const boards_form = 'net';

/** Null when Redis has no boards. */
export const readHead = async (redis: Redis, prefix: string): Promise<Head | null> => {
  const { gen, day, fence, form = '' } = await redis.hgetall(headKey(prefix));
  if ((gen !== 'a' && gen !== 'b') || day === undefined || fence === undefined) return null;
  return { gen, day: Number(day), fence: Number(fence), form };
};

export interface LiveRow {
  readonly agent_id: string;
  readonly key: number;
  readonly rank: number;
  readonly detail: Detail;
}

export interface LivePage {
  readonly total: number;
  /** One more than the page when there is more. */
  readonly rows: readonly LiveRow[];
}

export interface Boards {
  /** A page of a board, from Redis, or from the record while there are no boards of this day. */
  page(ask: BoardAsk): Promise<LivePage>;
  /** 1 for those of the kind that won most; who won as much shares a rank. */
  rank(of: NetRow): Promise<number>;
}

const shared_ms = 1_000;

const pageScript = loadScript('board-page-5.lua');
const rankScript = loadScript('board-rank-3.lua');

const readLive = async (
  redis: Redis,
  prefix: string,
  { ask, day }: { readonly ask: BoardAsk; readonly day: number },
): Promise<LivePage | null> => {
  const board = { kind: ask.kind, slot: ask.slice.slot };
  const keys = [
    headKey(prefix),
    boardKey(prefix, 'a', board),
    boardKey(prefix, 'b', board),
    detailsKey(prefix, 'a'),
    detailsKey(prefix, 'b'),
  ];
  const args = [day, boards_form, ask.slice.slot, ask.limit + 1, ask.offset];
  const after = ask.after === null ? [] : [String(ask.after.key), ask.after.agent_id];
  const page = (await pageScript(redis, keys, [...args, ...after])) as (string | number)[] | null;
  if (page === null) return null;
  const rows: LiveRow[] = [];
  for (let at = 1; at < page.length; at += 4) {
    const [agent_id, key, rank, details] = page.slice(at, at + 4);
    const detail = readDetail(ask.kind, String(details));
    rows.push({ agent_id: String(agent_id), key: Number(key), rank: Number(rank), detail });
  }
  return { total: Number(page[0]), rows };
};

export const createBoards = (deps: Deps): Boards => {
  const { sql, redis, log, clock, config } = deps;
  const prefix = config.REDIS_PREFIX;

  const readRecord = async (ask: BoardAsk): Promise<LivePage> => {
    const { total, rows } = await readBoard(sql, ask);
    const told = rows.map((row) => {
      const detail = readDetail(ask.kind, writeDetails(row));
      return { agent_id: row.agent_id, key: row.key, rank: row.rank, detail };
    });
    return { total, rows: told };
  };

  /** What costs a pass over all scores: who asks for the same within a moment shares it. */
  const shared = new Map<string, Promise<unknown>>();
  const share = <T>(name: string, read: () => Promise<T>): Promise<T> => {
    const known = shared.get(name) as Promise<T> | undefined;
    if (known !== undefined) return known;
    const found = read();
    shared.set(name, found);
    const forget = (): boolean => shared.delete(name);
    found.then(() => setTimeout(forget, shared_ms).unref(), forget);
    return found;
  };

  /** Null where Redis is away as well. */
  const askRedis = async <T>(ask: () => Promise<T | null>): Promise<T | null> => {
    if (redis.status !== 'ready') return null;
    try {
      return await ask();
    } catch (error) {
      log.debug(describeError(error), 'boards: Redis did not answer, reading the record');
      return null;
    }
  };

  return {
    async page(ask) {
      const day = dayOf(clock());
      const live = await askRedis(() => readLive(redis, prefix, { ask, day }));
      if (live !== null) return live;
      return share(JSON.stringify(ask), () => readRecord(ask));
    },
    async rank({ net, kind }) {
      const { slot } = sliceOf({ agents: kind, category: null, period: 'all' }, 0);
      const board = { kind: 'points', slot } as const;
      const keys = [headKey(prefix), boardKey(prefix, 'a', board), boardKey(prefix, 'b', board)];
      const rank = await askRedis(() => rankScript(redis, keys, [0 - net, boards_form]));
      if (typeof rank === 'number') return rank;
      const nets = await share(`nets ${kind}`, () => readNets(sql, kind));
      return 1 + nets.filter((other) => other > net).length;
    },
  };
};

/** Every board of these slices, in the order in which scripts take them. */
export const allBoards = (slices: readonly Slice[]): readonly Board[] =>
  slices.flatMap(({ slot }) => board_kinds.map((kind) => ({ kind, slot })));
