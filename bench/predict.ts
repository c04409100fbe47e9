import type { Sql } from '../src/kit/pg/client.js';
import { type Bed, makeKeys, prepareOnBed, writeKeys } from './env/bed.js';
import { makeKeyBudget } from './env/key-budget.js';
import { best_connections, block, makeClosedLoop, makeLoad } from './env/load-rounds.js';
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
import { type Bench, figureOf, ratioOf, type Subject, type Summaries } from './frame/types.js';
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

const makeSubjects = (bed: Bed, target: StoredTarget, keys_file: string) => {
  const { context } = bed;
  const { sql, name } = target;
  const is_service = name === 'service';
  const run = makeLoad(bed, target, {
    source: new URL('./load/predict-requests.js', import.meta.url),
    ...{ keys_file, agents, wanted_status: 201, idOf: questionId },
    connections: context.connections ?? (is_service ? service_connections : best_connections),
    budget: is_service ? makeKeyBudget(key_budget) : undefined,
    countRows: (question_ids) => countPredictions(sql, question_ids),
    // The relay hands every event of the round on.
    settle: async () => (is_service ? { hand_off_s: await waitUntilEmpty(sql, ['outbox']) } : {}),
  });
  const atHalf = (so_far: Summaries): Subject => ({
    name: `${name}_at_half`,
    round: () => {
      const rate = (so_far[name]?.['per_second'] ?? 0) / 2;
      return run({ seconds: context.seconds, rate, at_most: rate });
    },
  });
  return { closed: makeClosedLoop(name, context, run), atHalf };
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

const fillDatabases = async ({ context, stores }: Bed): Promise<string> => {
  const keys = makeKeys(agents);
  await stores.createDatabase('seeded');
  const sql = openPool(stores.urlOf('seeded'), 'bench');
  await seed(sql, { keys, questions: block * (2 * context.rounds + 2) });
  await sql.end({ timeout: 5 });
  await stores.copyDatabase('seeded', ['service', 'conventional', 'conventional_bare', 'pgbench']);
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
  },
  figures: {
    p99_ms_at_half: figureOf('service_at_half', 'p99_ms'),
    api_rss_mb: figureOf('service', 'rss_mb'),
  },
  prepare: prepareOnBed(async (bed) => {
    const { context } = bed;
    const keys_file = await fillDatabases(bed);
    const make = (target: StoredTarget) => makeSubjects(bed, target, keys_file);
    const service = make(await startServiceTarget(bed));
    const conventional = make(await startConventional(bed, 'conventional'));
    const bare = make(await startConventional(bed, 'conventional_bare'));
    const program = findPgbench();
    const pgbench = program === undefined ? [] : [makePgbenchSubject(bed, program)];
    return {
      stages: [
        () => ({ subjects: [service.closed, conventional.closed, bare.closed, ...pgbench] }),
        (so_far) => ({
          subjects: [service.atHalf(so_far), conventional.atHalf(so_far), makeDiskSubject(context)],
        }),
      ],
      missing: program === undefined ? [{ name: 'pgbench', why: pgbench_missing }] : [],
    };
  }),
};
