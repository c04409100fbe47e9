import type { BenchContext, Sample, Subject } from '../frame/bench.js';
import type { LoadResult } from '../load/load.js';
import type { LoadJob } from '../load/load-process.js';
import type { PairOptions } from '../load/requests.js';
import type { Bed } from './bed.js';
import { startMeter } from './processes.js';
import type { StoredTarget, Target } from './service.js';

/** Questions, or whatever the requests of one round are about; another round has others. */
export const block = 64;
/** Enough for batches to gather; peers gain nothing from more than 64. */
export const best_connections = 128;
const most_per_second = 30_000;

/** Figures of a failing service mean nothing: throws when anything but the wanted answer came. */
export const requireClean = ({ problems }: LoadResult, { name, lastErrors }: Target): void => {
  if (problems.length === 0) return;
  throw new Error(`${name}: ${problems.join('\n')}\n${lastErrors?.() ?? ''}`);
};

export interface Round {
  readonly target: Target;
  readonly job: Omit<LoadJob, 'port'>;
  /** Called when the requests are made and nothing but sending them is left. */
  beforeGo?(): Promise<void>;
  /** Goes on during the load, from its beginning; its figures join those of the round. */
  during?(): Promise<Sample>;
}

/**
 * One round of load on one target, with the CPU of all that took part. Each begins right after a
 * checkpoint, so that all rounds write the same full pages.
 */
export const runRound = async (
  { admin, loader, groups }: Bed,
  { target, job, beforeGo, during }: Round,
): Promise<{ readonly result: LoadResult; readonly sample: Sample }> => {
  await loader.call('prepare', { ...job, port: target.port });
  await beforeGo?.();
  await admin`checkpoint`;
  const meter = startMeter({ ...target.groups, ...groups }, target.watched);
  const other = during?.();
  // Awaited below; a failure must not end the process before that.
  other?.catch(() => undefined);
  const result = await loader.call('go');
  const metered = meter.stop();
  requireClean(result, target);
  const { per_second, p50_ms, p99_ms, max_ms, sent, done } = result;
  const refused_percent = 100 - (100 * done) / sent;
  const refused = job.allowed_status === undefined ? {} : { refused_percent };
  const sample = { per_second, p50_ms, p99_ms, max_ms, ...refused, ...metered };
  return { result, sample: { ...sample, ...(await other) } };
};

export interface LoadOptions
  extends Pick<PairOptions, 'kind' | 'keys_file' | 'agents'>,
    Pick<LoadJob, 'own_connections' | 'wanted_status' | 'in_flight'> {
  /** The agents of the first round; 0 when absent. */
  readonly first_agent?: number;
  /** A round is so many requests of each agent at once, and the next one is of other agents. */
  readonly burst?: number;
  /** The id of subject `n`. */
  idOf(n: number): string;
  /** The first subject of the first round; 0 when absent. */
  readonly first_subject?: number;
  /** So many subjects, the same ones in each round; another block of them in each when absent. */
  readonly same_subjects?: number;
  /** The first text of the first round; 0 when absent. */
  readonly first_text?: number;
  /** The rows of these subjects: as many more as answers of the wanted status, or it fails. */
  countRows(subjects: readonly string[]): Promise<number>;
  /** Waits for work that goes on after the answers; its figures join those of the round. */
  settle?(): Promise<Sample>;
}

export interface RoundPlan
  extends Pick<LoadJob, 'seconds' | 'rate' | 'allowed_status'>,
    Pick<Round, 'during'> {
  /** Upper bound of the requests per second, for preparing them. */
  readonly at_most: number;
  /** Other than the usual number of requests in flight. */
  readonly in_flight?: number;
}

export type RunRound = (plan: RoundPlan) => Promise<Sample>;

/** Runs rounds on one target, each on subjects and with texts of its own. */
export const makeLoad = (bed: Bed, target: StoredTarget, options: LoadOptions): RunRound => {
  const { kind, keys_file, agents, own_connections, wanted_status, burst } = options;
  const width = options.same_subjects ?? block;
  let first_agent = options.first_agent ?? 0;
  let next_subject = options.first_subject ?? 0;
  let next_text = options.first_text ?? 0;
  return async ({ at_most, in_flight = options.in_flight, during, ...plan }) => {
    const wanted = Math.ceil((plan.rate ?? at_most) * plan.seconds * 1.05) + in_flight;
    const count = burst === undefined ? Math.min(wanted, agents * width) : agents * burst;
    const subjects = Array.from({ length: width }, (_, n) => options.idOf(next_subject + n));
    const pairs = { kind, keys_file, first_agent, agents, subjects, count, first_text: next_text };
    const rows_before = await options.countRows(subjects);
    const { result, sample } = await runRound(bed, {
      target,
      job: {
        ...{ requests: pairs, in_flight, wanted_status, whole: burst !== undefined, ...plan },
        ...(own_connections === undefined ? {} : { own_connections }),
      },
      ...(during === undefined ? {} : { during }),
    });
    if (options.same_subjects === undefined) next_subject += block;
    if (burst !== undefined) first_agent += agents;
    next_text += count;
    const rows = (await options.countRows(subjects)) - rows_before;
    if (rows !== result.done) {
      throw new Error(
        `${target.name}: ${result.done} answers were ${wanted_status}, ${rows} rows.`,
      );
    }
    const settled = await options.settle?.();
    // Else Postgres does it by itself, in the middle of a round of another subject.
    await target.sql`vacuum analyze`;
    return { ...sample, ...settled };
  };
};

/** As many requests as the target answers. */
export const makeClosedLoop = (
  name: string,
  { seconds, quick }: BenchContext,
  run: RunRound,
): Subject => {
  let seen = 0;
  return {
    name,
    async warmUp() {
      // The first pass fills caches and compiles code, the second shows how fast it is then.
      await run({ seconds: quick ? 1 : 4, at_most: most_per_second });
      const sample = await run({ seconds: quick ? 1 : 2, at_most: most_per_second });
      seen = sample['per_second'] ?? 0;
    },
    async round() {
      const sample = await run({ seconds, at_most: Math.max(2_000, seen * 1.8) });
      seen = Math.max(seen, sample['per_second'] ?? 0);
      return sample;
    },
  };
};
