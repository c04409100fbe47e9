import { setTimeout as delay } from 'node:timers/promises';
import type { Sql } from '../../src/db/client.js';
import type { BenchContext, Sample, Subject } from '../frame/bench.js';
import type { LoadJob } from '../load/load-process.js';
import type { PairOptions } from '../load/requests.js';
import { startMeter } from './processes.js';
import { questionId } from './seed.js';
import type { Setup, Target } from './setup.js';

/** Questions, or whatever the requests of one round are about; another round has others. */
export const block = 64;
/** Enough for batches to gather; peers gain nothing from more than 64. */
export const best_connections = 128;
const most_per_second = 30_000;

export interface Round {
  readonly target: Target;
  readonly job: Omit<LoadJob, 'port'>;
  /** Called when the requests are made and nothing but sending them is left. */
  beforeGo?(): Promise<void>;
  /** Goes on during the load, from its beginning; its figures join those of the round. */
  during?(): Promise<Sample>;
  /** What the target does after its answers; its CPU counts too. */
  settle?(): Promise<void>;
}

/**
 * One round of load on one target. Each begins right after a checkpoint, so that all rounds write
 * the same full pages. Figures of a failing service mean nothing: throws when anything but the
 * wanted answer came.
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
  // Awaited below; a failure must not end the process before that.
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
  /** A round is so many requests of each agent at once. */
  readonly burst?: number;
  /** The id of subject `n`; a question when absent. */
  idOf?(n: number): string;
  /** The rows of these subjects: as many more as wanted answers, or it fails. */
  countRows?(sql: Sql, subjects: readonly string[]): Promise<number>;
}

export interface RoundPlan
  extends Pick<LoadJob, 'seconds' | 'rate' | 'allowed_status'>,
    Pick<Round, 'during'> {
  /** Upper bound of the requests per second, for preparing them; of a load at a rate, the rate. */
  readonly at_most?: number;
  /** Other than the usual number of requests in flight. */
  readonly in_flight?: number;
  /** Absent: the next block, which no other round has. */
  readonly subjects?: readonly string[];
}

export type RunRound = (plan: RoundPlan) => Promise<Sample>;

/** Of all loads of a bench. */
let next_subject = 0;
let next_text = 0;

/** Empty when the service has done what it does after its answers. */
const after_work = ['outbox', 'debater_changes'];

/** Runs rounds on one target. After each the rows are counted: one for each wanted answer. */
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
    if (rows !== done) throw new Error(`${name}: ${done} answers were wanted, ${rows} rows.`);
    // Else Postgres does it by itself, in the middle of a round of another subject.
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

/** As many requests as the target answers. */
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
      // The first pass fills caches and compiles code, the second shows how fast it is then.
      await run({ seconds: quick ? 1 : 4, at_most: most_per_second });
      await measure({ seconds: quick ? 1 : 2, at_most: most_per_second });
    },
    round: () => measure({ seconds, at_most: Math.max(2_000, seen * 3) }),
  };
};
