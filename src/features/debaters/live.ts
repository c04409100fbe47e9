import type { Redis } from 'ioredis';
import type { Deps } from '../../kit/deps.js';
import { describeError } from '../../kit/log.js';
import { loadScript } from '../../kit/redis/scripts.js';
import { type BoardAsk, type BoardPage, type Debater, readBoard } from './store.js';

/**
 * The board of debaters in Redis: an order of members that sort by most upvotes first and then by
 * agent, and a row for each agent. `state` is the number of the last write that the record knows
 * of, or `building …` while the board is made anew, when it is read from the record instead.
 * Imported agents are not on it; their board is read from the record.
 */

const writeScript = loadScript('debaters-write-3.lua');
const pageScript = loadScript('debaters-page-3.lua');

const most_upvotes = 9_999_999_999;
const member = (upvotes: number, agent_id: string): string =>
  `${String(most_upvotes - upvotes).padStart(10, '0')}:${agent_id}`;

/** Number 2 has no imported agents. Another number, and a board of that form is made. */
const form = 2;

const key = (prefix: string, rest: string): string => `${prefix}:{debaters}:${rest}`;

export const boardKeys = (prefix: string) =>
  [
    key(prefix, `${form}:state`),
    key(prefix, `${form}:order`),
    key(prefix, `${form}:rows`),
  ] as const;

/** What older programs kept; it goes when the board is made anew. */
export const formerKeys = (prefix: string): readonly string[] =>
  ['state', 'order', 'rows'].map((rest) => key(prefix, rest));

export const writeRow = ({ upvotes, comments, replies }: Debater): string =>
  `${upvotes} ${comments} ${replies}`;

export interface Write {
  readonly from: string;
  readonly to: string;
  /** Agents with what they have; undefined: not on the board. */
  readonly agents: readonly (readonly [agent_id: string, Debater | undefined])[];
}

/** False when the board is not in the state that was expected. */
export const writeBoard = async (redis: Redis, prefix: string, write: Write): Promise<boolean> => {
  const rows = write.agents.flatMap(([id, debater]) =>
    debater === undefined ? [id, '', ''] : [id, member(debater.upvotes, id), writeRow(debater)],
  );
  return (await writeScript(redis, boardKeys(prefix), [write.from, write.to, ...rows])) === 1;
};

const readLive = async (
  redis: Redis,
  prefix: string,
  { after, offset, limit }: BoardAsk,
): Promise<BoardPage | null> => {
  const from = after === null ? '-' : `(${member(after.upvotes, after.agent_id)}`;
  const page = (await pageScript(redis, boardKeys(prefix), [from, offset, limit + 1])) as
    | (string | number)[]
    | null;
  if (page === null) return null;
  const rows = [];
  for (let at = 1; at < page.length; at += 3) {
    const [upvotes = 0, comments = 0, replies = 0] = String(page[at + 2])
      .split(' ')
      .map(Number);
    const [agent_id, rank] = [String(page[at]), Number(page[at + 1])];
    rows.push({ agent_id, rank, upvotes, comments, replies });
  }
  return { total: Number(page[0]), rows };
};

/** A page from Redis, or from the record where Redis has no whole board or is away. */
export const readPageOf = async (
  { sql, redis, log, config }: Deps,
  ask: BoardAsk,
): Promise<BoardPage> => {
  if (redis.status === 'ready' && ask.kind === 'agent') {
    try {
      const page = await readLive(redis, config.REDIS_PREFIX, ask);
      if (page !== null) return page;
    } catch (error) {
      log.debug(describeError(error), 'debaters: Redis did not answer, reading the record');
    }
  }
  return readBoard(sql, ask);
};
