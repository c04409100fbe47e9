import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import { makeLoader } from '../kit/cache.js';
import { common_faults, type Fault, refuse } from '../kit/fault.js';
import { describeError } from '../kit/log.js';
import { withDeadline } from '../kit/service.js';
import { loadScript } from '../redis/client.js';
import type { Context } from './route.js';

/**
 * Rate limits: exact sliding windows. All windows of a call are checked and taken together, and a
 * refused call consumes nothing. Calls of one turn of the event loop go to Redis as one script
 * call. When Redis does not answer within `patience_ms`, a local limiter at limit ÷ processes takes
 * over for a second at a time: never a hang, never without a limit.
 */

export interface Window {
  /** Shown in the headers: `key`, `ip`, `predictions`. */
  readonly name: string;
  /** The counted caller; without the Redis prefix. */
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
  /** When it was taken, by the clock that counted it; it is given back by this time. */
  readonly at_ms: number;
  /** Counted in the memory of this process, not in Redis. */
  readonly is_local: boolean;
}

/** Calls left of a window, and ms until the oldest call counted grows old; 0 where none is. */
export interface Left {
  readonly left: number;
  readonly reset_ms: number;
}

export type Limiter = ReturnType<typeof createLimiter>;

interface LimiterOptions {
  readonly redis: Redis;
  readonly prefix: string;
  readonly processes: number;
  readonly log: Logger;
  readonly patience_ms?: number;
}

const script = loadScript('windows-n.lua');
const most_calls_a_script = 128;

/** One call: to take it, to look, or to give back the call of that time first. */
interface Call {
  readonly windows: readonly Window[];
  readonly act: 'take' | 'look' | number;
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
const callRedis = async (
  { redis, prefix, patience_ms = 300 }: LimiterOptions,
  batch: readonly Call[],
): Promise<readonly Taken[]> => {
  const keys = batch.flatMap(({ windows }) =>
    windows.map(({ key }) => `${prefix}:{limits}:${key}`),
  );
  const args = batch.flatMap(({ windows, act }) => [
    windows.length,
    act,
    ...windows.flatMap(({ limit, window_ms }) => [limit, window_ms]),
  ]);
  const reply = script(redis, keys, [batch.length, ...args]) as Promise<string>;
  const numbers = (await withDeadline(reply, patience_ms, 'Redis')).split(',').map(Number);
  let from = 0;
  return batch.map(({ windows }) => {
    const taken = readAnswer(numbers, from, windows.length);
    from += 2 + 2 * windows.length;
    return taken;
  });
};

/** Callers remembered before those that were not seen for a window are looked for. */
const first_sweep = 100_000;

/**
 * The same rule in the memory of one process, which is one of `share` that count for themselves;
 * also what the tests compare Redis with.
 */
export const makeLocalWindows = (share: number) => {
  const lists = new Map<string, { readonly list: number[]; readonly end: number }>();
  let sweep_at = first_sweep;
  const sweep = (now: number): void => {
    for (const [key, { end }] of lists) if (end <= now) lists.delete(key);
    sweep_at = Math.max(first_sweep, 2 * lists.size);
  };
  const read = (windows: readonly Window[], now: number) =>
    windows.map(({ key, limit, window_ms }) => {
      const list = lists.get(key)?.list ?? [];
      while (list.length > 0 && (list[0] as number) <= now - window_ms) list.shift();
      return { key, list, window_ms, limit: Math.max(1, Math.floor(limit / share)) };
    });
  type Counted = ReturnType<typeof read>[number];
  const leftOf = ({ list, limit }: Counted): number => Math.max(0, limit - list.length);
  const resetOf = ({ list, window_ms }: Counted, now: number, empty: number): number =>
    list.length > 0 ? (list[0] as number) + window_ms - now : empty;

  return {
    look: (windows: readonly Window[], now: number = Date.now()): readonly Left[] =>
      read(windows, now).map((one) => ({ left: leftOf(one), reset_ms: resetOf(one, now, 0) })),
    take(windows: readonly Window[], now: number = Date.now()): Taken {
      if (lists.size >= sweep_at) sweep(now);
      const counted = read(windows, now);
      const waits = counted.map(({ list, limit, window_ms }) =>
        list.length < limit ? 0 : (list[list.length - limit] as number) + window_ms - now,
      );
      const retry_ms = Math.max(0, ...waits);
      for (const { key, list, window_ms } of retry_ms === 0 ? counted : []) {
        list.push(now);
        lists.set(key, { list, end: now + window_ms });
      }
      return {
        allowed: retry_ms === 0,
        refused: retry_ms === 0 ? -1 : waits.indexOf(retry_ms),
        retry_ms,
        left: counted.map(leftOf),
        reset_ms: counted.map((one) => resetOf(one, now, one.window_ms)),
        at_ms: now,
        is_local: true,
      };
    },
    giveBack(windows: readonly Window[], { at_ms }: Pick<Taken, 'at_ms'>): void {
      for (const { key } of windows) {
        const list = lists.get(key)?.list ?? [];
        const at = list.lastIndexOf(at_ms);
        if (at !== -1) list.splice(at, 1);
      }
    },
    size: () => lists.size,
  };
};

/** The reset of a window in which nothing counts is 0 to somebody who only looks. */
const toLeft = (windows: readonly Window[], { left, reset_ms }: Taken): readonly Left[] =>
  windows.map(({ limit }, n) => ({
    left: left[n] ?? 0,
    reset_ms: left[n] === limit ? 0 : (reset_ms[n] ?? 0),
  }));

export const createLimiter = (options: LimiterOptions) => {
  const { redis, processes, log } = options;
  const local = makeLocalWindows(processes);
  /** Until then Redis is taken to be away, and this process counts alone. */
  let away_until = 0;
  let stopped = false;
  const noteAway = (error: unknown): void => {
    if (Date.now() >= away_until && !stopped) {
      log.warn(describeError(error), 'limits: Redis does not answer, counting locally');
    }
    away_until = Date.now() + 1_000;
  };
  const isAway = (): boolean => {
    if (redis.status !== 'ready') noteAway(new Error('no connection'));
    return Date.now() < away_until;
  };
  /** One script call at a time; calls that come meanwhile go together with the next one. */
  const inRedis = makeLoader<Taken, Call>(
    async (calls) => {
      if (isAway()) throw new Error('Redis is away');
      try {
        return await callRedis(options, calls);
      } catch (error) {
        noteAway(error);
        throw error;
      }
    },
    { most: most_calls_a_script, at_once: 1 },
  );

  /** Null when Redis does not answer. */
  const tryRedis = async (windows: readonly Window[], act: Call['act']): Promise<Taken | null> =>
    isAway() ? null : inRedis({ windows, act }).catch(() => null);

  return {
    async take(windows: readonly Window[]): Promise<Taken> {
      return (await tryRedis(windows, 'take')) ?? local.take(windows);
    },
    /** Takes nothing. */
    async look(windows: readonly Window[]): Promise<readonly Left[]> {
      const taken = await tryRedis(windows, 'look');
      return taken === null ? local.look(windows) : toLeft(windows, taken);
    },
    /**
     * Takes back one call that was admitted, which then never counted; the calls left afterwards.
     * One that has grown old meanwhile takes nothing away. When Redis does not answer it counts.
     */
    async giveBack(windows: readonly Window[], taken: Taken): Promise<readonly Left[]> {
      if (taken.is_local) {
        local.giveBack(windows, taken);
        return local.look(windows);
      }
      const after = await tryRedis(windows, taken.at_ms);
      return toLeft(windows, after ?? taken);
    },
    stop(): void {
      stopped = true;
    },
  };
};

const policyOf = (windows: readonly Window[]): string =>
  windows
    .map(({ name, limit, window_ms }) => `"${name}";q=${limit};w=${Math.round(window_ms / 1000)}`)
    .join(', ');

/** By window: calls left, and the time until there are more. */
const stateOf = (
  windows: readonly Window[],
  left: readonly number[],
  reset_ms: readonly number[],
): string =>
  windows
    .map(({ name }, n) => `"${name}";r=${left[n]};t=${Math.ceil((reset_ms[n] ?? 0) / 1000)}`)
    .join(', ');

/** Replaces the calls left by those left after the call was given back. */
export const showGivenBack = (
  { headers }: Context,
  windows: readonly Window[],
  left: readonly Left[],
): void => {
  const shown = headers.find(([name]) => name === 'RateLimit') ?? ['', ''];
  const [calls, resets] = [left.map((one) => one.left), left.map(({ reset_ms }) => reset_ms)];
  shown[1] = stateOf(windows, calls, resets);
};

/** Adds the headers of the limits; the refusal when they are used up. */
export const applyLimits = (
  ctx: Context,
  windows: readonly Window[],
  taken: Taken,
): Fault | null => {
  ctx.headers.push(
    ['RateLimit-Policy', policyOf(windows)],
    ['RateLimit', stateOf(windows, taken.left, taken.reset_ms)],
  );
  if (taken.allowed) return null;
  const seconds = Math.max(1, Math.ceil(taken.retry_ms / 1000));
  const { limit, name } = windows[taken.refused] as Window;
  return refuse(common_faults.RATE_LIMITED, {
    message: `The limit of ${limit} calls per minute (${name}) is used up; try again in ${seconds} s.`,
    headers: { 'Retry-After': String(seconds) },
  });
};
