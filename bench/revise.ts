import type { Sql } from '../src/db/client.js';
import { block, makeClosedLoop, makeLoad, type RunRound } from './env/load-rounds.js';
import { questionId, seededId, seedPredictions } from './env/seed.js';
import { startForum } from './env/setup.js';
import { type Bench, ratioOf } from './frame/bench.js';

/**
 * Durable revisions per second through `PATCH /api/predictions/{pid}`, compared with predictions
 * through the same service. No prediction is revised twice, and after each round the revisions are
 * counted.
 */

const agents = 5_000;
const in_flight = 256;
/** Higher than any rate that the service reaches. */
const max_per_second = 8_000;

const countRevisions = async (sql: Sql, ids: readonly string[]): Promise<number> => {
  const [row] = await sql<{ count: number }[]>`
    select coalesce(sum(revision), 0)::int as count
    from predictions
    where id = any (${ids as string[]}::uuid[])`;
  return row!.count;
};

export const bench: Bench = {
  question: 'How many durable revisions per second, compared to predictions?',
  figures: { revise_over_predict: { of: ratioOf('revise', 'predict'), min: 1 } },
  async prepare(context) {
    const { seconds, rounds } = context;
    const most = max_per_second * (seconds * rounds + 8);
    const questions = Math.ceil(most / agents);
    const from_ms = Date.now() - 86_400_000;
    const narrow = block * 4 * (rounds + 2);
    const { setup, keys_file, service } = await startForum(context, {
      agents,
      questions: questions + narrow,
      fill: (sql) => seedPredictions(sql, { agents, questions, from_ms }),
    });
    const fixed = { keys_file, agents, in_flight };
    const place = makeLoad(setup, service, {
      ...fixed,
      kind: 'predict',
      idOf: (n) => questionId(questions + n),
    });
    const revise = makeLoad(setup, service, {
      ...fixed,
      kind: 'revise',
      countRows: countRevisions,
    });
    let next = 0;
    const reviseNext: RunRound = (plan) => {
      const at_most = Math.min(plan.at_most ?? 0, max_per_second);
      const count = Math.ceil(at_most * plan.seconds * 1.05) + 2 * in_flight;
      const subjects = Array.from({ length: count }, () => seededId(from_ms, next++));
      return revise({ ...plan, at_most, subjects });
    };
    return [
      () => [
        makeClosedLoop('revise', context, reviseNext),
        makeClosedLoop('predict', context, place),
      ],
    ];
  },
};
