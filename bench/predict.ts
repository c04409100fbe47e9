import type { Sql } from '../src/db/client.js';
import { type Bed, makeKeys, prepareOnBed, waitUntilEmpty, writeKeys } from './env/bed.js';
import {
  best_connections,
  block,
  makeClosedLoop,
  makeLoad,
  type RunRound,
} from './env/load-rounds.js';
import { startMeter } from './env/processes.js';
import { questionId, seed } from './env/seed.js';
import { type StoredTarget, startConventional, startService } from './env/service.js';
import { type Bench, figureOf, ratioOf, type Subject, type Summaries } from './frame/bench.js';
import { findPgbench, runPgbench } from './peers/pgbench.js';

/**
 * Durable predictions per second through `POST /api/questions/{id}/predict` with every check on,
 * beside the conventional design and pgbench, on one Postgres. Every request is another agent and
 * question with a text of its own. After each round the rows are counted: an answer 201 without a
 * row, or a row without an answer, fails the bench.
 */

const agents = 10_000;
/** Best of 192, 256 and 320 for the service on two cores; its peers gain nothing from so many. */
const service_connections = 256;
/** Best of 8, 12, 16 and 20 on two cores. */
const peer_pool = 16;
/** Best of 4, 8, 16, 32 and 64 on two cores. */
const pgbench_clients = 16;
const overload_connections = 1_024;
/** The load on many questions: their number, the first of them, and their first text. */
const wide = { same_subjects: 10_000, first_subject: 4_096, first_text: 20_000_000 };

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

/** Runs rounds on blocks of questions or on the many. */
const makeRun = (
  bed: Bed,
  target: StoredTarget,
  keys_file: string,
  more: Partial<typeof wide> = {},
): RunRound => {
  const { sql, name } = target;
  const is_service = name.startsWith('service');
  return makeLoad(bed, target, {
    ...{ kind: 'predict', keys_file, agents, wanted_status: 201, idOf: questionId, ...more },
    in_flight: is_service ? service_connections : best_connections,
    countRows: (question_ids) => countPredictions(sql, question_ids),
    // The relay hands every event of the round on.
    settle: async () => (is_service ? { hand_off_s: await waitUntilEmpty(sql, ['outbox']) } : {}),
  });
};

const makePgbenchSubject = (bed: Bed, program: string): Subject => {
  const { folder, seconds } = bed.context;
  const sql = bed.open('pgbench');
  let first_question = 0;
  return {
    name: 'pgbench',
    async round() {
      await bed.admin`checkpoint`;
      const meter = startMeter({ postgres: bed.groups.postgres });
      const result = await runPgbench({
        ...{ program, folder, seconds, agents, clients: pgbench_clients },
        ...{ database_url: bed.urlOf('pgbench'), first_question, questions: block },
      });
      const metered = meter.stop();
      const ids = Array.from({ length: block }, (_, n) => questionId(first_question + n));
      first_question += block;
      const rows = await countPredictions(sql, ids);
      const { transactions, ...sample } = result;
      if (rows !== transactions) {
        throw new Error(`pgbench: ${transactions} transactions, ${rows} rows are there.`);
      }
      await sql`vacuum analyze`;
      return { ...sample, ...metered };
    },
  };
};

export const bench: Bench = {
  name: 'predict',
  question:
    'How many durable predictions per second pass through the HTTP endpoint, all checks on?',
  figures: {
    service_over_conventional: ratioOf('service', 'conventional'),
    service_over_pgbench: ratioOf('service', 'pgbench'),
    p99_at_half_over_conventional: ratioOf('service_at_half', 'conventional_at_half', 'p99_ms'),
    overload_p99_over_limit: ratioOf('service_overload', 'service', 'p99_ms'),
    refused_percent_overload: figureOf('service_overload', 'refused_percent'),
    two_over_one: ratioOf('service_two', 'service_again'),
    two_over_one_wide: ratioOf('service_two_wide', 'service_wide'),
    api_rss_mb: figureOf('service', 'rss_mb'),
  },
  prepare: prepareOnBed(async (bed) => {
    const { seconds } = bed.context;
    const keys = makeKeys(agents);
    const keys_file = writeKeys(bed, keys);
    const questions = wide.first_subject + wide.same_subjects;
    const copies = ['service_two', 'conventional', 'pgbench'];
    await bed.createDatabase('service', (sql) => seed(sql, { keys, questions }), copies);

    const closed = (name: string, run: RunRound) => makeClosedLoop(name, bed.context, run);
    const service = await startService(bed);
    const two_env = { API_PROCESSES: '2', REDIS_PREFIX: 'two' };
    const service_two = await startService(bed, two_env, 'service_two');
    const one = makeRun(bed, service, keys_file);
    const two = makeRun(bed, service_two, keys_file);
    const peer = makeRun(bed, await startConventional(bed, peer_pool), keys_file);
    const program = findPgbench();
    if (program === undefined) bed.context.log('pgbench is not installed (Debian: postgresql).');

    /** At half of what the conventional design can do, for both. */
    const atHalf = (name: string, run: RunRound, so_far: Summaries): Subject => {
      const rate = ((so_far['conventional'] ?? so_far[name])?.['per_second'] ?? 2) / 2;
      return { name: `${name}_at_half`, round: () => run({ seconds, rate, at_most: rate }) };
    };
    /** Twice as many as it can do: what is too much is refused, and the rest is answered soon. */
    const overload = (so_far: Summaries): Subject => {
      const rate = (so_far['service']?.['per_second'] ?? 1) * 2;
      const plan = { seconds, rate, at_most: rate, in_flight: overload_connections };
      return { name: 'service_overload', round: () => one({ ...plan, allowed_status: 503 }) };
    };
    return {
      stages: [
        () => [
          closed('service', one),
          closed('conventional', peer),
          ...(program === undefined ? [] : [makePgbenchSubject(bed, program)]),
        ],
        (so_far) => [atHalf('service', one, so_far), atHalf('conventional', peer, so_far)],
        (so_far) => [overload(so_far)],
        () => [
          closed('service_again', one),
          closed('service_two', two),
          closed('service_wide', makeRun(bed, service, keys_file, wide)),
          closed('service_two_wide', makeRun(bed, service_two, keys_file, wide)),
        ],
      ],
    };
  }),
};
