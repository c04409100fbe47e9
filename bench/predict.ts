import type { Sql } from '../src/db/client.js';
import { type Bed, makeKeys, prepareOnBed, writeKeys } from './env/bed.js';
import { type KeyBudget, makeKeyBudget } from './env/key-budget.js';
import {
  best_connections,
  block,
  makeClosedLoop,
  makeLoad,
  type RunRound,
} from './env/load-rounds.js';
import { startMeter } from './env/processes.js';
import { questionId, seed } from './env/seed.js';
import { openPool } from './env/stores.js';
import {
  openBenchPool,
  type StoredTarget,
  startPeerTarget,
  startServiceTarget,
} from './env/targets.js';
import { waitUntilEmpty } from './env/wait.js';
import {
  type Bench,
  type BenchContext,
  figureOf,
  ratioOf,
  type Subject,
  type Summaries,
} from './frame/types.js';
import { makeDiskSubject } from './peers/disk.js';
import { findPgbench, pgbench_missing, runPgbench, writeScript } from './peers/pgbench.js';

/**
 * Durable predictions per second through `POST /api/questions/{id}/predict` with every check on,
 * beside the conventional design and pgbench, on one Postgres. Every request is another agent and
 * question with a text of its own. After each round the rows are counted: an answer 201 without a
 * row, or a row without an answer, fails the bench.
 */

const agents = 10_000;
/** Best of 192, 256 and 320 for the service on two cores; its peers gain nothing from so many. */
const service_connections = 256;
/** Best of 8, 12, 16 and 20 for the peer on two cores. */
const peer_pool = 16;
/** Best of 4, 8, 16, 32 and 64 on two cores. */
const pgbench_clients = 16;
/** The service allows 60 predictions a minute and key; rounds wait rather than meet it. */
const key_budget = 54;
const overload_connections = 1_024;
/** The load on many questions: so many, behind those of the other loads. */
const wide_questions = 10_000;
const wide_from = 4_096;
const wide_text = 20_000_000;

export const countPredictions = async (
  sql: Sql,
  question_ids: readonly string[],
): Promise<number> => {
  const [row] = await sql<{ count: number }[]>`
    select count(*)::int as count
    from predictions
    where question_id = any(${question_ids as string[]})`;
  return row?.count ?? 0;
};

interface Made {
  readonly bed: Bed;
  readonly target: StoredTarget;
  readonly keys_file: string;
  readonly budget: KeyBudget;
}

/** Runs rounds on blocks of questions or, where told so, all on the same many questions. */
const makeRun = ({ bed, target, keys_file, budget }: Made, questions?: number): RunRound => {
  const { context } = bed;
  const { sql, name } = target;
  const is_service = name.startsWith('service');
  const usual = is_service ? service_connections : best_connections;
  return makeLoad(bed, target, {
    source: new URL('./load/predict-requests.js', import.meta.url),
    ...{ keys_file, agents, wanted_status: 201, idOf: questionId },
    ...(questions === undefined ? {} : { same_subjects: questions, first_subject: wide_from }),
    // Texts of other loads on this service are others.
    ...(questions === undefined ? {} : { first_text: wide_text }),
    connections: context.connections ?? usual,
    budget: is_service ? budget : undefined,
    countRows: (question_ids) => countPredictions(sql, question_ids),
    // The relay hands every event of the round on.
    settle: async () => (is_service ? { hand_off_s: await waitUntilEmpty(sql, ['outbox']) } : {}),
  });
};

/** At half of what the conventional design can do, for both; of its own where that is left out. */
const atHalf =
  ({ seconds }: BenchContext, name: string, run: RunRound) =>
  (so_far: Summaries) => {
    const rate = ((so_far['conventional'] ?? so_far[name])?.['per_second'] ?? 2) / 2;
    return { name: `${name}_at_half`, round: () => run({ seconds, rate, at_most: rate }) };
  };

/** Twice as many as it can do: what is too much is refused, and the rest is answered soon. */
const overload =
  ({ seconds }: BenchContext, run: RunRound) =>
  (so_far: Summaries) => {
    const rate = (so_far['service']?.['per_second'] ?? 0) * 2;
    return {
      name: 'service_overload',
      round: () =>
        run({
          seconds,
          rate,
          at_most: rate,
          allowed_status: 503,
          connections: overload_connections,
        }),
    };
  };

const makePgbenchSubject = (bed: Bed, program: string): Subject => {
  const { context, stores } = bed;
  const sql = openBenchPool(bed, 'pgbench');
  const script = writeScript(context.folder, stores.server_version);
  const fixed = {
    program,
    script,
    database_url: stores.urlOf('pgbench'),
    folder: context.folder,
    clients: pgbench_clients,
    seconds: context.seconds,
    agents,
    questions: block,
  };
  let next_question = 0;
  return {
    name: 'pgbench',
    async round() {
      const first_question = next_question;
      next_question += block;
      await stores.admin`checkpoint`;
      const meter = startMeter({ postgres: stores.postgresPids }, () => []);
      const result = await runPgbench({ ...fixed, first_question });
      const metered = meter.stop();
      const rows = await countPredictions(
        sql,
        Array.from({ length: block }, (_, n) => questionId(first_question + n)),
      );
      if (rows !== result.transactions) {
        throw new Error(`pgbench: ${result.transactions} transactions, ${rows} rows are there.`);
      }
      await sql`vacuum analyze`;
      const { per_second, p50_ms, p99_ms } = result;
      return { per_second, p50_ms, p99_ms, ...metered };
    },
  };
};

/** With the service's work in Redis, or without. */
const startConventional = (bed: Bed, name: 'conventional' | 'conventional_bare') =>
  startPeerTarget(bed, {
    name,
    module: new URL('./peers/conventional.js', import.meta.url),
    env: {
      POOL: String(peer_pool),
      ...(name === 'conventional' ? { REDIS_URL: bed.stores.redis_url } : {}),
    },
  });

const databases = ['service', 'service_two', 'conventional', 'conventional_bare', 'pgbench'];

const fillDatabases = async ({ context, stores }: Bed): Promise<string> => {
  const keys = makeKeys(agents);
  await stores.createDatabase('seeded');
  const sql = openPool(stores.urlOf('seeded'), 'bench');
  await seed(sql, { keys, questions: wide_from + wide_questions });
  await sql.end({ timeout: 5 });
  await stores.copyDatabase('seeded', databases);
  return writeKeys(context, keys);
};

export const predict: Bench = {
  name: 'predict',
  question:
    'How many durable predictions per second pass through the HTTP endpoint, all checks on?',
  reduce: { rss_mb: 'max' },
  ratios: {
    service_over_conventional: ratioOf('service', 'conventional'),
    service_over_conventional_bare: ratioOf('service', 'conventional_bare'),
    service_over_pgbench: ratioOf('service', 'pgbench'),
    p99_at_half_over_conventional: ratioOf('service_at_half', 'conventional_at_half', 'p99_ms'),
    overload_p99_over_limit: ratioOf('service_overload', 'service', 'p99_ms'),
    two_over_one: ratioOf('service_two', 'service_again'),
    two_over_one_wide: ratioOf('service_two_wide', 'service_wide'),
  },
  figures: {
    refused_percent_overload: figureOf('service_overload', 'refused_percent'),
    api_rss_mb_overload: figureOf('service_overload', 'rss_mb'),
    api_rss_mb: figureOf('service', 'rss_mb'),
  },
  prepare: prepareOnBed(async (bed) => {
    const { context } = bed;
    const keys_file = await fillDatabases(bed);
    const use = (target: StoredTarget) => {
      const made = { bed, target, keys_file, budget: makeKeyBudget(key_budget) };
      return { run: makeRun(made), wide: makeRun(made, wide_questions) };
    };
    const closed = (name: string, run: RunRound) => makeClosedLoop(name, context, run);
    const one = use(await startServiceTarget(bed));
    const two_env = { API_PROCESSES: '2', REDIS_PREFIX: 'two' };
    const two = use(await startServiceTarget(bed, two_env, 'service_two'));
    const peer = use(await startConventional(bed, 'conventional')).run;
    const bare = use(await startConventional(bed, 'conventional_bare')).run;
    const program = findPgbench();
    const pgbench = program === undefined ? [] : [makePgbenchSubject(bed, program)];
    return {
      stages: [
        () => ({
          subjects: [
            closed('service', one.run),
            closed('conventional', peer),
            closed('conventional_bare', bare),
            ...pgbench,
          ],
        }),
        (so_far) => ({
          subjects: [
            atHalf(context, 'service', one.run)(so_far),
            atHalf(context, 'conventional', peer)(so_far),
            makeDiskSubject(context),
          ],
        }),
        (so_far) => ({
          subjects: [overload(context, one.run)(so_far)],
        }),
        () => ({
          subjects: [
            closed('service_again', one.run),
            closed('service_two', two.run),
            closed('service_wide', one.wide),
            closed('service_two_wide', two.wide),
          ],
        }),
      ],
      missing: program === undefined ? [{ name: 'pgbench', why: pgbench_missing }] : [],
    };
  }),
};
