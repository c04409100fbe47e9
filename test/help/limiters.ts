import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';
import { pino } from 'pino';
import { createLimiter, type Limiter } from '../../src/http/limits.js';
import { closeRedis, connectRedis, openRedis } from '../../src/redis/client.js';
import type { Stores, Teardown } from './stores.js';

/**
 * Limiters of tests. The script asks Redis for the time and lets Redis end its keys; where a test
 * asks for it, both go by a clock that it moves as it likes, and everything else is the script as
 * it runs in service.
 */

const log = pino({ level: 'silent' });

const readLua = (name: string): string =>
  readFileSync(new URL(`../../src/redis/lua/${name}`, import.meta.url), 'utf8');
export const windows_lua = readLua('windows-n.lua');

/** Replaces text that must be there. */
export const replaceIn = (text: string, from: string | RegExp, to: string): string => {
  const replaced = text.replace(from, to);
  if (replaced === text) throw new Error(`the script no longer has ${from}`);
  return replaced;
};

/** The script with the time, and the end of its keys, in a hash: `now`, and an end by key. */
const withClock = (text: string, clock: string): string => {
  const local = `local now = tonumber(redis.call('HGET', '${clock}', 'now'))
    local function expireKey(name, ms) redis.call('HSET', '${clock}', name, now + ms) end`;
  const timed = replaceIn(text, /local time = .*\nlocal now = .*\n/, `${local}\n`);
  return timed.replace(/redis\.call\('PEXPIRE', /g, 'expireKey(').replace(/^#!lua\n/, '');
};

type Evaluate = (text: string, ...rest: readonly unknown[]) => Promise<unknown>;

/** From now on this connection runs `other` in the place of a script. */
export const replaceScript = (redis: Redis, script: string, other: string): void => {
  const sha = createHash('sha1').update(script).digest('hex');
  const evalsha = redis.evalsha.bind(redis) as Evaluate;
  const evaluate = redis.eval.bind(redis) as Evaluate;
  const replaced: Evaluate = (asked, ...rest) =>
    asked === sha ? evaluate(other, ...rest) : evalsha(asked, ...rest);
  redis.evalsha = replaced as Redis['evalsha'];
};

export interface Clocked {
  readonly limiter: Limiter;
  readonly redis: Redis;
  /** Moves the time; keys whose end has come are gone. */
  setTime(ms: number): Promise<void>;
}

let used = 0;
/** Who is counted: nobody that another test counts. */
export const fresh = (name: string): string => {
  used += 1;
  return `${name}:${used}`;
};

/** The script is loaded: the first call is admitted and the second refused. */
export const warmUp = async (limiter: Limiter): Promise<void> => {
  const window = { name: 'w', key: fresh('warm-up'), limit: 1, window_ms: 10 * 60_000 };
  await limiter.take([window]);
  await limiter.take([window]);
};

export const makeLimiters = ({ redis_url, redis_prefix }: Stores) => {
  const connect = async (t: Teardown): Promise<Redis> => {
    const redis = openRedis({ url: redis_url, name: 'limits', log, command_timeout_ms: 5_000 });
    await connectRedis(redis);
    t.teardown(() => closeRedis(redis));
    return redis;
  };

  const limiterOn = (redis: Redis): Limiter =>
    createLimiter({ redis, prefix: redis_prefix, processes: 1, log, patience_ms: 5_000 });

  const startClocked = async (t: Teardown, clock_name = fresh('c')): Promise<Clocked> => {
    const redis = await connect(t);
    const limiter = limiterOn(redis);
    await warmUp(limiter);
    const clock = `${redis_prefix}:{limits}:clock:${clock_name}`;
    if (!windows_lua.includes("redis.call('PEXPIRE', "))
      throw new Error('keys get no end any more');
    replaceScript(redis, windows_lua, withClock(windows_lua, clock));
    return {
      limiter,
      redis,
      async setTime(ms) {
        const { now: _, ...ends } = await redis.hgetall(clock);
        const gone = Object.keys(ends).filter((key) => Number(ends[key]) <= ms);
        if (gone.length > 0) await Promise.all([redis.del(...gone), redis.hdel(clock, ...gone)]);
        await redis.hset(clock, 'now', ms);
      },
    };
  };
  return { connect, limiterOn, startClocked };
};
