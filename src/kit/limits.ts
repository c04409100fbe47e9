import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import { askRedis, type Patient, runScript, type Waiting } from './limit-calls.js';
import { createKnownLists, keyOf } from './limit-lists.js';
import { makeLocalWindows } from './local-windows.js';
import { describeError } from './log.js';
import { loadScript } from './redis/scripts.js';

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

/** A look at windows, after a call of that time was taken back where there is one. */
interface Looking {
  readonly windows: readonly Window[];
  readonly given_back_ms: number;
  readonly resolve: (left: readonly Left[] | null) => void;
}

export interface LimiterOptions {
  readonly redis: Redis;
  readonly prefix: string;
  readonly processes: number;
  readonly log: Logger;
  readonly patience_ms?: number;
}

const left_script = loadScript('windows-left-n.lua');

const most_calls_a_script = 128;
/** Script calls under way at once; what comes meanwhile gathers, which costs Redis less. */
const most_scripts = 1;

const lookInRedis = async (patient: Patient, batch: readonly Looking[]): Promise<void> => {
  const windows = batch.flatMap((one) => one.windows);
  const keys = windows.map((window) => keyOf(patient.prefix, window));
  const args = batch.flatMap((one) =>
    one.windows.flatMap(({ limit, window_ms }) => [limit, window_ms, one.given_back_ms]),
  );
  const numbers = (await runScript(patient, left_script, { keys, args })).split(',');
  let at = 0;
  for (const one of batch) {
    const left = one.windows.map((_, n) => ({
      left: Number(numbers[at + 2 * n]),
      reset_ms: Number(numbers[at + 2 * n + 1]),
    }));
    at += 2 * one.windows.length;
    one.resolve(left);
  }
};

/**
 * Looks of one turn of the event loop, or that come while others are under way, are one script
 * call; null when Redis has no answer, which `onOutage` is told.
 */
const makeLooker = (patient: Patient, onOutage: (error: unknown) => void) => {
  const looking: Looking[] = [];
  let under_way = 0;
  let scheduled = false;
  const ask = async (batch: readonly Looking[]): Promise<void> => {
    try {
      await lookInRedis(patient, batch);
    } catch (error) {
      onOutage(error);
      for (const { resolve } of batch) resolve(null);
    }
  };
  const flush = (): void => {
    scheduled = false;
    while (looking.length > 0 && under_way < most_scripts) {
      under_way += 1;
      void ask(looking.splice(0, most_calls_a_script)).finally(() => {
        under_way -= 1;
        flush();
      });
    }
  };
  return (windows: readonly Window[], given_back_ms: number): Promise<readonly Left[] | null> =>
    new Promise((resolve) => {
      looking.push({ windows, given_back_ms, resolve });
      if (scheduled || under_way === most_scripts) return;
      scheduled = true;
      setImmediate(flush);
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
    answer(batch: readonly Waiting[]): void {
      for (const { windows, resolve } of batch) resolve(local.take(windows));
    },
    stop(): void {
      stopped = true;
      local.clear();
    },
  };
};

export const createLimiter = (options: LimiterOptions): Limiter => {
  const { redis, prefix, patience_ms = 300 } = options;
  const patient: Patient = { redis, prefix, patience_ms };
  const fallback = makeFallback(options);
  const known = createKnownLists(prefix);
  const waiting: Waiting[] = [];
  let under_way = 0;
  let scheduled = false;

  const ask = async (batch: readonly Waiting[]): Promise<void> => {
    try {
      const taken = await askRedis(patient, known, batch);
      batch.forEach(({ resolve }, index) => {
        resolve(taken[index] as Taken);
      });
    } catch (error) {
      fallback.begin(error);
      fallback.answer(batch);
    }
  };

  const flush = (): void => {
    scheduled = false;
    if (waiting.length > 0 && fallback.isOn()) fallback.answer(waiting.splice(0));
    while (waiting.length > 0 && under_way < most_scripts) {
      under_way += 1;
      void ask(waiting.splice(0, most_calls_a_script)).finally(() => {
        under_way -= 1;
        flush();
      });
    }
  };

  const lookSoon = makeLooker(patient, fallback.begin);

  return {
    async look(windows) {
      if (fallback.isOn()) return fallback.look(windows);
      return (await lookSoon(windows, 0)) ?? fallback.look(windows);
    },
    async giveBack(windows, taken) {
      const { left, reset_ms } = taken;
      if (taken.is_local) {
        fallback.giveBack(windows, taken);
        return fallback.look(windows);
      }
      const found = fallback.isOn() ? null : await lookSoon(windows, taken.at_ms);
      known.forget(windows);
      return found ?? left.map((n, at) => ({ left: n, reset_ms: reset_ms[at] ?? 0 }));
    },
    take(windows) {
      return new Promise((resolve) => {
        waiting.push({ windows, resolve });
        if (scheduled || under_way === most_scripts) return;
        scheduled = true;
        setImmediate(flush);
      });
    },
    stop: fallback.stop,
  };
};
