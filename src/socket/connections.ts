import { setTimeout as wait } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import { makeId } from '../kit/ids.js';
import { describeError } from '../kit/log.js';
import { makeLoop } from '../kit/loop.js';
import type { Service } from '../kit/service.js';
import { loadScript } from '../redis/client.js';

/**
 * How many connections there are under a name, over all processes. Each process says in Redis how
 * many it has, as absolute numbers, and twice a second that it lives; one that was killed counts no
 * more a moment later. Nothing is believed for long: a Redis that was emptied is told everything
 * again, and while it is away each process holds the limit by itself.
 */
export interface ConnectionCounter {
  /** Takes one of `most`; false when none is left. Never rejects. */
  take(name: string, most: number): Promise<boolean>;
  leave(name: string): void;
}

export interface CounterOptions {
  readonly redis: Redis;
  readonly prefix: string;
  readonly log: Logger;
  /** How long a process counts after it was last heard of; for tests. */
  readonly counts_ms?: number;
}

const takeConnection = loadScript('connection-2.lua');
const sayPresent = loadScript('presence-1.lua');

const say_every_ms = 500;
const usual_counts_ms = 2_500;
const look_every_ms = 250;
/** Counts that nobody keeps up are forgotten after the longest life of a socket. */
const kept_ms = 6 * 3_600_000;
const chunk = 500;

/** Counts by name, of one process. */
export const makeCounts = () => {
  const counts = new Map<string, number>();
  return {
    counts,
    of: (name: string): number => counts.get(name) ?? 0,
    add(name: string, change: 1 | -1): void {
      const count = (counts.get(name) ?? 0) + change;
      if (count > 0) counts.set(name, count);
      else counts.delete(name);
    },
  };
};

export class SharedCounter implements ConnectionCounter, Service {
  readonly name = 'connections';
  readonly #options: Required<CounterOptions>;
  readonly #own = makeCounts();
  /** The name of this process. */
  readonly #me = makeId();
  readonly #processes_key: string;
  readonly #loop: Service;

  constructor(options: CounterOptions) {
    this.#options = { counts_ms: usual_counts_ms, ...options };
    this.#processes_key = `${options.prefix}:{ws}:processes`;
    const turn = () => this.#saySo();
    const { log } = options;
    this.#loop = makeLoop({ name: 'connections', log, every_ms: say_every_ms, turn });
  }

  start(): Promise<void> {
    return this.#loop.start();
  }

  async stop(): Promise<void> {
    const { redis } = this.#options;
    await this.#loop.stop();
    if (redis.status !== 'ready') return;
    await redis.zrem(this.#processes_key, this.#me).catch(() => undefined);
  }

  async take(name: string, most: number): Promise<boolean> {
    if (this.#own.of(name) >= most) return false;
    this.#own.add(name, 1);
    try {
      if (await this.#ask(name, most)) return true;
    } catch (error) {
      const message = 'connections: Redis did not answer, the limit holds here alone';
      this.#options.log.warn(describeError(error), message);
      return true;
    }
    this.leave(name);
    return false;
  }

  /** A write that is lost is made good by the next one, or when this process counts anew. */
  leave(name: string): void {
    const { redis } = this.#options;
    this.#own.add(name, -1);
    if (redis.status !== 'ready') return;
    const key = this.#keyOf(name);
    const count = this.#own.of(name);
    const said = count > 0 ? redis.hset(key, this.#me, count) : redis.hdel(key, this.#me);
    said.catch(() => undefined);
  }

  #keyOf(name: string): string {
    return `${this.#options.prefix}:{ws}:seats:${name}`;
  }

  /**
   * A process that was killed a moment ago still counts, and its sockets come here. So nobody is
   * refused before all processes that have connections have said again that they live.
   */
  async #ask(name: string, most: number): Promise<boolean> {
    const { redis, counts_ms } = this.#options;
    const keys = [this.#processes_key, this.#keyOf(name)];
    let asked = 0;
    for (let waited_ms = 0; ; waited_ms += look_every_ms) {
      if (redis.status !== 'ready') return true;
      const args = [this.#me, this.#own.of(name) - 1, most, asked, counts_ms, kept_ms];
      asked = Number(await takeConnection(redis, keys, args));
      if (asked <= 1 || waited_ms > counts_ms) return asked === 1;
      await wait(look_every_ms);
    }
  }

  async #saySo(): Promise<'rest'> {
    const { redis, log, counts_ms } = this.#options;
    if (redis.status !== 'ready') return 'rest';
    try {
      const is_known = await sayPresent(redis, [this.#processes_key], [this.#me, counts_ms]);
      if (is_known === 0) await this.#sayAll();
    } catch (error) {
      log.warn(describeError(error), 'connections: Redis does not answer');
    }
    return 'rest';
  }

  async #sayAll(): Promise<void> {
    const names = [...this.#own.counts.keys()];
    for (let from = 0; from < names.length; from += chunk) {
      const pipeline = this.#options.redis.pipeline();
      for (const name of names.slice(from, from + chunk)) {
        const key = this.#keyOf(name);
        const count = this.#own.of(name);
        if (count > 0) pipeline.hset(key, this.#me, count).pexpire(key, kept_ms);
      }
      await pipeline.exec();
    }
  }
}
