import type { Db, Tx } from '../../kit/pg/client.js';

/** What the gates that compare with earlier predictions read, and the locks they are sure under. */

export interface EarlierRow {
  readonly id: string;
  readonly agent_id: string;
  readonly seq: number;
  readonly model_family: string;
  readonly reasoning: string;
  readonly citations: readonly string[];
}

/** Predictions of a question behind `after`, in the order of their commits. */
export const readEarlier = (
  db: Db,
  question_id: string,
  after: { readonly seq: number; readonly agent_id: string },
  limit: number,
): Promise<EarlierRow[]> => db<EarlierRow[]>`
  select id, agent_id, seq, model_family, reasoning, citations
  from predictions
  where question_id = ${question_id}
    and seq >= ${after.seq} and (seq, agent_id) > (${after.seq}, ${after.agent_id}::uuid)
  order by seq, agent_id
  limit ${limit}`;

export interface AgentRow {
  readonly agent_id: string;
  readonly prediction_count: number;
  /** Everything the agent ever cited, one a line. */
  readonly cited: string;
}

/** Read together, so that the citations are those of exactly so many predictions. */
export const readAgents = (db: Db, agent_ids: readonly string[]): Promise<AgentRow[]> =>
  db<AgentRow[]>`
    select
      a.agent_id,
      count(p.id)::integer as prediction_count,
      coalesce(string_agg(array_to_string(p.citations, e'\n'), e'\n'), '') as cited
    from unnest(${agent_ids}::uuid[]) as a (agent_id)
    left join predictions p on p.agent_id = a.agent_id
    group by a.agent_id`;

/** Locks the numbers of questions. */
export const lockNumbers = (
  tx: Tx,
  question_ids: readonly string[],
): Promise<{ readonly question_id: string; readonly seq: number }[]> => tx<
  { question_id: string; seq: number }[]
>`
  select question_id, seq from question_seqs
  where question_id = any (${question_ids}::uuid[])
  order by question_id
  for update`;

/** Nothing is placed on these questions or by these agents until the transaction ends. */
export const lockPlaces = async (
  tx: Tx,
  question_ids: readonly string[],
  agent_ids: readonly string[],
): Promise<{
  readonly seqs: ReadonlyMap<string, number>;
  readonly counts: ReadonlyMap<string, number>;
}> => {
  await tx`
    select id from questions where id = any (${question_ids}::uuid[]) order by id for share`;
  const seqs = await lockNumbers(tx, question_ids);
  await tx`
    select id from agents where id = any (${agent_ids}::uuid[]) order by id for no key update`;
  const counts = await tx<{ agent_id: string; prediction_count: number }[]>`
    select a.agent_id, count(p.id)::integer as prediction_count
    from unnest(${agent_ids}::uuid[]) as a (agent_id)
    left join predictions p on p.agent_id = a.agent_id
    group by a.agent_id`;
  return {
    seqs: new Map(seqs.map((row) => [row.question_id, row.seq])),
    counts: new Map(counts.map((row) => [row.agent_id, row.prediction_count])),
  };
};

/** The id of the prediction with this number. */
export const readIdBySeq = async (
  db: Db,
  question_id: string,
  seq: number,
): Promise<string | null> => {
  const [row] = await db<{ id: string }[]>`
    select id from predictions where question_id = ${question_id} and seq = ${seq} limit 1`;
  return row?.id ?? null;
};

/** Pages cited on the question, those of the newest predictions first. */
export const readUsedCitations = async (
  db: Db,
  question_id: string,
  most_predictions: number,
): Promise<{ readonly urls: readonly string[]; readonly complete: boolean }> => {
  const rows = await db<{ citations: string[] }[]>`
    select citations
    from predictions
    where question_id = ${question_id} and hidden_at is null
    order by id desc
    limit ${most_predictions + 1}`;
  const shown = rows.slice(0, most_predictions);
  const urls = [...new Set(shown.flatMap(({ citations }) => citations))];
  return { urls, complete: rows.length <= most_predictions };
};

export const countFamily = async (
  db: Db,
  question_id: string,
  model_family: string,
): Promise<number> => {
  const [row] = await db<{ count: number }[]>`
    select count(*)::integer as count
    from predictions
    where question_id = ${question_id} and model_family = ${model_family}`;
  return row?.count ?? 0;
};
