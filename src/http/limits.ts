import type { Logger } from 'pino';
import { makeLoader } from '../kit/cache.js';
import { common_faults, type Fault, refuse } from '../kit/fault.js';
import { groupBy } from '../kit/group-by.js';
import { describeError } from '../kit/log.js';
import { withDeadline } from '../kit/service.js';
import { isCluster, loadScript, nodeOf, type RedisClient } from '../redis/client.js';
import { type Left, makeLocalWindows, type Taken, type Window } from './local-windows.js';
import type { Context } from './route.js';

/**
 * Rate limits: exact sliding windows. All windows of a call are checked and taken together, and a
 * refused call consumes nothing. Calls of one turn of the event loop go to Redis as one script
 * call. If Redis does not answer within `patience_ms`, this process counts on its own for a second
 * and divides the limit by the number of processes. A call never hangs or escapes the limits.
 *
 * A key contains its subject, an address or an account, as its hash tag. In a cluster, each subject
 * is counted on its own node, by its own script call. If one subject refuses, the call is given
 * back to the subjects that admitted it. If a node is down, this process counts its subjects.
 */

export type { Taken, Window };
export type Limiter = ReturnType<typeof createLimiter>;

interface LimiterOptions {
  readonly redis: RedisClient;
  readonly prefix: string;
  readonly processes: number;
  readonly log: Logger;
  readonly patience_ms?: number;
}

const script = loadScript('windows-n.lua');
const max_calls_per_script = 128;

/** `take` counts a call; `look` only reads; a time removes the call taken then, and reads. */
interface Call {
  readonly windows: readonly Window[];
  readonly act: 'take' | 'look' | number;
}

/** Reads the answer to a call from the numbers that start at `from`. */
const readAnswer = (numbers: readonly number[], from: number, { windows }: Call): Taken => {
  const refused = numbers[from] ?? 0;
  return {
    allowed: refused === 0,
    refused: refused - 1,
    retry_ms: numbers[from + 1] ?? 0,
    left: windows.map((_, n) => numbers[from + 2 + 2 * n] ?? 0),
    reset_ms: windows.map((_, n) => numbers[from + 3 + 2 * n] ?? 0),
    at_ms: numbers.at(-1) ?? 0,
    is_local: false,
  };
};

/** A key has the form `limit:subject`. */
const subjectOf = ({ key }: Window): string => key.slice(key.indexOf(':') + 1);

export const limitKey = (prefix: string, window: Window): string =>
  `${prefix}:{limits:${subjectOf(window)}}:${window.key.slice(0, window.key.indexOf(':'))}`;

/** Sends many calls to Redis with one call of the script. */
const callScript = async (
  { redis, prefix }: LimiterOptions,
  batch: readonly Call[],
): Promise<readonly Taken[]> => {
  const keys: string[] = [];
  const args: (string | number)[] = [batch.length];
  for (const { windows, act } of batch) {
    args.push(windows.length, act);
    for (const { limit, window_ms } of windows) args.push(limit, window_ms);
    for (const window of windows) keys.push(limitKey(prefix, window));
  }
  const reply = (await script(redis, keys, args)) as string;
  const numbers = reply.split(',').map(Number);
  let from = 0;
  return batch.map((call) => {
    const taken = readAnswer(numbers, from, call);
    from += 2 + 2 * call.windows.length;
    return taken;
  });
};

/** Rejects if Redis takes longer than `patience_ms`. */
const callRedis = async (
  options: LimiterOptions,
  calls: readonly Call[],
): Promise<readonly Taken[]> => {
  const { redis, patience_ms = 300 } = options;
  const late = <T>(work: Promise<T>): Promise<T> => withDeadline(work, patience_ms, 'Redis');
  if (!isCluster(redis)) return late(callScript(options, calls));
  const by_subject = groupBy(calls, ({ windows: [first] }) => first && subjectOf(first));
  const answers = new Map<Call, Taken>();
  const count = async (batch: readonly Call[]): Promise<void> => {
    const taken = await callScript(options, batch);
    for (const [n, call] of batch.entries()) answers.set(call, taken[n] as Taken);
  };
  await late(Promise.all([...by_subject.values()].map(count)));
  return calls.map((call) => answers.get(call) as Taken);
};

/** If a caller only looks, a window without calls has a reset of 0. */
const toLeft = (windows: readonly Window[], { left, reset_ms }: Taken): readonly Left[] =>
  windows.map(({ limit }, n) => ({
    left: left[n] ?? 0,
    reset_ms: left[n] === limit ? 0 : (reset_ms[n] ?? 0),
  }));

type Parts = readonly (readonly Window[])[];

/** Puts the answers of the subjects into the order of the windows. */
const inOrder = <T>(
  windows: readonly Window[],
  split: Parts,
  answers: readonly (readonly T[])[],
): readonly T[] => {
  const of = new Map(split.flatMap((some, p) => some.map((one, n) => [one, answers[p]?.[n]])));
  return windows.map((window) => of.get(window) as T);
};

const join = (windows: readonly Window[], split: Parts, parts: readonly Taken[]): Taken => {
  const retry_ms = Math.max(...parts.map((one) => one.retry_ms));
  const at = parts.findIndex((one) => !one.allowed && one.retry_ms === retry_ms);
  const refusing = split[at]?.[parts[at]?.refused ?? -1];
  return {
    allowed: refusing === undefined,
    refused: refusing === undefined ? -1 : windows.indexOf(refusing),
    retry_ms,
    left: inOrder(
      windows,
      split,
      parts.map((one) => one.left),
    ),
    reset_ms: inOrder(
      windows,
      split,
      parts.map((one) => one.reset_ms),
    ),
    at_ms: 0,
    is_local: false,
    parts,
  };
};

/** Counts windows on one Redis node. Resolves with null if the node does not answer. */
const makeNode = (options: LimiterOptions, isStopped: () => boolean) => {
  const { redis, log } = options;
  /** Before this time, Redis is considered unavailable and this process counts on its own. */
  let away_until = 0;
  const noteAway = (error: unknown): void => {
    if (Date.now() >= away_until && !isStopped()) {
      log.warn(describeError(error), 'limits: Redis does not answer, counting locally');
    }
    away_until = Date.now() + 1_000;
  };
  const isAway = (): boolean => {
    if (redis.status !== 'ready') noteAway(new Error('no connection'));
    return Date.now() < away_until;
  };
  /** Runs the script once at a time. Calls that arrive meanwhile share its next run. */
  const inRedis = makeLoader<Taken, Call>(
    async (calls) => {
      if (isAway()) throw new Error('Redis is unavailable');
      try {
        return await callRedis(options, calls);
      } catch (error) {
        noteAway(error);
        throw error;
      }
    },
    { most: max_calls_per_script, at_once: 1 },
  );

  return async (windows: readonly Window[], act: Call['act']): Promise<Taken | null> =>
    isAway() ? null : inRedis({ windows, act }).catch(() => null);
};

export const createLimiter = (options: LimiterOptions) => {
  const { redis, prefix, processes } = options;
  const local = makeLocalWindows(processes);
  let stopped = false;
  const nodes = new Map<string, ReturnType<typeof makeNode>>();
  const tryRedis = (windows: readonly Window[], act: Call['act']): Promise<Taken | null> => {
    const [first] = windows;
    const name = first === undefined ? '' : nodeOf(redis, limitKey(prefix, first));
    const node = nodes.get(name) ?? makeNode(options, () => stopped);
    nodes.set(name, node);
    return node(windows, act);
  };
  const split = (windows: readonly Window[]): Parts =>
    isCluster(redis) ? [...groupBy(windows, subjectOf).values()] : [windows];

  const takePart = async (windows: readonly Window[]): Promise<Taken> =>
    (await tryRedis(windows, 'take')) ?? local.take(windows);

  const lookPart = async (windows: readonly Window[]): Promise<readonly Left[]> => {
    const taken = await tryRedis(windows, 'look');
    return taken === null ? local.look(windows) : toLeft(windows, taken);
  };

  const giveBackPart = async (
    windows: readonly Window[],
    taken: Taken,
  ): Promise<readonly Left[]> => {
    if (taken.is_local) {
      local.giveBack(windows, taken);
      return local.look(windows);
    }
    const after = taken.allowed ? await tryRedis(windows, taken.at_ms) : null;
    return toLeft(windows, after ?? taken);
  };

  const giveBack = async (windows: readonly Window[], taken: Taken): Promise<readonly Left[]> => {
    const { parts = [taken] } = taken;
    const subjects = split(windows);
    const giving = subjects.map((some, n) => giveBackPart(some, parts[n] as Taken));
    return inOrder(windows, subjects, await Promise.all(giving));
  };

  return {
    async take(windows: readonly Window[]): Promise<Taken> {
      const subjects = split(windows);
      if (subjects.length < 2) return takePart(windows);
      const taken = join(windows, subjects, await Promise.all(subjects.map(takePart)));
      if (taken.allowed) return taken;
      // Some subjects may have admitted the call, but a refused call must consume nothing.
      const left = await giveBack(windows, taken);
      const reset_ms = left.map((one) => one.reset_ms);
      return { ...taken, left: left.map((one) => one.left), reset_ms };
    },
    /** Reads the windows without taking a call. */
    async look(windows: readonly Window[]): Promise<readonly Left[]> {
      const subjects = split(windows);
      return inOrder(windows, subjects, await Promise.all(subjects.map(lookPart)));
    },
    /**
     * Takes back an admitted call as if it had never counted, and returns the calls left. Does
     * nothing if the call already left its window. If Redis does not answer, the call still counts.
     */
    giveBack,
    stop(): void {
      stopped = true;
    },
  };
};

const policyOf = (windows: readonly Window[]): string =>
  windows
    .map(({ name, limit, window_ms }) => `"${name}";q=${limit};w=${Math.round(window_ms / 1000)}`)
    .join(', ');

/** Formats, per window, the calls left and the seconds until more are allowed. */
const stateOf = (
  windows: readonly Window[],
  left: readonly number[],
  reset_ms: readonly number[],
): string =>
  windows
    .map(({ name }, n) => `"${name}";r=${left[n]};t=${Math.ceil((reset_ms[n] ?? 0) / 1000)}`)
    .join(', ');

/** Updates the `RateLimit` header when a call no longer counts. */
export const showGivenBack = (
  { headers }: Context,
  windows: readonly Window[],
  left: readonly Left[],
): void => {
  const shown = headers.find(([name]) => name === 'RateLimit') ?? ['', ''];
  const [calls, resets] = [left.map((one) => one.left), left.map(({ reset_ms }) => reset_ms)];
  shown[1] = stateOf(windows, calls, resets);
};

const addToHeader = ({ headers }: Context, name: string, text: string): void => {
  const shown = headers.find(([known]) => known === name);
  if (shown === undefined) headers.push([name, text]);
  else shown[1] += `, ${text}`;
};

/** Adds the state of these windows to the headers. */
export const showLeft = (
  ctx: Context,
  windows: readonly Window[],
  { left, reset_ms }: Pick<Taken, 'left' | 'reset_ms'>,
): void => {
  addToHeader(ctx, 'RateLimit-Policy', policyOf(windows));
  addToHeader(ctx, 'RateLimit', stateOf(windows, left, reset_ms));
};

/** Adds the headers of the limits. Returns a refusal if a limit is used up, otherwise null. */
export const applyLimits = (
  ctx: Context,
  windows: readonly Window[],
  taken: Taken,
): Fault | null => {
  showLeft(ctx, windows, taken);
  if (taken.allowed) return null;
  const seconds = Math.max(1, Math.ceil(taken.retry_ms / 1000));
  const { limit, name, window_ms } = windows[taken.refused] as Window;
  const period = window_ms > 60_000 ? 'day' : 'minute';
  return refuse(common_faults.RATE_LIMITED, {
    message: `The limit of ${limit} calls per ${period} (${name}) is used up. Try again in ${seconds} s.`,
    headers: { 'Retry-After': String(seconds) },
  });
};
