import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import { describeError } from './log.js';
import { loadScript, type Script } from './redis/scripts.js';

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

/** So many callers are remembered before those who were not seen for a window are looked for. */
const first_sweep = 100_000;

/**
 * The same rule in the memory of one process, which is one of `share` that count for themselves;
 * also what the tests compare Redis with.
 */
export const makeLocalWindows = (share: number) => {
  const lists = new Map<string, number[]>();
  const ends = new Map<string, number>();
  let sweep_at = first_sweep;
  const limitOf = (window: Window): number => Math.max(1, Math.floor(window.limit / share));
  const trim = (window: Window, now: number): number[] => {
    const list = lists.get(window.key) ?? [];
    let gone = 0;
    while (gone < list.length && (list[gone] as number) <= now - window.window_ms) gone += 1;
    list.splice(0, gone);
    return list;
  };
  const sweep = (now: number): void => {
    for (const [key, end] of ends) {
      if (end > now) continue;
      ends.delete(key);
      lists.delete(key);
    }
    sweep_at = Math.max(first_sweep, 2 * lists.size);
  };
  const look = (windows: readonly Window[], now: number = Date.now()): readonly Left[] =>
    windows.map((window) => {
      const list = trim(window, now);
      const left = Math.max(0, limitOf(window) - list.length);
      return { left, reset_ms: list.length > 0 ? (list[0] as number) + window.window_ms - now : 0 };
    });
  const take = (windows: readonly Window[], now: number = Date.now()): Taken => {
    if (lists.size >= sweep_at) sweep(now);
    let refused = -1;
    let retry_ms = 0;
    const rows = windows.map((window, index) => {
      const list = trim(window, now);
      const limit = limitOf(window);
      if (list.length >= limit) {
        const wait = (list[list.length - limit] as number) + window.window_ms - now;
        if (wait > retry_ms) {
          refused = index;
          retry_ms = wait;
        }
      }
      return { list, limit, window };
    });
    if (refused === -1) {
      for (const { list, window } of rows) {
        list.push(now);
        lists.set(window.key, list);
        ends.set(window.key, now + window.window_ms);
      }
    }
    return {
      allowed: refused === -1,
      refused,
      retry_ms,
      left: rows.map(({ list, limit }) => Math.max(0, limit - list.length)),
      reset_ms: rows.map(({ list, window }) =>
        list.length > 0 ? (list[0] as number) + window.window_ms - now : window.window_ms,
      ),
      at_ms: now,
      is_local: true,
    };
  };
  const giveBack = (windows: readonly Window[], { at_ms }: Pick<Taken, 'at_ms'>): void => {
    for (const { key } of windows) {
      const list = lists.get(key) ?? [];
      const at = list.lastIndexOf(at_ms);
      if (at !== -1) list.splice(at, 1);
    }
  };
  const clear = (): void => {
    lists.clear();
    ends.clear();
  };
  return { take, look, giveBack, clear, size: () => lists.size };
};

interface Waiting {
  readonly windows: readonly Window[];
  readonly resolve: (taken: Taken) => void;
}

/** A look at windows, after a call of that time was taken back where there is one. */
interface Looking {
  readonly windows: readonly Window[];
  readonly given_back_ms: number;
  readonly resolve: (left: readonly Left[]) => void;
  readonly reject: (error: unknown) => void;
}

export interface LimiterOptions {
  readonly redis: Redis;
  readonly prefix: string;
  readonly processes: number;
  readonly log: Logger;
  readonly patience_ms?: number;
}

const script = loadScript('windows-n.lua');
const left_script = loadScript('windows-left-n.lua');

const keyOf = (prefix: string, window: Window): string => `${prefix}:{limits}:${window.key}`;

/** What the script says of one call: its numbers begin at `from`. */
const readAnswer = (numbers: readonly string[], from: number, windows: number): Taken => {
  const at_ms = Number(numbers[numbers.length - 1]);
  const left: number[] = [];
  const reset_ms: number[] = [];
  for (let w = 0; w < windows; w += 1) {
    left.push(Number(numbers[from + 2 + 2 * w]));
    reset_ms.push(Number(numbers[from + 3 + 2 * w]));
  }
  const refused = Number(numbers[from]) - 1;
  const retry_ms = Number(numbers[from + 1]);
  const is_local = false;
  return { allowed: refused === -1, refused, retry_ms, left, reset_ms, at_ms, is_local };
};

/** The calls as the script takes them. */
const packCalls = (prefix: string, batch: readonly Waiting[]) => {
  const keys: string[] = [];
  const args: (string | number)[] = [batch.length];
  for (const { windows } of batch) {
    args.push(windows.length);
    for (const window of windows) {
      keys.push(keyOf(prefix, window));
      args.push(window.limit, window.window_ms);
    }
  }
  return { keys, args };
};

const most_calls_a_script = 128;
/** Script calls under way at once; meanwhile calls gather. */
const most_scripts = 2;

type Patient = Required<Pick<LimiterOptions, 'redis' | 'prefix' | 'patience_ms'>>;

/** The numbers of one script call; rejects when it fails or takes longer than the patience. */
const runScript = async (
  { redis, patience_ms }: Patient,
  asked: Script,
  { keys, args }: ReturnType<typeof packCalls>,
): Promise<readonly string[]> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('no answer in time')), patience_ms);
  });
  try {
    const text = (await Promise.race([asked(redis, keys, args), late])) as string;
    return text.split(',');
  } finally {
    clearTimeout(timer);
  }
};

const askRedis = async (patient: Patient, batch: readonly Waiting[]): Promise<readonly Taken[]> => {
  const answers = await runScript(patient, script, packCalls(patient.prefix, batch));
  let from = 0;
  return batch.map(({ windows }) => {
    const taken = readAnswer(answers, from, windows.length);
    from += 2 + 2 * windows.length;
    return taken;
  });
};

const lookInRedis = async (patient: Patient, batch: readonly Looking[]): Promise<void> => {
  const windows = batch.flatMap((one) => one.windows);
  const keys = windows.map((window) => keyOf(patient.prefix, window));
  const args = batch.flatMap((one) =>
    one.windows.flatMap(({ limit, window_ms }) => [limit, window_ms, one.given_back_ms]),
  );
  const numbers = await runScript(patient, left_script, { keys, args });
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
  const fallback = makeFallback(options);
  const waiting: Waiting[] = [];
  let under_way = 0;
  let scheduled = false;

  const ask = async (batch: readonly Waiting[]): Promise<void> => {
    try {
      const taken = await askRedis({ redis, prefix, patience_ms }, batch);
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

  let looking: Looking[] = [];
  const flushLooks = (): void => {
    const batch = looking;
    looking = [];
    lookInRedis({ redis, prefix, patience_ms }, batch).catch((error: unknown) => {
      fallback.begin(error);
      for (const { reject } of batch) reject(error);
    });
  };
  /** Looks of one turn of the event loop are one script call; null when Redis has no answer. */
  const lookSoon = (windows: readonly Window[], given_back_ms: number) =>
    new Promise<readonly Left[]>((resolve, reject) => {
      if (looking.length === 0) setImmediate(flushLooks);
      looking.push({ windows, given_back_ms, resolve, reject });
    }).catch(() => null);

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
