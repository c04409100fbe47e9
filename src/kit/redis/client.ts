import { Redis, type RedisOptions } from 'ioredis';
import type { Logger } from 'pino';

/**
 * Redis connections. Anything in Redis can be lost and rebuilt, so a command fails fast: no offline
 * queue, no resending of commands whose fate is unknown, a time limit on every command. A command
 * that timed out may still have run: every write is an idempotent absolute or guarded by an offset.
 */

export interface RedisParams {
  /** redis://, rediss:// or unix:/path/to/socket. */
  readonly url: string;
  readonly name: string;
  readonly log: Logger;
  /** Zero for a connection that makes blocking reads: its reader has a watchdog of its own. */
  readonly command_timeout_ms: number;
}

export const openRedis = ({ url, name, log, command_timeout_ms }: RedisParams): Redis => {
  const options = {
    // Redis takes no blanks in a name.
    connectionName: `prediction-forum-${name.replaceAll(' ', '-')}`,
    lazyConnect: true,
    enableOfflineQueue: false,
    enableReadyCheck: true,
    // Commands of one turn share a write of the socket as it is, and with it a script that is used
    // for the first time while a pipeline gathers ends the process (upstream issue 1931).
    enableAutoPipelining: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: true,
    connectTimeout: 3_000,
    // While Redis reads its files it is asked again this often, and not when it guesses to be done,
    // which may be ten seconds later.
    maxLoadingRetryTime: 100,
    retryStrategy: (times: number) => Math.min(20 * 2 ** Math.min(times, 8), 500),
    ...(command_timeout_ms > 0 ? { commandTimeout: command_timeout_ms } : {}),
  } satisfies RedisOptions;
  // ioredis reads a plain path as a unix socket.
  const redis = new Redis(url.replace(/^unix:/, ''), options);
  let told = false;
  redis.on('error', (error: Error) => {
    if (!told) log.warn({ err: error.message, redis: name }, 'redis: connection lost');
    told = true;
  });
  redis.on('ready', () => {
    if (told) log.info({ redis: name }, 'redis: connection back');
    told = false;
  });
  return redis;
};

/** Connects now if it can; when Redis is away the client goes on trying by itself. */
export const connectRedis = async (redis: Redis): Promise<void> => {
  await redis.connect().catch(() => undefined);
};

/** Lets go of the connection without waiting for a Redis that may be away. */
export const closeRedis = (redis: Redis): void => {
  redis.disconnect(false);
};
