import type { Deps } from '../../kit/deps.js';
import type { Sql } from '../../kit/pg/client.js';
import { holdLease, type Lease } from '../events/index.js';
import { noteTiers } from '../notifications/index.js';
import { settleAccounts } from '../points/index.js';
import { markStanding } from '../standing/index.js';
import { correctIndices } from './rules.js';
import { countOptions, settlePrediction, sumForecasts } from './settle-rules.js';
import {
  commitUnwaited,
  countStated,
  type Job,
  keepSums,
  moveCursor,
  putScores,
  type SettledPrediction,
} from './settle-store.js';
import { tellSettled } from './telling.js';

/** The two steps of settling a question; each is one transaction and may be tried again. */

/** Sums over all forecasters, from which every relative score follows; made once. */
export const beginSettling = async (sql: Sql, job: Job): Promise<void> => {
  const stated = await countStated(sql, job.question_id);
  await keepSums(sql, job, sumForecasts(job, correctIndices(job, job.options), stated));
};

/** The lease, or the place in the question, is another timer's by now. */
export class NotOurs extends Error {}

export interface Chunk {
  readonly job: Job;
  readonly lease: Lease;
  readonly lease_seconds: number;
  readonly predictions: readonly SettledPrediction[];
  readonly is_last: boolean;
}

/**
 * All statements of a chunk travel together, and the answers of the first two decide: when the
 * lease or the cursor is somebody else's now, everything is rolled back.
 */
export const settleChunk = async ({ sql, clock }: Deps, chunk: Chunk): Promise<void> => {
  const { job, lease, lease_seconds, predictions, is_last } = chunk;
  const { question_id } = job;
  const correct = correctIndices(job, job.options);
  const settled = predictions.map((one) => settlePrediction(job, correct, one));
  const settlements = settled.map(({ settlement }) => settlement);
  const agent_ids = settlements.map(({ agent_id }) => agent_id);
  const scores = settled.flatMap(({ score }) => score ?? []);
  const n_options = countOptions(job.options);
  const cursor_agent = agent_ids[agent_ids.length - 1] ?? job.cursor_agent;
  const at = clock();
  await sql.begin(async (tx) => {
    const right = [
      holdLease(tx, lease, lease_seconds),
      moveCursor(tx, job, { cursor_agent, count: predictions.length, is_last, at }),
    ];
    const work = [
      commitUnwaited(tx),
      scores.length > 0 ? putScores(tx, job, { scores, n_options, at }) : null,
      tellSettled(tx, job, { settled, at }),
      // From here on accounts are held, so what need not wait for that goes before it.
      settlements.length > 0 ? settleAccounts(tx, settlements, { question_id, at }) : null,
      markStanding(tx, agent_ids),
      noteTiers(tx, agent_ids, at),
    ];
    const outcomes = await Promise.allSettled([...right, ...work]);
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') throw outcome.reason;
      if (outcome.value === false) throw new NotOurs();
    }
  });
};
