import type { Redis } from 'ioredis';
import type { Deps } from '../../kit/deps.js';
import { makeId } from '../../kit/ids.js';
import { type Loop, makeLoop } from '../../kit/loop.js';
import { isOutage, type Sql } from '../../kit/pg/client.js';
import type { Service } from '../../kit/service.js';
import { dropLease, type Lease, takeLease } from '../events/index.js';
import { settlingChannel } from './decide.js';
import { beginSettling, NotOurs, settleChunk } from './settle-chunk.js';
import {
  type Job,
  read_at_once,
  readJob,
  readNext,
  type SettledPrediction,
} from './settle-store.js';

/**
 * Settles what was decided: for each prediction of the question, in the order of agent ids, what
 * an earlier revision paid is reversed, the net is paid, the score stored. A chunk is
 * one transaction with the cursor that says how far this is, so that whatever is killed at whatever
 * moment, a chunk has happened or it has not, and nobody is settled twice or left out.
 *
 *   decided ──sums made (resolve only)──▶ running ──chunk by chunk──▶ done
 *
 * One timer is at it, by a lease with a fence that every chunk checks; the others wait for it to
 * run out. Chunks are small and not faster than a set rate, because a chunk holds accounts that a
 * prediction of the same agents waits for, and because answers to clients come first. Measured by
 * `bench -- resolve`.
 */
export interface SettlingOptions {
  /** Connection that only subscribes; wake-ups arrive on it. Without one the job polls. */
  readonly subscriber?: Redis;
  readonly poll_ms?: number;
  readonly lease_seconds?: number;
  readonly pace?: Partial<Pace>;
}

interface Pace {
  /** Predictions settled per second, at most. */
  readonly per_second: number;
  /** Bounds of the predictions of one chunk. */
  readonly least: number;
  readonly most: number;
}

const usual_pace: Pace = { per_second: 3_600, least: 25, most: 40 };

/** A decision is worked on for so long before another one gets its turn. */
const turn_ms = 500;

/** For how long a decision that cannot be worked on is left alone. */
const set_aside_ms = 5_000;

/** More lateness than this is not made up for. */
const most_late_ms = 100;

const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    if (ms <= 0) resolve();
    else setTimeout(resolve, ms);
  });

/**
 * Small chunks hold accounts and the processor for short; larger ones cost less in all. So chunks
 * grow while they take most of the time that the pace gives them, and shrink while they leave most
 * of it.
 */
const nextSize = (size: number, elapsed_ms: number, pace: Pace): number => {
  const share = (elapsed_ms * pace.per_second) / (size * 1_000);
  const factor = share > 0.6 ? 1.5 : share < 0.3 ? 1 / 1.5 : 1;
  return Math.round(Math.min(Math.max(size * factor, pace.least), pace.most));
};

/**
 * Rests so that no more are settled than the pace allows. What came late, because a chunk or a
 * timer took longer, is made up for by shorter rests, up to a bound.
 */
const createPacer = ({ per_second }: Pace) => {
  let due_ms = 0;
  return (settled: number): Promise<void> => {
    const now = performance.now();
    due_ms = Math.max(due_ms, now - most_late_ms) + (settled * 1_000) / per_second;
    return pause(due_ms - now);
  };
};

const tellDone = ({ log, clock }: Deps, job: Job): void => {
  const { question_id, revision, kind, total, created_at } = job;
  const seconds = (clock().getTime() - created_at.getTime()) / 1_000;
  log.info({ question_id, revision, kind, total, seconds }, 'settling: done');
};

/** Predictions of a decision, read ahead of the chunks: none is placed or changed any more. */
const createReader = (sql: Sql, job: Job) => {
  let read: readonly SettledPrediction[] = [];
  let taken = 0;
  let after = job.cursor_agent;
  let is_end = false;
  const left = (): number => read.length - taken;
  return {
    left,
    async fill(wanted: number): Promise<void> {
      if (is_end || left() >= wanted) return;
      const more = await readNext(sql, job, after);
      after = more[more.length - 1]?.agent_id ?? after;
      is_end = more.length < read_at_once;
      read = [...read.slice(taken), ...more];
      taken = 0;
    },
    take(most: number): { readonly predictions: readonly SettledPrediction[]; is_last: boolean } {
      const predictions = read.slice(taken, taken + most);
      taken += predictions.length;
      return { predictions, is_last: is_end && left() === 0 };
    },
  };
};

/** Chunk after chunk, the next ones read while this one rests, until the turn is over. */
const createWork = (deps: Deps, pace: Pace): ((first: Job, lease: Lease) => Promise<void>) => {
  let size = pace.least;
  const restAfter = createPacer(pace);
  return async (first, lease) => {
    let job = first;
    if (job.kind === 'resolve' && job.total > 0 && job.forecasters === 0)
      return beginSettling(deps.sql, job);
    const over_ms = performance.now() + turn_ms;
    const reader = createReader(deps.sql, job);
    await reader.fill(pace.most);
    for (;;) {
      const { predictions, is_last } = reader.take(size);
      const started_ms = performance.now();
      await settleChunk(deps, { job, lease, predictions, is_last });
      if (is_last) return tellDone(deps, job);
      const { length } = predictions;
      size = nextSize(size, performance.now() - started_ms, pace);
      const rest = restAfter(length);
      if (started_ms > over_ms && reader.left() < size) return rest;
      job = { ...job, cursor_agent: predictions[length - 1]?.agent_id ?? null };
      await Promise.all([reader.fill(pace.most), rest]);
    }
  };
};

export const createSettling = (deps: Deps, options: SettlingOptions = {}): Service => {
  const { sql, log, config } = deps;
  const { subscriber, poll_ms = 500, lease_seconds = 3 } = options;
  const workOn = createWork(deps, { ...usual_pace, ...options.pace });
  const holder = makeId();
  const set_aside = new Map<string, number>();
  let lease: Lease | undefined;

  const turn = async (): Promise<'again' | 'rest'> => {
    const now = Date.now();
    for (const [id, until_ms] of set_aside) if (until_ms <= now) set_aside.delete(id);
    const job = await readJob(sql, [...set_aside.keys()]);
    if (job === undefined) return 'rest';
    // Renewed each turn, which is much shorter than the lease.
    lease = await takeLease(sql, 'settling', holder, lease_seconds);
    if (lease === undefined) return 'rest';
    try {
      await workOn(job, lease);
      return 'again';
    } catch (error) {
      if (error instanceof NotOurs) {
        lease = undefined;
        return 'rest';
      }
      // The others go on: what is wrong with this one may be wrong for long.
      if (!isOutage(error)) set_aside.set(job.question_id, Date.now() + set_aside_ms);
      throw error;
    }
  };

  const loop: Loop = makeLoop({ name: 'settling', log, every_ms: poll_ms, turn });
  const listen = (): void => {
    subscriber?.subscribe(settlingChannel(config.REDIS_PREFIX)).catch(() => undefined);
  };
  return {
    name: 'settling',
    async start() {
      subscriber?.on('message', () => loop.nudge());
      subscriber?.on('ready', listen);
      if (subscriber?.status === 'ready') listen();
      await loop.start();
    },
    async stop() {
      await loop.stop();
      if (lease !== undefined) await dropLease(sql, lease).catch(() => undefined);
    },
  };
};
