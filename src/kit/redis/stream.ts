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

/** A reader among others that share a stream: each entry is handed to one of them. */
export interface GroupReader {
  /** As `readAfter`, with what was handed to nobody yet. */
  readNext(): Promise<readonly StreamEntry[] | null>;
  acknowledge(redis: Redis, offsets: readonly number[]): Promise<void>;
  /** Offsets that were handed to somebody so long ago and not acknowledged; now they are ours. */
  takeOver(redis: Redis, idle_ms: number): Promise<readonly number[]>;
  /** Removes readers that are long gone and have nothing left to acknowledge. */
  removeDead(redis: Redis): Promise<void>;
  /** Removes this reader. */
  leave(redis: Redis): Promise<void>;
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

export interface GroupOptions extends StreamOptions {
  readonly group: string;
  readonly consumer: string;
  /** Where a group that is not there begins: after this offset. */
  readonly startAfter: () => Promise<number>;
}

type RawReply = readonly (readonly [key: string, entries: readonly RawEntry[]])[] | null;
type RawEntry = readonly [id: string, fields: readonly string[]];

/** Entries with another kind of id are none of ours and are left out. */
const readEntries = (entries: readonly RawEntry[] = []): readonly StreamEntry[] => {
  const found: StreamEntry[] = [];
  for (const [id, fields] of entries) {
    const offset = id.endsWith('-0') ? Number(id.slice(0, -2)) : Number.NaN;
    if (Number.isSafeInteger(offset)) found.push({ offset, fields });
  }
  return found;
};

type Command = (redis: Redis) => Promise<unknown>;

const createBlockingReader = (options: StreamOptions) => {
  const { redis_url, key, name, log, block_ms = 1_000, grace_ms = 2_000 } = options;
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

  const send = async (command: Command): Promise<readonly StreamEntry[] | null> => {
    const ready = await connection();
    if (ready === null || stopped) return null;
    return readEntries(((await command(ready)) as RawReply)?.[0]?.[1]);
  };

  return {
    read(command: Command): Promise<readonly StreamEntry[] | null> {
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
        send(command).then(settle, () => settle(null));
      });
    },
    stop(): void {
      stopped = true;
      cut();
      drop();
    },
  };
};

export const createStreamReader = (options: StreamOptions): StreamReader => {
  const { key, block_ms = 1_000, count = 512 } = options;
  const { read, stop } = createBlockingReader(options);
  return {
    readAfter: (offset) =>
      read((redis) =>
        redis.xread('COUNT', count, 'BLOCK', block_ms, 'STREAMS', key, `${offset}-0`),
      ),
    stop,
  };
};

/** A reader without anything to acknowledge that was not heard of for so long is gone. */
const dead_ms = 3_600_000;

export const createGroupReader = (options: GroupOptions): GroupReader => {
  const { key, group, consumer, startAfter, block_ms = 1_000, count = 512 } = options;
  const { read, stop } = createBlockingReader(options);
  /** Refused while there is no stream; another reader may make it at the same time. */
  const makeGroup = async (redis: Redis): Promise<null> => {
    await redis.xgroup('CREATE', key, group, `${await startAfter()}-0`).catch((error: Error) => {
      if (!error.message.startsWith('BUSYGROUP')) throw error;
    });
    return null;
  };
  const orNone = <T>(work: Promise<T>): Promise<T | null> =>
    work.catch((error: Error) => {
      if (/^NOGROUP|no such key/i.test(error.message)) return null;
      throw error;
    });
  return {
    readNext: () =>
      read(async (redis) => {
        const from = ['STREAMS', key, '>'] as const;
        const block = ['COUNT', count, 'BLOCK', block_ms] as const;
        const asked = redis.xreadgroup('GROUP', group, consumer, ...block, ...from);
        return asked.catch((error: Error) => {
          if (error.message.startsWith('NOGROUP')) return makeGroup(redis);
          throw error;
        });
      }),
    async acknowledge(redis, offsets) {
      if (offsets.length === 0) return;
      await redis.xack(key, group, ...offsets.map((offset) => `${offset}-0`));
    },
    async takeOver(redis, idle_ms) {
      const asked = redis.xautoclaim(key, group, consumer, idle_ms, '0', 'COUNT', count);
      const [, entries] = ((await orNone(asked)) ?? []) as [string?, RawEntry[]?];
      return readEntries(entries).map(({ offset }) => offset);
    },
    async removeDead(redis) {
      const all = (await orNone(redis.xinfo('CONSUMERS', key, group))) as unknown[][] | null;
      for (const fields of all ?? []) {
        const at = (name: string): unknown => fields[fields.indexOf(name) + 1];
        if (at('pending') !== 0 || Number(at('idle')) < dead_ms) continue;
        await redis.xgroup('DELCONSUMER', key, group, String(at('name')));
      }
    },
    async leave(redis) {
      if (redis.status !== 'ready') return;
      await redis.xgroup('DELCONSUMER', key, group, consumer).catch(() => undefined);
    },
    stop,
  };
};
