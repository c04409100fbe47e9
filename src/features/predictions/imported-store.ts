import type { Tx } from '../../kit/pg/client.js';
import { lockNumbers } from './gate-store.js';
import type { StoredForecast } from './placing-store.js';

/** Predictions that were made elsewhere, put into the record with everything that follows. */

/** Imported agents belong to nobody, so each counts as an owner of its own. */
export type ImportedPrediction = Omit<StoredForecast, 'owner_id'>;

/** Locks as the group commit does: questions shared, their numbers, agents; by their ids. */
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
    select id
    from agents
    where id = any (${predictions.map(({ agent_id }) => agent_id)}::uuid[])
    order by id
    for no key update`;
};

export interface ImportVerdict {
  readonly placed: boolean;
  /** What the agent has on this question already. */
  readonly known_id: string | null;
  readonly known_same: boolean | null;
}

/**
 * Stores one with its event, by the rules of the group commit, except that
 * the question may be closed; only one with a source and without a resolution takes imports.
 */
export const storeImported = async (tx: Tx, made: ImportedPrediction): Promise<ImportVerdict> => {
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
        probabilities, reasoning, citations, model_family, body_digest, event_id, created_at,
        seq
      )
      select
        q.id, ${made.agent_id}, ${made.id}, ${made.prediction}, ${made.probability},
        ${made.confidence}, ${made.selected_option}, ${probabilities}::text::smallint[],
        ${made.reasoning}, ${made.citations as string[]}::text[],
        ${made.model_family}, ''::bytea, ${made.event_id}, ${made.at}, numbered.seq
      from q, numbered
      on conflict (question_id, agent_id) do nothing
      returning id
    ),
    emitted as (
      insert into outbox (id, event, question_id, agent_id, body)
      select
        ${made.event_id}, 'prediction.placed', ${made.question_id}, ${made.agent_id},
        ${made.event_body}
      from placed
    )
    select
      exists (select from placed) as placed,
      (select id from known) as known_id,
      (select same from known) as known_same`;
  return row!;
};
