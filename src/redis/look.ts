import type { Cluster, Redis } from 'ioredis';
import { pino } from 'pino';
import { withDeadline } from '../kit/service.js';
import { readRedisAddress } from './address.js';
import { closeRedis, isCluster, openRedis, type RedisClient } from './client.js';

/** Checks whether the service can use a Redis that somebody else runs. */

const oldest = 7;
const wait_ms = 5_000;

/** Throws if the node is too old or may evict keys. Else returns its version and `has_aof`. */
const lookAtNode = async (node: Redis) => {
  const info = await node.info();
  const read = (name: string): string => new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1] ?? '0';
  const version = read('redis_version');
  if (Number.parseInt(version, 10) < oldest) {
    throw new Error(`${version} is too old; use ${oldest} or newer`);
  }
  const policy = read('maxmemory_policy');
  if (policy !== 'noeviction')
    throw new Error(`maxmemory-policy is ${policy}; set it to noeviction`);
  return { version, has_aof: read('aof_enabled') === '1' };
};

const describeNode = ({ version, has_aof }: Awaited<ReturnType<typeof lookAtNode>>): string =>
  `${version} answers${has_aof ? '' : ', without AOF: live state is rebuilt after a restart'}`;

/** Asks every node about itself, and the cluster about nodes that are down. */
const lookAtCluster = async (cluster: Cluster): Promise<string> => {
  const lines = String(await cluster.cluster('NODES'))
    .trim()
    .split('\n');
  const all = lines.map((line) => {
    const [, address = '', flags = '', , , , , link] = line.split(' ');
    const is_away = /\b(?:fail\??|noaddr)(?:,|$)/.test(flags) || link === 'disconnected';
    return { name: address.replace(/@.*/, ''), is_master: flags.includes('master'), is_away };
  });
  const state = /cluster_state:(\w+)/.exec(String(await cluster.cluster('INFO')))?.[1];
  const away = all.filter(({ is_away }) => is_away).map(({ name }) => name);
  const missing = away.length === 0 ? '' : `; unavailable: ${away.join(', ')}`;
  if (state !== 'ok') throw new Error(`the cluster state is ${state}${missing}`);
  const looks = cluster.nodes().map(async (node) => {
    const name = `${node.options.host}:${node.options.port}`;
    if (away.includes(name)) return null;
    return lookAtNode(node).catch(({ message }: Error) => {
      throw new Error(`${name}: ${message}`);
    });
  });
  const [first] = (await Promise.all(looks)).filter((found) => found !== null);
  if (first === undefined) throw new Error('no node answers');
  const masters = all.filter(({ is_master, is_away }) => is_master && !is_away).length;
  const replicas = all.filter(({ is_master }) => !is_master).length;
  return `${describeNode(first)}; a cluster of ${masters} masters and ${replicas} replicas${missing}`;
};

/** Connects. Rejects with the last error, not just with “the connection is closed”. */
const connect = async (redis: RedisClient): Promise<void> => {
  let reason = '';
  const note = ({ message }: Error): void => {
    reason = message;
  };
  redis.on('error', note);
  if (isCluster(redis)) redis.on('node error', note);
  await withDeadline(redis.connect(), wait_ms, 'The connection').catch((error: Error) => {
    throw new Error(reason || error.message);
  });
};

/**
 * Describes the Redis in a few words. If it does not answer within seconds, or if the service
 * cannot use it, throws a sentence for a person.
 */
export const lookAtRedis = async (url: string): Promise<string> => {
  const log = pino({ level: 'silent' });
  const redis = openRedis({ url, name: 'look', log, command_timeout_ms: wait_ms });
  try {
    await connect(redis);
    if (isCluster(redis)) return await lookAtCluster(redis);
    const address = readRedisAddress(url);
    const by = address.kind === 'sentinel' ? `; its Sentinels call the master ${address.name}` : '';
    return `${describeNode(await lookAtNode(redis))}${by}`;
  } finally {
    closeRedis(redis);
  }
};
