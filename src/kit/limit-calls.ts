import type { Redis } from 'ioredis';
import { type KnownLists, keyOf } from './limit-lists.js';
import type { Taken, Window } from './limits.js';
import { loadScript, type Script } from './redis/scripts.js';

/** How calls are put to Redis: many in one script call. */

export interface Waiting {
  readonly windows: readonly Window[];
  readonly resolve: (taken: Taken) => void;
}

export interface Patient {
  readonly redis: Redis;
  readonly prefix: string;
  readonly patience_ms: number;
}

const all_script = loadScript('windows-all-n.lua');
const script = loadScript('windows-n.lua');

interface Packed {
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
}

/** What one script call says; rejects when it fails or takes longer than the patience. */
export const runScript = async (
  { redis, patience_ms }: Patient,
  asked: Script,
  { keys, args }: Packed,
): Promise<string> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('no answer in time')), patience_ms);
  });
  try {
    return (await Promise.race([asked(redis, keys, args), late])) as string;
  } finally {
    clearTimeout(timer);
  }
};

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

/** Judges the calls one after the other, which tells who is refused and when to come again. */
const judge = async (
  patient: Patient,
  known: KnownLists,
  batch: readonly Waiting[],
): Promise<readonly Taken[]> => {
  const answers = (await runScript(patient, script, packCalls(patient.prefix, batch))).split(',');
  let from = 0;
  return batch.map(({ windows }) => {
    const taken = readAnswer(answers, from, windows.length);
    from += 2 + 2 * windows.length;
    known.forget(windows, taken);
    return taken;
  });
};

/** Admits all of them at once, or has them judged. */
export const askRedis = async (
  patient: Patient,
  known: KnownLists,
  calls: readonly Waiting[],
): Promise<readonly Taken[]> => {
  const batch = known.open(calls);
  try {
    if (!batch.is_doubtful) {
      const taken = batch.read(await runScript(patient, all_script, batch.packed));
      if (taken !== null) return taken;
    }
  } catch (error) {
    batch.forget();
    throw error;
  }
  batch.forget();
  return judge(patient, known, calls);
};
