import type { Db } from '../../kit/pg/client.js';
import type { Stated } from '../history/index.js';
import type { PredictionAsk } from './predictions-store.js';

/** What the consensus of each question was made from, in the order in which it was said. */

export interface PredictedQuestion {
  readonly id: string;
  readonly question_type: 'binary' | 'multi';
  readonly options: readonly string[];
}

/** Questions that have predictions, by their ids, behind one of them. */
export const listPredictedQuestions = (
  db: Db,
  ask: PredictionAsk,
  after: string,
): PromiseLike<PredictedQuestion[]> => {
  const { question_id, category, subcategory } = ask;
  return db<PredictedQuestion[]>`
    select q.id, q.question_type, q.options
    from questions q
    where q.id > ${after}::uuid
      and q.status <> 'draft'
      ${question_id === undefined ? db`` : db`and q.id = ${question_id}::uuid`}
      ${category === undefined ? db`` : db`and q.category = ${category}`}
      ${subcategory === undefined ? db`` : db`and q.subcategory = ${subcategory}`}
      and exists (select from predictions p where p.question_id = q.id)
    order by q.id
    limit 200`;
};

export interface StatedRow extends Omit<Stated, 'given'> {
  readonly probabilities: readonly number[] | null;
  readonly prediction_id: string;
}

/**
 * All that was stated on a question: some 100 bytes a row, so that the largest questions fit. The
 * owner stands for agents of one person and never leaves this process.
 */
export const readStatedRows = (
  db: Db,
  ask: PredictionAsk,
  question_id: string,
): PromiseLike<StatedRow[]> => {
  const { below, as_of, since, until, model_family } = ask;
  return db<StatedRow[]>`
    select
      p.id as prediction_id,
      floor(extract(epoch from p.created_at) * 1000)::float8 as at,
      p.model_family as family,
      coalesce(p.owner_id, p.agent_id)::text as owner,
      coalesce(p.selected_option, p.prediction::integer) as side,
      coalesce(p.probability, p.confidence) as value,
      p.probabilities
    from predictions p
    where p.question_id = ${question_id}
      and p.id < ${below}::uuid
      and p.created_at <= ${as_of}::timestamptz
      ${since === undefined ? db`` : db`and p.created_at >= ${since}::timestamptz`}
      ${until === undefined ? db`` : db`and p.created_at < ${until}::timestamptz`}
      ${model_family === undefined ? db`` : db`and p.model_family = ${model_family}`}
    order by p.created_at, p.id`;
};
