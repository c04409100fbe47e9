import type { Logger } from 'pino';
import { closeRedis, connectRedis, openRedis, type RedisClient } from './client.js';

export interface StreamEntry {
  readonly offset: number;
  /** Names and values alternate, in the order in which they were appended. */
  readonly fields: readonly string[];
}

export interface StreamOptions {
  readonly redis_url: string;
  readonly key: string;
  readonly name: string;
  readonly log: Logger;
  /** How long a read waits for the first entry; 1,000 ms by default. */
  readonly block_ms?: number;
  /** An answer may take this much longer than `block_ms`; 2,000 ms by default. */
  readonly grace_ms?: number;
  readonly count?: number;
}

interface GroupOptions extends StreamOptions {
  readonly group: string;
  readonly consumer: string;
  /** Returns the offset after which a new group starts. */
  readonly startAfter: () => Promise<number>;
}

type RawEntry = readonly [id: string, fields: readonly string[]];
type RawReply = readonly (readonly [key: string, entries: readonly RawEntry[]])[] | null;

/** Skips entries whose ids have another form, because this service did not write them. */
const readEntries = (entries: readonly RawEntry[] = []): readonly StreamEntry[] => {
  const found: StreamEntry[] = [];
  for (const [id, fields] of entries) {
    const offset = id.endsWith('-0') ? Number(id.slice(0, -2)) : Number.NaN;
    if (Number.isSafeInteger(offset)) found.push({ offset, fields });
  }
  return found;
};

/**
 * Reads a stream whose entry ids are `<offset>-0`. It has its own connection, because a read that
 * waits blocks the connection. Every read ends at most `grace_ms` after `block_ms`.
 */
export class StreamReader<O extends StreamOptions = StreamOptions> {
  readonly options: O & Required<StreamOptions>;
  readonly #redis: RedisClient;
  #connected: Promise<void> | undefined;

  constructor(options: O) {
    this.options = { block_ms: 1_000, grace_ms: 2_000, count: 512, ...options };
    const { redis_url: url, name, log, block_ms, grace_ms } = this.options;
    this.#redis = openRedis({ url, name, log, command_timeout_ms: block_ms + grace_ms });
  }

  /**
   * Returns the entries after `offset`, oldest first, at most `count`; empty if none came within
   * `block_ms`. Null if Redis is down, failed or did not answer: try again after a pause.
   */
  readAfter(offset: number): Promise<readonly StreamEntry[] | null> {
    const { key, block_ms, count } = this.options;
    const from = ['STREAMS', key, `${offset}-0`] as const;
    return this.read((redis) => redis.xread('COUNT', count, 'BLOCK', block_ms, ...from));
  }

  /** Closes the connection. A read in progress returns null. */
  stop(): void {
    this.#connected ??= Promise.resolve();
    closeRedis(this.#redis);
  }

  protected async read(
    command: (redis: RedisClient) => Promise<unknown>,
  ): Promise<readonly StreamEntry[] | null> {
    this.#connected ??= connectRedis(this.#redis);
    await this.#connected;
    if (this.#redis.status !== 'ready') return null;
    try {
      return readEntries(((await command(this.#redis)) as RawReply)?.[0]?.[1]);
    } catch {
      return null;
    }
  }
}

/** One of the readers in a group that shares a stream. Each entry goes to only one of them. */
export class GroupReader extends StreamReader<GroupOptions> {
  /** Like `readAfter`, for entries that no reader has received yet. */
  readNext(): Promise<readonly StreamEntry[] | null> {
    const { key, group, consumer, block_ms, count } = this.options;
    const block = ['COUNT', count, 'BLOCK', block_ms] as const;
    return this.read(async (redis) => {
      const reply = redis.xreadgroup('GROUP', group, consumer, ...block, 'STREAMS', key, '>');
      return reply.catch((error: Error) => {
        if (error.message.startsWith('NOGROUP')) return this.#makeGroup(redis);
        throw error;
      });
    });
  }

  /** Moves the group, so that only entries after `offset` are delivered from now on. */
  async moveTo(redis: RedisClient, offset: number): Promise<void> {
    const { key, group } = this.options;
    await redis.xgroup('SETID', key, group, `${offset}-0`).catch((error: Error) => {
      // If the group is missing, the next read creates it at the same offset.
      if (!/^NOGROUP|requires the key/i.test(error.message)) throw error;
    });
  }

  async acknowledge(redis: RedisClient, offsets: readonly number[]): Promise<void> {
    const { key, group } = this.options;
    if (offsets.length > 0) await redis.xack(key, group, ...offsets.map((offset) => `${offset}-0`));
  }

  /** Claims entries delivered over `idle_ms` ago but never acknowledged; returns offsets. */
  async claimStale(redis: RedisClient, idle_ms: number): Promise<readonly number[]> {
    const { key, group, consumer, count } = this.options;
    const reply = redis.xautoclaim(key, group, consumer, idle_ms, '0', 'COUNT', count);
    const [, entries] = (await reply.catch((error: Error) => {
      if (/^NOGROUP|no such key/i.test(error.message)) return [];
      throw error;
    })) as [string?, RawEntry[]?];
    return readEntries(entries).map(({ offset }) => offset);
  }

  /** Removes this reader from the group. */
  async leave(redis: RedisClient): Promise<void> {
    const { key, group, consumer } = this.options;
    if (redis.status !== 'ready') return;
    await redis.xgroup('DELCONSUMER', key, group, consumer).catch(() => undefined);
  }

  /** Creates the group. Fails while there is no stream. Another reader may create it first. */
  async #makeGroup(redis: RedisClient): Promise<null> {
    const { key, group, startAfter } = this.options;
    await redis.xgroup('CREATE', key, group, `${await startAfter()}-0`).catch((error: Error) => {
      if (!error.message.startsWith('BUSYGROUP')) throw error;
    });
    return null;
  }
}
