import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from 'pino';
import { makeId } from '../kit/ids.js';
import { describeError } from '../kit/log.js';
import { makeLoop } from '../kit/loop.js';
import type { Service } from '../kit/service.js';
import { loadScript, nodeOf, type RedisClient } from '../redis/client.js';

/**
 * Counts the connections under a name, over all processes. Each process writes its own absolute
 * numbers to Redis, and reports twice a second that it is alive. Soon after a process is killed,
 * its connections no longer count. If Redis was emptied, each process writes all its numbers again.
 * While Redis is unavailable, each process enforces the limit on its own.
 */
export interface ConnectionCounter {
  /** Takes one of `most` connections; false if all are in use. Never rejects. */
  take(name: string, most: number): Promise<boolean>;
  leave(name: string): void;
  /** Calls `listener` with each name under which a process found all connections in use. */
  onFull(listener: (name: string) => void): void;
}

export interface CounterOptions {
  readonly redis: RedisClient;
  readonly prefix: string;
  readonly log: Logger;
  /** For tests: how long a process counts after its last report that it is alive. */
  readonly counts_ms?: number;
}

const takeConnection = loadScript('connection-3.lua');
const writePresence = loadScript('presence-1.lua');

const presence_every_ms = 500;
const retry_ms = 250;
/** If no process renews a count, it expires after the longest life of a socket. */
const expire_ms = 6 * 3_600_000;

/** Counts connections by name, for one process. */
export const makeCounts = () => {
  const counts = new Map<string, number>();
  return {
    names: () => [...counts.keys()],
    of: (name: string): number => counts.get(name) ?? 0,
    add(name: string, change: 1 | -1): void {
      const count = (counts.get(name) ?? 0) + change;
      if (count > 0) counts.set(name, count);
      else counts.delete(name);
    },
  };
};

export const makeConnectionCounter = (options: CounterOptions): ConnectionCounter & Service => {
  const { redis, prefix, log, counts_ms = 2_500 } = options;
  const own = makeCounts();
  const process_id = makeId();
  const processes_key = `${prefix}:{ws}:processes`;
  const full_key = `${prefix}:{ws}:full`;
  const listeners: ((name: string) => void)[] = [];
  const keyOf = (name: string): string => `${prefix}:{ws}:connections:${name}`;
  const isAway = (): boolean => redis.status !== 'ready';

  /**
   * A process that was killed a moment ago still counts, although its clients connect here. So a
   * connection is refused only after each process with connections has reported again that it is
   * alive.
   */
  const takeShared = async (name: string, most: number): Promise<boolean> => {
    let first_asked_ms = 0;
    for (let waited_ms = 0; !isAway(); waited_ms += retry_ms) {
      const args = [process_id, own.of(name) - 1, most, first_asked_ms, counts_ms, expire_ms, name];
      const keys = [processes_key, keyOf(name), full_key];
      const answer = Number(await takeConnection(redis, keys, args));
      if (answer <= 1 || waited_ms > counts_ms) return answer === 1;
      first_asked_ms = answer;
      await wait(retry_ms);
    }
    return true;
  };

  /** If a write is lost, the next one or `renew` corrects the number. */
  const leave = (name: string): void => {
    own.add(name, -1);
    if (isAway()) return;
    const count = own.of(name);
    const written =
      count > 0 ? redis.hset(keyOf(name), process_id, count) : redis.hdel(keyOf(name), process_id);
    written.catch(() => undefined);
  };

  const take = async (name: string, most: number): Promise<boolean> => {
    if (own.of(name) >= most) return false;
    own.add(name, 1);
    try {
      if (await takeShared(name, most)) return true;
    } catch (error) {
      log.warn(describeError(error), 'connections: Redis does not answer');
      return true;
    }
    leave(name);
    return false;
  };

  let heard_ms = 0;
  /** Reports the names under which a process found all connections in use since the last check. */
  const hearFull = async (): Promise<void> => {
    const found = await redis.zrangebyscore(full_key, `(${heard_ms}`, '+inf', 'WITHSCORES');
    for (let at = 0; at < found.length; at += 2) {
      heard_ms = Number(found[at + 1]);
      for (const listener of listeners) listener(found[at] ?? '');
    }
  };

  /** The cluster node that has the numbers. Another node may lack the latest ones. */
  let node = '';
  /** Writes that this process is alive, and all its counts if Redis does not know them. */
  const renew = async (): Promise<void> => {
    if (isAway()) return;
    await hearFull();
    const known = await writePresence(redis, [processes_key], [process_id, counts_ms]);
    const node_now = nodeOf(redis, processes_key);
    if (known === 1 && node_now === node) return;
    node = node_now;
    const pipeline = redis.pipeline();
    for (const name of own.names()) {
      pipeline.hset(keyOf(name), process_id, own.of(name)).pexpire(keyOf(name), expire_ms);
    }
    await pipeline.exec();
  };

  const turn = async (): Promise<'rest'> => {
    await renew().catch((error: unknown) => {
      log.warn(describeError(error), 'connections: Redis does not answer');
    });
    return 'rest';
  };
  const loop = makeLoop({ name: 'connections', log, every_ms: presence_every_ms, turn });
  return {
    name: loop.name,
    start: loop.start,
    take,
    leave,
    onFull: (listener) => void listeners.push(listener),
    async stop() {
      await loop.stop();
      if (!isAway()) await redis.zrem(processes_key, process_id).catch(() => undefined);
    },
  };
};
