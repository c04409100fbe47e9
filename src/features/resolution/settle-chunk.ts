import { setTimeout as wait } from 'node:timers/promises';
import type { Deps } from '../../kit/deps.js';
import type { Sql } from '../../kit/pg/client.js';
import type { Lease } from '../events/index.js';
import { noteTiers } from '../notifications/index.js';
import { settleAccounts } from '../points/index.js';
import { markStanding } from '../standing/index.js';
import { correctIndices } from './rules.js';
import { countOptions, settlePrediction, sumForecasts } from './settle-rules.js';
import {
  countStated,
  type Job,
  keepSums,
  moveCursor,
  putScores,
  type SettledPrediction,
  type StatedCount,
} from './settle-store.js';
import { tellSettled } from './telling.js';

/** The two steps of settling a question; each is one transaction and may be tried again. */

/** Predictions that are counted at a time; then the cores are left to others for a moment. */
const counted_at_once = 2_000;
const rest_ms = 8;

/** All that were stated, alike ones together. No more come: the question is decided. */
const countAll = async (sql: Sql, question_id: string): Promise<readonly StatedCount[]> => {
  const found = new Map<string, StatedCount>();
  let after: string | null = null;
  for (;;) {
    const rows = await countStated(sql, question_id, { after, most: counted_at_once });
    let counted = 0;
    for (const { last_agent, ...stated } of rows) {
      const { count, ...forecast } = stated;
      const key = JSON.stringify(forecast);
      found.set(key, Object.assign(stated, { count: count + (found.get(key)?.count ?? 0) }));
      counted += count;
      after = last_agent;
    }
    if (counted < counted_at_once) return [...found.values()];
    await wait(rest_ms);
  }
};

/** Sums over all forecasters, from which every relative score follows; made once. */
export const beginSettling = async (sql: Sql, job: Job): Promise<void> => {
  const stated = await countAll(sql, job.question_id);
  await keepSums(sql, job, sumForecasts(job, correctIndices(job, job.options), stated));
};

/** The lease, or the place in the question, is another timer's by now. */
export class NotOurs extends Error {}

export interface Chunk {
  readonly job: Job;
  readonly lease: Lease;
  readonly predictions: readonly SettledPrediction[];
  readonly is_last: boolean;
}

/** One transaction; rolled back where the lease or the cursor is somebody else's by now. */
export const settleChunk = ({ sql, clock }: Deps, chunk: Chunk): Promise<void> => {
  const { job, lease, predictions, is_last } = chunk;
  const { question_id } = job;
  const correct = correctIndices(job, job.options);
  const settled = predictions.map((one) => settlePrediction(job, correct, one));
  const settlements = settled.map(({ settlement }) => settlement);
  const paid = settlements.filter(({ net, reversal }) => net !== 0 || reversal !== 0);
  const agent_ids = settlements.map(({ agent_id }) => agent_id);
  const scores = settled.flatMap(({ score }) => score ?? []);
  const n_options = countOptions(job.options);
  const cursor_agent = agent_ids[agent_ids.length - 1] ?? job.cursor_agent;
  const at = clock();
  return sql.begin(async (tx) => {
    const place = { cursor_agent, count: predictions.length, is_last, at };
    if (!(await moveCursor(tx, job, lease, place))) throw new NotOurs();
    await Promise.all([
      scores.length > 0 ? putScores(tx, job, { scores, n_options, at }) : null,
      tellSettled(tx, job, { settled, at }),
      markStanding(tx, agent_ids, job.category),
    ]);
    if (paid.length === 0) return;
    await settleAccounts(tx, paid, { question_id, at });
    const paid_ids = paid.map(({ agent_id }) => agent_id);
    await noteTiers(tx, paid_ids, at);
  });
};
