import { setTimeout as delay } from 'node:timers/promises';
import type { Sql } from '../../src/db/client.js';
import type { BenchContext, Sample, Subject } from '../frame/bench.js';
import type { LoadJob } from '../load/load-process.js';
import type { PairOptions } from '../load/requests.js';
import { startMeter } from './processes.js';
import { questionId } from './seed.js';
import type { Setup, Target } from './setup.js';

/** Number of questions (or other subjects) that one round uses. Each round uses different ones. */
export const block = 64;
/** Enough to fill the batches of the service. Peers are no faster with more than 64. */
export const best_connections = 128;
const max_per_second = 30_000;

export interface Round {
  readonly target: Target;
  readonly job: Omit<LoadJob, 'port'>;
  /** Called when all requests are prepared, just before they are sent. */
  beforeGo?(): Promise<void>;
  /** Runs during the load, from its start. Its figures are added to the round's figures. */
  during?(): Promise<Sample>;
  /** Waits for the work that the target does after its answers, so that its CPU time counts too. */
  settle?(): Promise<void>;
}

/**
 * Runs one round of load on one target. Each round starts right after a checkpoint, so that
 * Postgres writes the same number of full pages in all rounds. Throws if any answer was unexpected,
 * because figures of a failing service mean nothing.
 */
export const runRound = async (
  { admin, loader, partsOf }: Setup,
  { target, job, beforeGo, during, settle }: Round,
): Promise<{ readonly done: number; readonly sample: Sample }> => {
  await loader.call('prepare', { ...job, port: target.port });
  await beforeGo?.();
  await admin`checkpoint`;
  const meter = startMeter(target.watched, () => partsOf(target));
  const other = during?.();
  // Awaited below. Until then, a rejection must not end the process.
  other?.catch(() => undefined);
  const { problems, sent, done, ...figures } = await loader.call('go');
  await settle?.();
  const metered = { ...meter.stop(), ...meter.cpu(done) };
  if (problems.length > 0) {
    throw new Error(`${target.name}: ${problems.join('\n')}\n${target.lastErrors()}`);
  }
  const refused_percent = 100 - (100 * done) / sent;
  const refused = job.allowed_status === undefined ? {} : { refused_percent };
  return { done, sample: { ...figures, ...refused, ...metered, ...(await other) } };
};

export interface LoadOptions
  extends Pick<PairOptions, 'kind' | 'keys_file' | 'agents' | 'idempotent'>,
    Pick<LoadJob, 'own_connections' | 'in_flight'> {
  /** If set, each agent sends this many requests at once. */
  readonly burst?: number;
  /** Returns the id of subject `n`. Default: the id of question `n`. */
  idOf?(n: number): string;
  /** Counts the rows of the subjects. Each wanted answer must add one row. */
  countRows?(sql: Sql, subjects: readonly string[]): Promise<number>;
}

export interface RoundPlan
  extends Pick<LoadJob, 'seconds' | 'rate' | 'allowed_status'>,
    Pick<Round, 'during'> {
  /**
   * Upper bound on requests per second, used to prepare enough requests. A load at a fixed rate
   * uses that rate instead.
   */
  readonly at_most?: number;
  /** Overrides the usual number of requests in flight. */
  readonly in_flight?: number;
  /** Default: the next block of subjects, which no other round uses. */
  readonly subjects?: readonly string[];
}

export type RunRound = (plan: RoundPlan) => Promise<Sample>;

/** All loads of a bench share these counters, so no subject or text is used twice. */
let next_subject = 0;
let next_text = 0;

/** These tables are empty once the service has finished the work that follows its answers. */
const after_work = ['outbox', 'debater_changes'];

/** Runs rounds on one target. After each round, each wanted answer must have a row. */
export const makeLoad = (setup: Setup, target: Target, options: LoadOptions): RunRound => {
  const { idOf = questionId, countRows = countPredictions, burst, ...fixed } = options;
  const { kind, keys_file, agents, idempotent, ...connections } = fixed;
  const { sql, name } = target;
  return async ({ at_most = 0, subjects: given, during, ...plan }) => {
    const subjects = given ?? Array.from({ length: block }, () => idOf(next_subject++));
    const in_flight = plan.in_flight ?? options.in_flight;
    const wanted = Math.ceil((plan.rate ?? at_most) * plan.seconds * 1.05) + in_flight;
    const count = burst === undefined ? Math.min(wanted, agents * subjects.length) : agents * burst;
    const first_text = next_text;
    next_text += count;
    const rows_before = await countRows(sql, subjects);
    const { done, sample } = await runRound(setup, {
      target,
      job: {
        requests: {
          ...{ kind, keys_file, agents, subjects, count, first_text },
          ...(idempotent === undefined ? {} : { idempotent }),
        },
        wanted_status: kind === 'predict' || kind === 'call' || kind === 'comment' ? 201 : 200,
        whole: burst !== undefined,
        ...connections,
        ...plan,
      },
      ...(during === undefined ? {} : { during }),
      ...(name.startsWith('service') ? { settle: () => waitUntilEmpty(sql, after_work) } : {}),
    });
    const rows = (await countRows(sql, subjects)) - rows_before;
    if (rows !== done) throw new Error(`${name}: ${done} successful answers, but ${rows} rows.`);
    // Otherwise autovacuum may run during another subject's round.
    await sql`vacuum analyze`;
    return sample;
  };
};

export const countPredictions = async (sql: Sql, ids: readonly string[]): Promise<number> => {
  const [row] = await sql<{ count: number }[]>`
    select count(*)::int as count
    from predictions
    where question_id = any(${ids as string[]})`;
  return row!.count;
};

export const waitUntilEmpty = async (sql: Sql, tables: readonly string[]): Promise<void> => {
  const give_up_ms = performance.now() + 120_000;
  for (const table of tables) {
    while ((await sql`select from ${sql(table)} limit 1`).length > 0) {
      if (performance.now() > give_up_ms) throw new Error(`${table} did not become empty.`);
      await delay(50);
    }
  }
};

/** Makes a subject that sends the next request as soon as an earlier one is answered. */
export const makeClosedLoop = (
  name: string,
  { seconds, quick }: BenchContext,
  run: RunRound,
): Subject => {
  let seen = 0;
  const measure = async (plan: RoundPlan): Promise<Sample> => {
    const sample = await run(plan);
    seen = Math.max(seen, sample['per_second']!);
    return sample;
  };
  return {
    name,
    async warmUp() {
      // The first pass fills caches and compiles code. The second measures the speed after that.
      await run({ seconds: quick ? 1 : 4, at_most: max_per_second });
      await measure({ seconds: quick ? 1 : 2, at_most: max_per_second });
    },
    round: () => measure({ seconds, at_most: Math.max(2_000, seen * 3) }),
  };
};
