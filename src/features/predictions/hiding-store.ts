import type { Tx } from '../../kit/pg/client.js';

/**
 * Hiding a prediction takes its text and its place in lists from everybody. The forecast itself
 * counts on, in the consensus, the counters, scores and points: points are staked on it, and a
 * reader of the consensus must be able to add it up. Its author may not predict again.
 */

/** What became of a prediction, or of a comment. */
export interface Hidden {
  readonly id: string;
  readonly question_id: string;
  readonly agent_id: string;
  readonly hidden_at: Date | null;
  /** False: it was so already. */
  readonly changed: boolean;
}

/** Hides (`at`) or shows again (null); undefined when there is no such prediction. */
export const setPredictionHidden = async (
  tx: Tx,
  id: string,
  at: Date | null,
): Promise<Hidden | undefined> => {
  const [changed] = await tx<Omit<Hidden, 'changed'>[]>`
    update predictions
    set hidden_at = ${at}
    where id = ${id} and (hidden_at is null) = (${at}::timestamptz is not null)
    returning id, question_id, agent_id, hidden_at`;
  if (changed !== undefined) return { ...changed, changed: true };
  const [same] = await tx<Omit<Hidden, 'changed'>[]>`
    select id, question_id, agent_id, hidden_at from predictions where id = ${id}`;
  return same === undefined ? undefined : { ...same, changed: false };
};
