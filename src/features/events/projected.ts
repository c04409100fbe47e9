import { getEach, type RedisClient, setEach } from '../../redis/client.js';

/**
 * Up to which offset Redis holds what follows from the log. Questions share sixteen hash tags, by
 * the last digit of their id: a batch of the log that touches many questions takes at most sixteen
 * script calls, and a cluster still spreads them. Each tag has a mark of its own, written after its
 * tallies, so a replica that takes over with older tallies has an older mark too.
 */

const tags = [...'0123456789abcdef'].map((digit) => `q${digit}`);

export const tagOf = (question_id: string): string => `q${question_id.slice(-1)}`;

export const projectedKey = (prefix: string, tag: string): string => `${prefix}:{${tag}}:projected`;

const keysOf = (prefix: string): readonly string[] => tags.map((tag) => projectedKey(prefix, tag));

/** Of the tag that is furthest behind; -1 where one has no mark. */
export const readProjected = async (redis: RedisClient, prefix: string): Promise<number> =>
  Math.min(...(await getEach(redis, keysOf(prefix))).map((mark) => Number(mark ?? -1)));

export const writeProjected = (redis: RedisClient, prefix: string, offset: number): Promise<void> =>
  setEach(redis, keysOf(prefix), offset);
