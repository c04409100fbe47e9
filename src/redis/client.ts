import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import calculateSlot from 'cluster-key-slot';
import { Cluster, Redis, type RedisOptions } from 'ioredis';
import type { Logger } from 'pino';
import { groupBy } from '../kit/group-by.js';
import { withDeadline } from '../kit/service.js';
import { readRedisAddress } from './address.js';

/**
 * Connections to Redis: to one server, to a Redis Cluster, or to the master that Sentinels name.
 * Everything in Redis can be lost and rebuilt, so a command fails fast: no offline queue, no
 * resending of commands with an unknown outcome, and a time limit on each. A command that timed out
 * may still have run, so every write is an absolute value or is guarded by an offset.
 *
 * In a cluster, the hash tag of a key decides which node has it. If that node is down, a command
 * fails as if Redis were down, and other commands still work. A replica that takes over may lack
 * the last writes of its master. A hash tag then lacks only its latest writes.
 */

export type RedisClient = Redis | Cluster;

export const isCluster = (redis: RedisClient): redis is Cluster => redis instanceof Cluster;

interface RedisParams {
  /** Has the form of REDIS_URL; see address.ts. */
  readonly url: string;
  readonly name: string;
  readonly log: Logger;
  /** Zero (no limit) for a connection that subscribes. */
  readonly command_timeout_ms: number;
  /** True for a connection that subscribes: pings check that it is alive. */
  readonly subscribes?: boolean;
}

/** If Redis owes an answer and is silent for this long, the client reconnects. */
const silence_ms = 3_000;
const keep_alive_ms = 5_000;
const ping_ms = 2_000;

const retryStrategy = (times: number): number => Math.min(20 * 2 ** Math.min(times, 8), 500);

/** A master that became a replica refuses writes; the client then looks for the new master. */
const isDemoted = ({ message }: Error): boolean => message.startsWith('READONLY');

const optionsOf = ({ name, command_timeout_ms }: RedisParams) =>
  ({
    // Redis allows no spaces in a name.
    connectionName: `prediction-forum-${name.replaceAll(' ', '-')}`,
    lazyConnect: true,
    enableOfflineQueue: false,
    enableReadyCheck: true,
    // Commands of one turn share a socket write anyway. With auto-pipelining, a script that is
    // first used while a pipeline fills would end the process (upstream issue 1931).
    enableAutoPipelining: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: true,
    connectTimeout: 3_000,
    keepAlive: keep_alive_ms,
    // While Redis loads its files, ask again after this time. By default ioredis waits until Redis
    // expects to be done, which may be ten seconds later.
    maxLoadingRetryTime: 100,
    retryStrategy,
    ...(command_timeout_ms > 0 ? { commandTimeout: command_timeout_ms } : {}),
    socketTimeout: Math.max(silence_ms, command_timeout_ms + 1_000),
  }) satisfies RedisOptions;

const openNodes = (params: RedisParams): RedisClient => {
  const address = readRedisAddress(params.url);
  const options = optionsOf(params);
  if (address.kind === 'server') return new Redis(address.url, options);
  const { hosts, is_tls, username, password } = address;
  const shared = {
    ...options,
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    ...(is_tls ? { tls: {} } : {}),
  };
  if (address.kind === 'sentinel') {
    const { name, db, sentinel_password: sentinelPassword } = address;
    return new Redis({
      ...shared,
      sentinels: [...hosts],
      name,
      db,
      reconnectOnError: isDemoted,
      sentinelRetryStrategy: retryStrategy,
      enableTLSForSentinelMode: is_tls,
      ...(is_tls ? { sentinelTLS: {} } : {}),
      ...(sentinelPassword === undefined ? {} : { sentinelPassword }),
    });
  }
  return new Cluster([...hosts], {
    redisOptions: shared,
    clusterRetryStrategy: retryStrategy,
    lazyConnect: true,
    enableOfflineQueue: false,
    // Commands do not wait for a node that is down. They do wait for a key that is being moved.
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    retryDelayOnTryAgain: 50,
    slotsRefreshInterval: 5_000,
    // A channel belongs to one shard, like a key, and is looked up again if its node goes down.
    shardedSubscribers: params.subscribes ?? false,
    // Certificates contain names, not addresses, so names are not resolved here.
    ...(is_tls
      ? { dnsLookup: (host: string, done: (e: null, a: string) => void) => done(null, host) }
      : {}),
  });
};

export const openRedis = (params: RedisParams): RedisClient => {
  const { name, log, subscribes = false } = params;
  const redis = openNodes(params);
  // A cluster client notices on its own that a node is down.
  if (subscribes && !isCluster(redis)) {
    // A subscriber sends no commands, so without pings a dead connection would go unnoticed.
    const ping = (): void => {
      if (redis.status === 'ready') redis.ping().catch(() => undefined);
    };
    const timer = setInterval(ping, ping_ms).unref();
    redis.on('end', () => clearInterval(timer));
  }
  logLoss(redis, (node) =>
    node === '' ? log.child({ redis: name }) : log.child({ redis: name, node }),
  );
  if (isCluster(redis)) {
    redis.on('refresh', () => void (redis.status === 'ready' && pingMasters(redis)));
  }
  return redis;
};

/** Logs the first loss of a node, and its return. */
const logLoss = (redis: RedisClient, logOf: (node: string) => Logger): void => {
  const lost = new Set<string>();
  const lose = (node: string, { message: err }: Error): void => {
    if (!lost.has(node)) logOf(node).warn({ err }, 'redis: connection lost');
    lost.add(node);
  };
  const find = (node: string): void => {
    if (lost.delete(node)) logOf(node).info('redis: connected again');
  };
  redis.on('error', (error: Error) => lose('', error));
  redis.on('ready', () => find(''));
  if (!isCluster(redis)) return;
  redis.on('node error', (error: Error, node: string) => lose(node, error));
  redis.on('+node', (node: Redis) => node.on('ready', () => find(nameOf(node))));
};

const nameOf = ({ options: { host, port } }: Redis): string => `${host}:${port}`;

/** Connects to all masters in advance, because commands do not wait for a connection. */
const pingMasters = (cluster: Cluster): Promise<unknown> =>
  Promise.all(cluster.nodes('master').map((node) => node.ping().catch(() => undefined)));

const connect_ms = 3_000;

/** Connects now if possible. If Redis is down, the client keeps trying on its own. */
export const connectRedis = async (redis: RedisClient): Promise<void> => {
  const connecting = redis
    .connect()
    .then(() => (isCluster(redis) ? pingMasters(redis) : undefined));
  await withDeadline(connecting, connect_ms, 'Redis').catch(() => undefined);
};

/** Joins a channel once Redis is connected. In a cluster, only the channel's shard carries it. */
export const joinChannel = async (
  subscriber: RedisClient,
  channel: string,
  onMessage: (text: string) => void,
): Promise<void> => {
  const join = async (): Promise<void> => {
    try {
      await subscriber.ssubscribe(channel);
      // From here on the client joins again on its own.
      subscriber.off('ready', join);
    } catch {}
  };
  subscriber.on('smessage', (_channel: string, text: string) => onMessage(text));
  subscriber.on('ready', join);
  if (subscriber.status === 'ready') await join();
};

/** Closes the connection without waiting for Redis, which may be down. */
export const closeRedis = (redis: RedisClient): void => {
  redis.disconnect(false);
};

/** Returns the cluster node that has a key; empty if unknown or if Redis is a single server. */
export const nodeOf = (redis: RedisClient, key: string): string =>
  isCluster(redis) ? (redis.slots[calculateSlot(key)]?.[0] ?? '') : '';

/** Returns true if Redis is connected. In a cluster, every master with keys must be. */
export const isWhole = (redis: RedisClient): boolean => {
  if (redis.status !== 'ready' || !isCluster(redis)) return redis.status === 'ready';
  const masters = redis.nodes('master').filter(({ status }) => status === 'ready');
  const there = new Set(masters.map(nameOf));
  // The slots of a range share one array, so the set is small.
  return [...new Set(redis.slots)].every((nodes) => there.has(nodes?.[0] ?? ''));
};

/** Reads keys that may belong to different nodes. */
export const getEach = (
  redis: RedisClient,
  keys: readonly string[],
): Promise<readonly (string | null)[]> =>
  isCluster(redis) ? Promise.all(keys.map((key) => redis.get(key))) : redis.mget(...keys);

/** Sets keys that may belong to different nodes to one value. */
export const setEach = async (
  redis: RedisClient,
  keys: readonly string[],
  value: string | number,
): Promise<void> => {
  if (isCluster(redis)) await Promise.all(keys.map((key) => redis.set(key, value)));
  else await redis.mset(...keys.flatMap((key) => [key, value]));
};

/** Deletes a forum's keys. They belong to a history that its database no longer has. */
export const deleteKeys = async (redis: RedisClient, prefix: string, rest = '*'): Promise<void> => {
  if (!isWhole(redis)) throw new Error('a part of Redis does not answer');
  for (const node of isCluster(redis) ? redis.nodes('master') : [redis]) {
    for await (const keys of node.scanStream({ match: `${prefix}:${rest}`, count: 1_000 })) {
      const by_slot = groupBy(keys as string[], isCluster(redis) ? calculateSlot : () => 0);
      await Promise.all([...by_slot.values()].map((some) => redis.unlink(...some)));
    }
  }
};

/**
 * Lua scripts are in `lua/<name>-<keys>.lua`, one per file. The number in the name says how many
 * keys the script takes, `n` for any number. EVALSHA is sent first, then EVAL if Redis does not
 * know the script.
 */
type Script = (
  redis: RedisClient,
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
