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

/** Where a question stands when it is opened. */
export interface Opened {
  /** The last number given. */
  readonly seq: number;
  readonly is_empty: boolean;
}

const open_seqs = `
  select
    s.seq,
    (select p.seq from predictions p where p.question_id = d.id order by p.seq limit 1) is null
      as is_empty
  from unnest($1::text[]::uuid[]) with ordinality as d (id, place)
  left join question_seqs s on s.question_id = d.id
  order by d.place`;

/**
 * In the order of the ids; begins to count where nobody has. Whether there is a prediction is asked
 * of an index, by its order, and planned each time: a plan that is kept from the time of few
 * questions reads all predictions until it meets one of a question that has none.
 */
export const openSeqs = async (
  db: Db,
  question_ids: readonly string[],
): Promise<readonly Opened[]> => {
  const rows = await db.unsafe<{ seq: number | null; is_empty: boolean }[]>(open_seqs, [
    `{${question_ids}}`,
  ]);
  const new_ids = question_ids.filter((_, i) => rows[i]?.seq == null);
  if (new_ids.length > 0) await beginNumbers(db, new_ids);
  return rows.map(({ seq, is_empty }) => ({ seq: seq ?? 0, is_empty }));
};

/** Numbers of questions that nobody has begun. */
const beginNumbers = (db: Db, question_ids: readonly string[]) => db`
  insert into question_seqs (question_id, seq)
  select id, 0 from unnest(${question_ids}::uuid[]) as d (id) order by id
  on conflict (question_id) do nothing`;

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
      a.prediction_count,
      coalesce((
        select string_agg(array_to_string(p.citations, e'\n'), e'\n')
        from (
          select distinct l.question_id
          from ledger l
          where l.agent_id = a.agent_id and l.reason = 'stake'
        ) as q
        join predictions p on p.question_id = q.question_id and p.agent_id = a.agent_id
      ), '') as cited
    from accounts a
    where a.agent_id = any (${agent_ids}::uuid[])`;

/** Locks the numbers of questions, and begins those that nobody has begun. */
export const lockNumbers = async (
  tx: Tx,
  question_ids: readonly string[],
): Promise<readonly { readonly question_id: string; readonly seq: number }[]> => {
  await beginNumbers(tx, question_ids);
  return tx<{ question_id: string; seq: number }[]>`
    select question_id, seq from question_seqs
    where question_id = any (${question_ids}::uuid[])
    order by question_id
    for update`;
};

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
  const counts = await tx<{ agent_id: string; prediction_count: number }[]>`
    select agent_id, prediction_count from accounts
    where agent_id = any (${agent_ids}::uuid[])
    order by agent_id
    for update`;
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
