import { Redis } from 'ioredis';

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
