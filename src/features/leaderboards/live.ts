import type { Deps } from '../../http/deps.js';
import { makeCache } from '../../kit/cache.js';
import { describeError } from '../../kit/log.js';
import { foldName } from '../../kit/names.js';
import type { RedisClient } from '../../redis/client.js';
import { readAdjusted } from './adjusted-store.js';
import type { BoardClass, BoardName, MeanKind, Slice } from './rules.js';
import { type Figures, type RunningMean, readFigures, readRunningMeans } from './scores-store.js';
import {
  type BoardPage,
  type BoardQuery,
  type BoardRow,
  readBoard,
  readNameKeys,
} from './store.js';

/**
 * Boards in Redis. Each is a sorted set whose members are sorted as text. A member consists of the
 * sort key (16 hex digits that sort like the number), the agent's id (or an id made from the name),
 * and the row as JSON. The first member is the head, which describes the board. A board is never
 * changed: a new one is written under another name and renamed. All keys share one hash tag.
 */

/** Maximum number of rows of a board in Redis. Further rows are read from Postgres. */
export const max_in_redis = 10_000;

const tagged = (prefix: string, rest: string): string => `${prefix}:{boards}:${rest}`;

export interface BoardId {
  readonly kind: BoardName;
  readonly slot: string;
  readonly of?: BoardClass | undefined;
}

/** For example `points:all:all`, `brier:society:30d:model` or `accuracy:all:7d:imported`. */
export const boardKey = (prefix: string, { kind, slot, of = 'agent' }: BoardId): string =>
  tagged(prefix, `${kind}:${slot}${of === 'agent' ? '' : `:${of}`}`);

/** The key of the hash that has the stamp of each slice, by slot. */
export const builtKey = (prefix: string): string => tagged(prefix, 'built');

interface Head {
  readonly total: number;
  readonly held: number;
  /** The board covers resolutions from this time on. If null, it covers all resolutions. */
  readonly since: string | null;
}

const writeHead = (head: Head): string => `!${JSON.stringify(head)}`;

/** Encodes a number as hex that sorts like it: flips the sign bit, or all bits if negative. */
const sortable = (key: number): string => {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleBE(key === 0 ? 0 : key);
  const is_negative = key < 0;
  for (let n = 0; n < 8; n += 1) bytes[n]! ^= is_negative ? 0xff : n === 0 ? 0x80 : 0;
  return bytes.toString('hex');
};

const id_ends = 16 + 36;

export const idOf = (member: string): string => member.slice(16, id_ends);

const writeRow = ({ agent_id, ...row }: BoardRow): string =>
  `${sortable(row.key)}${agent_id}${JSON.stringify(row)}`;

const readRow = (member: string): BoardRow => ({
  agent_id: idOf(member),
  ...JSON.parse(member.slice(id_ends)),
});

export const membersOf = ({ total, rows }: BoardPage, since: string | null): readonly string[] => [
  writeHead({ total, held: rows.length, since }),
  ...rows.map(writeRow),
];

const members_a_write = 1_000;

/** Returns false if Redis was emptied meanwhile, so that members are missing. */
export const writeBoard = async (
  redis: RedisClient,
  key: string,
  members: readonly string[],
): Promise<boolean> => {
  const made = `${key}:new`;
  await redis.unlink(made);
  for (let from = 0; from < members.length; from += members_a_write) {
    const some = members.slice(from, from + members_a_write);
    await redis.zadd(made, ...some.flatMap((member) => [0, member]));
  }
  if ((await redis.zcard(made)) !== members.length) return false;
  await redis.rename(made, key);
  return true;
};

const readHead = async (redis: RedisClient, key: string): Promise<Head | null> => {
  const [head] = await redis.zrange(key, '0', '0');
  return head?.startsWith('!') ? JSON.parse(head.slice(1)) : null;
};

/** Returns null if Redis lacks the board, has it from another day, or lacks rows of this page. */
const readLive = async (
  redis: RedisClient,
  prefix: string,
  query: BoardQuery,
): Promise<BoardPage | null> => {
  const { kind, of, slice, limit, offset, after } = query;
  const key = boardKey(prefix, { kind, of, slot: slice.slot });
  const from = after === null ? '[0' : `(${sortable(after.key)}${after.agent_id}~`;
  const [head, found] = await Promise.all([
    readHead(redis, key),
    redis.zrange(key, from, '+', 'BYLEX', 'LIMIT', offset, limit + 1),
  ]);
  if (head === null || head.since !== slice.since) return null;
  if (found.length <= limit && head.held < head.total) return null;
  return { total: head.total, rows: found.map(readRow) };
};

/** The ranked rows of a board with their folded names. */
interface NamedBoard extends Pick<BoardPage, 'coverage'> {
  readonly rows: readonly { readonly row: BoardRow; readonly name: string }[];
}

const shared_ms = 1_000;
const history_ms = 60_000;

/** Some rows of a board, of which more is read. */
interface Chosen {
  readonly of: BoardClass;
  readonly slice: Slice;
  readonly rows: readonly BoardRow[];
}

const isAfter = ({ key, agent_id }: BoardRow, after: BoardQuery['after']): boolean =>
  after === null || key > after.key || (key === after.key && agent_id > after.agent_id);

export const createBoards = ({ reads: sql, redis, log, config }: Deps) => {
  const prefix = config.REDIS_PREFIX;
  /** A read from Postgres scans all scores, so a page read within the last second is reused. */
  const pages = makeCache<BoardPage>({ most: 200, ttl_ms: shared_ms });
  const readRedis = async (query: BoardQuery): Promise<BoardPage | null> => {
    if (redis.status !== 'ready') return null;
    try {
      return await readLive(redis, prefix, query);
    } catch (error) {
      log.debug(describeError(error), 'boards: Redis did not answer, reading from Postgres');
      return null;
    }
  };
  /** Reads a page of a board from Redis, or from Postgres if Redis does not have it. */
  const page = async (query: BoardQuery): Promise<BoardPage> => {
    if (query.kind === 'adjusted') return readAdjusted(sql, query);
    const found = await readRedis(query);
    return found ?? pages.get(JSON.stringify(query), () => readBoard(sql, query));
  };

  const named_boards = makeCache<NamedBoard>({ most: 8, ttl_ms: shared_ms });
  const readNamed = async (query: BoardQuery): Promise<NamedBoard> => {
    const whole = { ...query, limit: max_in_redis - 1, offset: 0, after: null };
    const { rows, coverage } = await page(whole);
    const ranked = rows.filter(({ rank }) => rank !== null);
    const names = await readNameKeys(
      sql,
      ranked.map(({ agent_id }) => agent_id),
    );
    const nameOf = ({ agent_id, detail }: BoardRow): string =>
      names.get(agent_id) ?? foldName(detail.name ?? '');
    return { coverage, rows: ranked.map((row) => ({ row, name: nameOf(row) })) };
  };

  const figures = makeCache<ReadonlyMap<string, Figures>>({ most: 200, ttl_ms: shared_ms });
  const histories = makeCache<readonly RunningMean[]>({ most: 50, ttl_ms: history_ms });
  return {
    page,
    /**
     * Reads a page of the ranked rows whose name contains the text, among the first `max_in_redis`
     * rows. All searches of a board within a second share one read of its rows and names.
     */
    async search(query: BoardQuery, text: string): Promise<BoardPage> {
      const { kind, of, slice, limit, offset, after } = query;
      const key = JSON.stringify([kind, of, slice]);
      const { rows, coverage } = await named_boards.get(key, () => readNamed(query));
      const wanted = foldName(text);
      const found = rows.flatMap(({ row, name }) => (name.includes(wanted) ? [row] : []));
      const rest = found.filter((row) => isAfter(row, after));
      return { total: found.length, rows: rest.slice(offset, offset + limit + 1), coverage };
    },
    /** Reads the values of these rows on all boards, by id, at most once a second. */
    async figures(chosen: Chosen): Promise<ReadonlyMap<string, Figures>> {
      const { of, slice, rows } = chosen;
      const key = JSON.stringify([of, slice, rows.map(({ agent_id }) => agent_id)]);
      return figures.get(key, () => readFigures(sql, chosen));
    },
    /** Reads the means of these rows over time, at most once a minute until one of them changes. */
    async history(by: MeanKind, chosen: Chosen): Promise<readonly RunningMean[]> {
      return histories.get(JSON.stringify([by, chosen]), () => readRunningMeans(sql, by, chosen));
    },
  };
};
export type Boards = ReturnType<typeof createBoards>;
