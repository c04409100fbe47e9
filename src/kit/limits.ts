import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import { makeLocalWindows } from './local-windows.js';
import { describeError } from './log.js';
import { loadScript } from './redis/client.js';
import { withDeadline } from './service.js';

/**
 * Rate limits: exact sliding windows. All windows of a call are checked and taken together, and a
 * refused call consumes nothing. Calls of one turn of the event loop go to Redis as one script
 * call. When Redis does not answer within `patience_ms`, a local limiter at limit ÷ processes takes
 * over for a second at a time: never a hang, never an open door.
 */

export interface Window {
  /** Shown in the headers: `key`, `ip`, `predictions`. */
  readonly name: string;
  /** Who is counted; without the Redis prefix. */
  readonly key: string;
  readonly limit: number;
  readonly window_ms: number;
}

export interface Taken {
  readonly allowed: boolean;
  /** Which window refused; -1 when none did. */
  readonly refused: number;
  readonly retry_ms: number;
  /** By window, in the order given: calls left, and ms until the oldest one counted grows old. */
  readonly left: readonly number[];
  readonly reset_ms: readonly number[];
  /** When it was taken, by the clock of whoever counts: the mark by which it is given back. */
  readonly at_ms: number;
  /** Counted in the memory of this process, not in Redis. */
  readonly is_local: boolean;
}

/** What is left of a window, and ms until the oldest call counted grows old; 0 where none is. */
export interface Left {
  readonly left: number;
  readonly reset_ms: number;
}

export interface Limiter {
  take(windows: readonly Window[]): Promise<Taken>;
  /** Takes nothing. */
  look(windows: readonly Window[]): Promise<readonly Left[]>;
  /**
   * Takes back one call that was admitted, which then never counted; what is left afterwards. One
   * that has grown old meanwhile takes nothing away. When Redis does not answer it stays counted.
   */
  giveBack(windows: readonly Window[], taken: Taken): Promise<readonly Left[]>;
  stop(): void;
}

export interface LimiterOptions {
  readonly redis: Redis;
  readonly prefix: string;
  readonly processes: number;
  readonly log: Logger;
  readonly patience_ms?: number;
}

const script = loadScript('windows-n.lua');
const most_calls_a_script = 128;

/** What is asked of one call: to take it, to look, or to give back the call of that time first. */
interface Asked {
  readonly windows: readonly Window[];
  readonly act: 'take' | 'look' | number;
  readonly resolve: (taken: Taken) => void;
  readonly reject: (error: unknown) => void;
}

/** The answer to a call, whose numbers begin at `from`. */
const readAnswer = (numbers: readonly number[], from: number, windows: number): Taken => {
  const [refused = 0, retry_ms = 0] = numbers.slice(from, from + 2);
  const pairs = numbers.slice(from + 2, from + 2 + 2 * windows);
  return {
    allowed: refused === 0,
    refused: refused - 1,
    retry_ms,
    left: pairs.filter((_, n) => n % 2 === 0),
    reset_ms: pairs.filter((_, n) => n % 2 === 1),
    at_ms: numbers.at(-1) ?? 0,
    is_local: false,
  };
};

/** One script call for many calls; rejects when Redis takes longer than the patience. */
const askRedis = async (
  { redis, prefix, patience_ms = 300 }: LimiterOptions,
  batch: readonly Asked[],
): Promise<readonly Taken[]> => {
  const keys = batch.flatMap(({ windows }) =>
    windows.map(({ key }) => `${prefix}:{limits}:${key}`),
  );
  const args = batch.flatMap(({ windows, act }) => [
    windows.length,
    act,
    ...windows.flatMap(({ limit, window_ms }) => [limit, window_ms]),
  ]);
  const asked = script(redis, keys, [batch.length, ...args]) as Promise<string>;
  const numbers = (await withDeadline(asked, patience_ms, 'Redis')).split(',').map(Number);
  let from = 0;
  return batch.map(({ windows }) => {
    const taken = readAnswer(numbers, from, windows.length);
    from += 2 + 2 * windows.length;
    return taken;
  });
};

/** Counting in the memory of this process while Redis is away, for a second at a time. */
const makeFallback = ({ redis, processes, log }: LimiterOptions) => {
  const local = makeLocalWindows(processes);
  let until = 0;
  let stopped = false;
  const begin = (error: unknown): void => {
    if (Date.now() >= until && !stopped) {
      log.warn(describeError(error), 'limits: Redis does not answer, counting locally');
    }
    until = Date.now() + 1_000;
  };
  return {
    begin,
    look: local.look,
    giveBack: local.giveBack,
    isOn(): boolean {
      if (redis.status !== 'ready') begin(new Error('no connection'));
      return Date.now() < until;
    },
    take: local.take,
    stop(): void {
      stopped = true;
      local.clear();
    },
  };
};

/** The reset of a window in which nothing counts is 0 to somebody who only looks. */
const toLeft = (windows: readonly Window[], { left, reset_ms }: Taken): readonly Left[] =>
  windows.map(({ limit }, n) => ({
    left: left[n] ?? 0,
    reset_ms: left[n] === limit ? 0 : (reset_ms[n] ?? 0),
  }));

export const createLimiter = (options: LimiterOptions): Limiter => {
  const fallback = makeFallback(options);
  const waiting: Asked[] = [];
  let is_asking = false;

  const ask = async (batch: readonly Asked[]): Promise<void> => {
    try {
      const answers = await askRedis(options, batch);
      batch.forEach(({ resolve }, n) => {
        resolve(answers[n] as Taken);
      });
    } catch (error) {
      fallback.begin(error);
      for (const { reject } of batch) reject(error);
    }
  };

  /** One script call at a time; what comes meanwhile goes with the next. */
  const flush = async (): Promise<void> => {
    while (waiting.length > 0) {
      if (!fallback.isOn()) await ask(waiting.splice(0, most_calls_a_script));
      else for (const { reject } of waiting.splice(0)) reject(new Error('Redis is away'));
    }
    is_asking = false;
  };

  const inRedis = (windows: readonly Window[], act: Asked['act']): Promise<Taken> =>
    new Promise((resolve, reject) => {
      waiting.push({ windows, act, resolve, reject });
      if (is_asking) return;
      is_asking = true;
      setImmediate(() => void flush());
    });

  /** Null when Redis does not answer. */
  const tryRedis = async (windows: readonly Window[], act: Asked['act']): Promise<Taken | null> =>
    fallback.isOn() ? null : inRedis(windows, act).catch(() => null);

  return {
    async take(windows) {
      return (await tryRedis(windows, 'take')) ?? fallback.take(windows);
    },
    async look(windows) {
      const taken = await tryRedis(windows, 'look');
      return taken === null ? fallback.look(windows) : toLeft(windows, taken);
    },
    async giveBack(windows, taken) {
      if (taken.is_local) {
        fallback.giveBack(windows, taken);
        return fallback.look(windows);
      }
      const after = await tryRedis(windows, taken.at_ms);
      return toLeft(windows, after ?? taken);
    },
    stop: fallback.stop,
  };
};
