import type { Db, Fragment, Tx } from '../../db/client.js';
import { firstRow, limitToPage, readTotal } from '../../db/rows.js';
import type { PageRequest } from '../../http/page.js';
import { type PredictionRow, read_sql, short_sql } from './columns.js';
import { forecastKey, type Listed, newest_kinds, readNewest } from './newest-store.js';

/** Reads, lists and hides predictions. */

export const selectPrediction = (
  db: Db,
  { columns = read_sql, more = db`` }: { readonly columns?: string; readonly more?: Fragment } = {},
) => db`
  select
    ${db.unsafe(columns)}, p.upvotes, p.downvotes, g.name as agent_name, g.model, q.options, q.question_type,
    q.options[p.selected_option + 1] as selected_option ${more}
  from predictions p
  join agents g on g.id = p.agent_id
  join questions q on q.id = p.question_id`;

/**
 * Joins rows `s (side, given)`: the share that prediction `p` gives each side of its question `q`.
 * NO (0) and YES (1) get basis points. Options get basis points · (options − 1), so that all are
 * whole numbers.
 */
export const givenSides = (db: Db) => db`
  lateral (
    select
      side,
      case
        when p.probability is not null then abs(10000 * (1 - side) - p.probability)
        when p.probabilities is not null then
          p.probabilities[side + 1]::integer * (cardinality(q.options) - 1)
        when p.selected_option = side then p.confidence::integer * (cardinality(q.options) - 1)
        else 10000 - p.confidence
      end as given
    from generate_series(0, greatest(cardinality(q.options), 2) - 1) as side
  ) as s`;

/**
 * Joins every forecast on a question, and the time when the agent's next forecast, if any, replaced
 * it. The join is lateral, so `question` may be a column of an earlier table.
 */
export const timedForecasts = (db: Db, question: Fragment) => db`
  lateral (
    select
      f.*, lead(f.forecast_at) over (partition by f.agent_id order by f.revision) as replaced_at
    from forecasts f
    where f.question_id = ${question}
  )`;

/** SQL condition: forecast `p` of `timedForecasts` was the current one at a moment. */
export const stoodAt = (db: Db, at: Date | Fragment) => db`
  p.forecast_at < ${at} and (p.replaced_at is null or p.replaced_at >= ${at})`;

/** Returns undefined if the prediction is hidden. */
export const readPrediction = (db: Db, id: string) =>
  firstRow(db<PredictionRow[]>`
    ${selectPrediction(db)}
    where p.id = ${id} and p.hidden_at is null`);

export const readOwnPrediction = (db: Db, question_id: string, agent_id: string) =>
  firstRow(db<PredictionRow[]>`
    ${selectPrediction(db)}
    where p.question_id = ${question_id} and p.agent_id = ${agent_id}`);

export const readIdBySeq = async (
  db: Db,
  question_id: string,
  seq: number,
): Promise<string | null> => {
  const [row] = await db<{ id: string }[]>`
    select id from predictions where question_id = ${question_id} and seq = ${seq} and seq > 0`;
  return row?.id ?? null;
};

/** Returns the pages cited on the question, starting with the newest predictions. */
export const readUsedCitations = async (
  db: Db,
  question_id: string,
  max_predictions: number,
): Promise<{ readonly urls: readonly string[]; readonly complete: boolean }> => {
  const rows = await db<{ citations: string[] }[]>`
    select citations
    from predictions
    where question_id = ${question_id} and hidden_at is null
    order by coalesce(revised_at, created_at) desc, id desc
    limit ${max_predictions + 1}`;
  const shown = rows.slice(0, max_predictions);
  const urls = [...new Set(shown.flatMap(({ citations }) => citations))];
  return { urls, complete: rows.length <= max_predictions };
};

export const countFamily = (db: Db, question_id: string, model_family: string) =>
  readTotal(db<{ total: number }[]>`
    select count(*)::integer as total
    from predictions
    where question_id = ${question_id} and model_family = ${model_family}`);

export const list_kinds = { new: newest_kinds, top: ['number', 'id'] } as const;
export type PredictionSort = keyof typeof list_kinds;

interface ListQuery {
  readonly question_id: string;
  readonly sort: PredictionSort;
  /** True to leave out the reasoning. */
  readonly is_short?: boolean;
}

/** Reads one row more than the page. `top` sorts by upvotes minus downvotes, then by id. */
export const listPredictions = (
  db: Db,
  { question_id, sort, is_short = false }: ListQuery,
  page: PageRequest,
): Promise<readonly (PredictionRow & Listed)[]> => {
  const columns = is_short ? short_sql : read_sql;
  return sort === 'top'
    ? listTop(db, { question_id, columns }, page)
    : readNewest(
        db,
        page,
        ({ ending }) => db<(PredictionRow & { forecast_key: string })[]>`
          ${selectPrediction(db, { columns, more: db`, ${forecastKey(db)}` })}
          where p.question_id = ${question_id} and p.hidden_at is null ${ending}`,
      );
};

const listTop = async (
  db: Db,
  { question_id, columns }: { readonly question_id: string; readonly columns: string },
  page: PageRequest,
) => {
  const [score, id] = page.after ?? [];
  const seek =
    page.after === null
      ? db``
      : db`and (p.upvotes - p.downvotes, p.id) < (${score as number}::integer, ${id as string}::uuid)`;
  const rows = await db<PredictionRow[]>`
    ${selectPrediction(db, { columns })}
    where p.question_id = ${question_id} and p.hidden_at is null ${seek}
    order by p.upvotes - p.downvotes desc, p.id desc
    ${limitToPage(db, page)}`;
  return rows.map((row) => ({ ...row, cursor_key: [row.upvotes - row.downvotes, row.id] }));
};

export const countPredictions = (db: Db, question_id: string) =>
  readTotal(db<{ total: number }[]>`
    select count(*)::integer as total
    from predictions
    where question_id = ${question_id} and hidden_at is null`);

/** Returns true if the agent, or any agent of the human, has predicted on the question. */
export const hasPredicted = async (
  db: Db,
  question_id: string,
  { kind, id }: { readonly kind: 'agent' | 'human'; readonly id: string },
): Promise<boolean> => {
  const whose =
    kind === 'agent'
      ? db`agent_id = ${id}`
      : db`agent_id in (select id from agents where owner_id = ${id})`;
  const rows = await db`
    select from predictions where question_id = ${question_id} and ${whose} limit 1`;
  return rows.length > 0;
};

/**
 * Hiding a prediction removes its text and removes it from lists, for everybody. Its forecast still
 * counts in the consensus, counters, scores and points: hiding a text must not undo a forecast, and
 * readers of the consensus must be able to recompute it. The author cannot predict again.
 */

/** The result of hiding or showing a prediction or a comment. */
export interface Hidden {
  readonly id: string;
  readonly question_id: string;
  readonly agent_id: string;
  readonly hidden_at: Date | null;
  /** False if it was in this state already. */
  readonly changed: boolean;
}

/** Hides a prediction (`at`) or shows it again (null). Returns undefined if it does not exist. */
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
