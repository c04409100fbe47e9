import { getEach, type RedisClient, setEach } from '../../redis/client.js';

/**
 * Marks how far Redis has applied the log. Questions share sixteen hash tags, by the last digit of
 * their id. A batch that touches many questions takes at most sixteen script calls, and a cluster
 * can still spread the tags over its nodes. Each tag has its own mark, written after its tallies.
 * If a replica with older tallies takes over, its mark is older too.
 */

const tags = [...'0123456789abcdef'].map((digit) => `q${digit}`);

export const tagOf = (question_id: string): string => `q${question_id.slice(-1)}`;

export const projectedKey = (prefix: string, tag: string): string => `${prefix}:{${tag}}:projected`;

const keysOf = (prefix: string): readonly string[] => tags.map((tag) => projectedKey(prefix, tag));

/** Returns the mark of the tag that is furthest behind; -1 if a mark is missing. */
export const readProjected = async (redis: RedisClient, prefix: string): Promise<number> =>
  Math.min(...(await getEach(redis, keysOf(prefix))).map((mark) => Number(mark ?? -1)));

export const writeProjected = (redis: RedisClient, prefix: string, offset: number): Promise<void> =>
  setEach(redis, keysOf(prefix), offset);
