import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import { closeRedis, connectRedis, openRedis } from './client.js';

/**
 * Reads a stream whose entry ids are `<offset>-0`, on a connection of its own. A blocked read holds
 * its connection, and a connection can die without a word, so every read has a watchdog: one that
 * is not back `grace_ms` after its block has ended is cut, and the connection is made anew.
 */

export interface StreamEntry {
  readonly offset: number;
  /** Names and values in turn, in the order in which they were appended. */
  readonly fields: readonly string[];
}

export interface StreamReader {
  /**
   * The entries after `offset`, oldest first, at most `count`; none when nothing came within the
   * block. Null: Redis is away, answered with an error or did not answer; ask again after a pause.
   */
  readAfter(offset: number): Promise<readonly StreamEntry[] | null>;
  /** Lets go of the connection; a read under way answers null. */
  stop(): void;
}

export interface StreamOptions {
  readonly redis_url: string;
  readonly key: string;
  readonly name: string;
  readonly log: Logger;
  /** How long a read waits for the first entry; 1,000 ms unless told. */
  readonly block_ms?: number;
  /** How long after the block an answer may take; 2,000 ms unless told. */
  readonly grace_ms?: number;
  readonly count?: number;
}

type RawReply = readonly (readonly [key: string, entries: readonly RawEntry[]])[] | null;
type RawEntry = readonly [id: string, fields: readonly string[]];

/** Entries with another kind of id are none of ours and are left out. */
const readReply = (reply: RawReply): readonly StreamEntry[] => {
  const found: StreamEntry[] = [];
  for (const [id, fields] of reply?.[0]?.[1] ?? []) {
    const offset = id.endsWith('-0') ? Number(id.slice(0, -2)) : Number.NaN;
    if (Number.isSafeInteger(offset)) found.push({ offset, fields });
  }
  return found;
};

export const createStreamReader = (options: StreamOptions): StreamReader => {
  const { redis_url, key, name, log } = options;
  const { block_ms = 1_000, grace_ms = 2_000, count = 512 } = options;
  let redis: Redis | undefined;
  let stopped = false;
  let cut: () => void = () => undefined;

  const connection = async (): Promise<Redis | null> => {
    if (redis === undefined) {
      redis = openRedis({ url: redis_url, name, log, command_timeout_ms: 0 });
      await connectRedis(redis);
    }
    return redis !== undefined && redis.status === 'ready' ? redis : null;
  };

  const drop = (): void => {
    if (redis !== undefined) closeRedis(redis);
    redis = undefined;
  };

  const read = async (offset: number): Promise<readonly StreamEntry[] | null> => {
    const ready = await connection();
    if (ready === null || stopped) return null;
    const after = `${offset}-0`;
    const reply = await ready.xread('COUNT', count, 'BLOCK', block_ms, 'STREAMS', key, after);
    return readReply(reply as RawReply);
  };

  const readAfter = (offset: number): Promise<readonly StreamEntry[] | null> => {
    if (stopped) return Promise.resolve(null);
    return new Promise((resolve) => {
      const settle = (entries: readonly StreamEntry[] | null): void => {
        clearTimeout(watchdog);
        resolve(entries);
      };
      const cutThis = (): void => {
        drop();
        settle(null);
      };
      cut = cutThis;
      const watchdog = setTimeout(() => {
        log.warn({ stream: key }, 'stream: a blocked read did not come back, connecting anew');
        cutThis();
      }, block_ms + grace_ms);
      read(offset).then(settle, () => settle(null));
    });
  };

  return {
    readAfter,
    stop() {
      stopped = true;
      cut();
      drop();
    },
  };
};
