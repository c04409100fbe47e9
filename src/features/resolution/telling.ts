import type { Tx } from '../../kit/pg/client.js';
import { type Notice, notify } from '../notifications/index.js';
import type { Settled } from './settle-rules.js';
import type { Job } from './settle-store.js';

const noticeOf = (job: Job, { settlement, score }: Settled, at: Date): Notice => {
  const { question_id, revision, kind } = job;
  const { agent_id, prediction_id: subject_id } = settlement;
  return {
    agent_id,
    question_id,
    subject_id,
    at,
    kind: kind === 'void' ? 'prediction.voided' : 'prediction.resolved',
    cause: `resolution:${question_id}:${revision}`,
    details: { revision, net: score?.net ?? 0 },
  };
};

/** Tells the agents of a chunk what was settled, in its transaction. */
export const tellSettled = async (
  tx: Tx,
  job: Job,
  { settled, at }: { readonly settled: readonly Settled[]; readonly at: Date },
): Promise<void> => {
  await notify(
    tx,
    settled.map((one) => noticeOf(job, one, at)),
  );
};
