import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Redis, type RedisOptions } from 'ioredis';
import type { Logger } from 'pino';

/**
 * Redis connections. Anything in Redis can be lost and rebuilt, so a command fails fast: no offline
 * queue, no resending of commands whose fate is unknown, a time limit on every command. A command
 * that timed out may still have run: every write is an idempotent absolute or guarded by an offset.
 */

interface RedisParams {
  /** redis://, rediss:// or unix:/path/to/socket. */
  readonly url: string;
  readonly name: string;
  readonly log: Logger;
  /** Zero for one that subscribes. */
  readonly command_timeout_ms: number;
  /** For one that subscribes and asks nothing: it is asked whether it is there. */
  readonly subscribes?: boolean;
}

/** A Redis that owes an answer and says nothing for so long is connected to anew. */
const silence_ms = 3_000;
const keep_alive_ms = 5_000;
const ping_ms = 2_000;

export const openRedis = ({ url, name, log, ...params }: RedisParams): Redis => {
  const { command_timeout_ms, subscribes = false } = params;
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
    keepAlive: keep_alive_ms,
    // While Redis reads its files it is asked again this often, and not when it guesses to be done,
    // which may be ten seconds later.
    maxLoadingRetryTime: 100,
    retryStrategy: (times: number) => Math.min(20 * 2 ** Math.min(times, 8), 500),
    ...(command_timeout_ms > 0 ? { commandTimeout: command_timeout_ms } : {}),
    socketTimeout: Math.max(silence_ms, command_timeout_ms + 1_000),
  } satisfies RedisOptions;
  // ioredis reads a plain path as a unix socket.
  const redis = new Redis(url.replace(/^unix:/, ''), options);
  if (subscribes) {
    // Nothing is asked on it, so that one that fell silent would never be missed.
    const ping = (): void => {
      if (redis.status === 'ready') redis.ping().catch(() => undefined);
    };
    const timer = setInterval(ping, ping_ms).unref();
    redis.on('end', () => clearInterval(timer));
  }
  let is_lost = false;
  redis.on('error', (error: Error) => {
    if (!is_lost) log.warn({ err: error.message, redis: name }, 'redis: connection lost');
    is_lost = true;
  });
  redis.on('ready', () => {
    if (is_lost) log.info({ redis: name }, 'redis: connection back');
    is_lost = false;
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

/** Deletes every key of a forum: what is there tells of another history of its database. */
export const deleteKeys = async (redis: Redis, prefix: string, rest = '*'): Promise<void> => {
  for await (const keys of redis.scanStream({ match: `${prefix}:${rest}`, count: 1_000 })) {
    if (keys.length > 0) await redis.unlink(...(keys as string[]));
  }
};

/**
 * Lua scripts live in `lua/<name>-<keys>.lua`, one a file; the number in the name is how many keys
 * the script takes, `n` for any number. EVALSHA is sent, and EVAL when Redis does not know the
 * script.
 */
type Script = (
  redis: Redis,
  keys: readonly string[],
  args: readonly (string | number | Buffer)[],
) => Promise<unknown>;

export const loadScript = (file: string): Script => {
  const match = /^([a-z-]+)-(\d+|n)\.lua$/.exec(file);
  if (match === null) throw new Error(`${file}: a script is named <name>-<keys>.lua`);
  const keys = match[2] === 'n' ? null : Number(match[2]);
  const lua = readFileSync(new URL(`./lua/${file}`, import.meta.url), 'utf8');
  const sha = createHash('sha1').update(lua).digest('hex');
  return (redis, key_names, args) => {
    if (keys !== null && key_names.length !== keys) throw new Error(`${file} takes ${keys} keys`);
    return redis.evalsha(sha, key_names.length, ...key_names, ...args).catch((error: unknown) => {
      if (!String((error as Error).message).startsWith('NOSCRIPT')) throw error;
      return redis.eval(lua, key_names.length, ...key_names, ...args);
    });
  };
};

const oldest = 7;
const wait_ms = 5_000;

/**
 * Looks at a Redis that somebody else runs: what it is, in a few words. Throws, with a sentence for
 * a person, when it does not answer within seconds or is not one that the service can build on.
 */
export const lookAtRedis = async (url: string): Promise<string> => {
  const redis = new Redis(url.replace(/^unix:/, ''), {
    lazyConnect: true,
    maxRetriesPerRequest: 0,
    commandTimeout: wait_ms,
    connectTimeout: wait_ms,
    retryStrategy: () => null,
  });
  let reason = '';
  redis.on('error', (error: Error) => {
    reason = error.message;
  });
  try {
    await redis.connect().catch((error: Error) => {
      throw new Error(reason || error.message);
    });
    const version = /redis_version:(\S+)/.exec(await redis.info('server'))?.[1] ?? '0';
    if (Number.parseInt(version, 10) < oldest) {
      throw new Error(`${version} is too old; ${oldest} or newer is needed`);
    }
    const memory = await redis.info('memory');
    const policy = /maxmemory_policy:(\S+)/.exec(memory)?.[1] ?? 'unknown';
    if (policy !== 'noeviction') throw new Error(`maxmemory-policy is ${policy}, not noeviction`);
    const aof = /aof_enabled:1/.test(await redis.info('persistence'));
    return `${version} answers${aof ? '' : ', without AOF: live state is rebuilt after a restart'}`;
  } finally {
    redis.disconnect();
  }
};
