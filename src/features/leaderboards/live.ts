import type { RedisClient } from '../../redis/client.js';
import type { BoardClass, BoardName, Slice } from './rules.js';
import type { Figures } from './scores-store.js';
import type { BoardPage, BoardQuery, BoardRow } from './store.js';

/**
 * Boards in Redis. Each is a sorted set whose members are sorted as text. A member consists of the
 * sort key (16 hex digits that sort like the number), the agent's id (or an id made from the name),
 * and the row as JSON. The first member is the head, which describes the board. A board is never
 * changed: a new one is written under another name and renamed. All keys share one hash tag.
 *
 * Beside the boards of a slice there is a hash with the values that each forecaster has on them.
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
export const readLive = async (
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

/** The key of the hash that has the values of a slice, such as `figures:society:30d`. */
const figuresKey = (prefix: string, slot: string): string => tagged(prefix, `figures:${slot}`);

/** Values by id, and the start of their slice. Both are written as JSON. */
export interface SliceFigures {
  readonly since: string | null;
  readonly by_id: ReadonlyMap<string, Figures>;
}

/**
 * Collects the values of each forecaster from all boards of a slice. Returns null if a board has more
 * rows than Redis holds, because then values would be missing.
 */
export const gatherFigures = (
  boards: readonly (BoardPage & { readonly of: BoardClass; readonly kind: BoardName })[],
  since: string | null,
): SliceFigures | null => {
  if (boards.some(({ total, rows }) => rows.length < total)) return null;
  const by_id = new Map<string, Record<string, number>>();
  for (const { of, kind, rows } of boards) {
    // The boards of all agents have the linked and the imported ones.
    if (of === 'agent' || of === 'imported') continue;
    for (const { agent_id, detail } of rows) {
      const own = by_id.get(agent_id) ?? {};
      own[kind] = detail.value;
      by_id.set(agent_id, own);
    }
  }
  return { since, by_id };
};

const fieldsOf = ({ since, by_id }: SliceFigures): Readonly<Record<string, string>> => ({
  since: JSON.stringify(since),
  ...Object.fromEntries([...by_id].map(([id, figures]) => [id, JSON.stringify(figures)])),
});

/** Replaces the values of a slice. Returns false if Redis was emptied meanwhile. */
export const writeFigures = async (
  redis: RedisClient,
  { prefix, slot, figures }: { prefix: string; slot: string; figures: SliceFigures | null },
): Promise<boolean> => {
  const key = figuresKey(prefix, slot);
  const made = `${key}:new`;
  await redis.unlink(made);
  if (figures === null) {
    await redis.unlink(key);
    return true;
  }
  const fields = Object.entries(fieldsOf(figures));
  for (let from = 0; from < fields.length; from += members_a_write) {
    await redis.hset(made, ...fields.slice(from, from + members_a_write).flat());
  }
  if ((await redis.hlen(made)) !== fields.length) return false;
  await redis.rename(made, key);
  return true;
};

/** Returns the ids whose values in Redis are wrong or missing, for `prediction-forum verify`. */
export const findWrongFigures = async (
  redis: RedisClient,
  { prefix, slot, figures }: { prefix: string; slot: string; figures: SliceFigures | null },
): Promise<readonly string[]> => {
  const has = await redis.hgetall(figuresKey(prefix, slot));
  const wanted = figures === null ? {} : fieldsOf(figures);
  return Object.keys({ ...has, ...wanted }).filter((id) => has[id] !== wanted[id]);
};

/** Returns the values of these ids. Null if Redis lacks the slice or has it from another day. */
export const readLiveFigures = async (
  redis: RedisClient,
  { prefix, slice, ids }: { prefix: string; slice: Slice; ids: readonly string[] },
): Promise<ReadonlyMap<string, Figures> | null> => {
  const [since, ...found] = await redis.hmget(figuresKey(prefix, slice.slot), 'since', ...ids);
  if (since !== JSON.stringify(slice.since)) return null;
  return new Map(ids.map((id, n) => [id, JSON.parse(found[n] ?? '{}')]));
};
