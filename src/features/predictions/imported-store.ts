import type { Tx } from '../../kit/pg/client.js';
import { lockNumbers } from './gate-store.js';
import type { StoredForecast } from './placing-store.js';

/** Predictions that were made elsewhere, put into the record with everything that follows. */

/** Imported agents belong to nobody, so each counts as an owner of its own. */
export interface ImportedPrediction extends Omit<StoredForecast, 'owner_id'> {
  readonly entry_id: string;
}

/** Locks as the group commit does: questions shared, their numbers, accounts; by their ids. */
export const lockForImport = async (
  tx: Tx,
  predictions: readonly Pick<ImportedPrediction, 'question_id' | 'agent_id'>[],
): Promise<void> => {
  await tx`
    select id
    from questions
    where id = any (${predictions.map(({ question_id }) => question_id)}::uuid[])
    order by id
    for share`;
  await lockNumbers(tx, [...new Set(predictions.map(({ question_id }) => question_id))]);
  await tx`
    select agent_id
    from accounts
    where agent_id = any (${predictions.map(({ agent_id }) => agent_id)}::uuid[])
    order by agent_id
    for update`;
};

export interface ImportVerdict {
  readonly placed: boolean;
  readonly takes: boolean;
  readonly balance: number;
  readonly equity: number;
  /** What the agent has on this question already. */
  readonly known_id: string | null;
  readonly known_same: boolean | null;
}

/**
 * Stores one with its stake, ledger entry and event, by the rules of the group commit, except that
 * the question may be closed; only one with a source and without a resolution takes imports.
 */
export const storeImported = async (
  tx: Tx,
  made: ImportedPrediction,
  least_equity: number,
): Promise<ImportVerdict> => {
  const probabilities = made.probabilities === null ? null : `{${made.probabilities}}`;
  const [row] = await tx<ImportVerdict[]>`
    with q as (
      select id
      from questions
      where id = ${made.question_id} and status in ('open', 'closed') and source is not null
    ),
    numbered as (
      update question_seqs s
      set seq = s.seq + 1
      from q
      where s.question_id = q.id
      returning s.seq
    ),
    a as (
      select balance, staked, balance + staked - debt as equity
      from accounts
      where agent_id = ${made.agent_id} and (select count(*) from numbered) >= 0
      for update
    ),
    known as (
      select
        id,
        (prediction, probability, confidence, selected_option, probabilities) is not distinct from (
          ${made.prediction}::boolean, ${made.probability}::smallint,
          ${made.confidence}::smallint, ${made.selected_option}::smallint,
          ${probabilities}::text::smallint[]
        ) as same
      from predictions
      where question_id = ${made.question_id} and agent_id = ${made.agent_id}
    ),
    placed as (
      insert into predictions (
        question_id, agent_id, id, prediction, probability, confidence, selected_option,
        probabilities, reasoning, citations, stake, model_family, body_digest, event_id, created_at,
        seq
      )
      select
        q.id, ${made.agent_id}, ${made.id}, ${made.prediction}, ${made.probability},
        ${made.confidence}, ${made.selected_option}, ${probabilities}::text::smallint[],
        ${made.reasoning}, ${made.citations as string[]}::text[], ${made.stake},
        ${made.model_family}, ''::bytea, ${made.event_id}, ${made.at}, numbered.seq
      from q, a, numbered
      where a.balance >= ${made.stake} and a.equity >= ${least_equity}
      on conflict (question_id, agent_id) do nothing
      returning id
    ),
    moved as (
      update accounts c
      set
        balance = a.balance - ${made.stake},
        staked = a.staked + ${made.stake},
        prediction_count = c.prediction_count + 1
      from a
      where c.agent_id = ${made.agent_id} and exists (select from placed)
      returning c.balance
    ),
    entered as (
      insert into ledger
        (agent_id, id, reason, amount, balance_after, subject_id, question_id, created_at)
      select
        ${made.agent_id}, ${made.entry_id}, 'stake', -${made.stake}::integer, balance, ${made.id},
        ${made.question_id}, ${made.at}
      from moved
    ),
    emitted as (
      insert into outbox (id, event, question_id, agent_id, body)
      select
        ${made.event_id}, 'prediction.placed', ${made.question_id}, ${made.agent_id},
        ${made.event_body}
      from placed
    )
    select
      exists (select from moved) as placed,
      exists (select from q) as takes,
      coalesce((select balance from moved), a.balance) as balance,
      a.equity,
      (select id from known) as known_id,
      (select same from known) as known_same
    from a`;
  if (row === undefined) throw new Error('an imported agent has no account');
  return row;
};
