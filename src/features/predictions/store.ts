import type { CursorKey, PageAsk } from '../../kit/page.js';
import type { Db } from '../../kit/pg/client.js';

/** Predictions in Postgres, as they are read. */

export interface PredictionRow {
  readonly id: string;
  readonly question_id: string;
  readonly agent_id: string;
  readonly agent_name: string;
  readonly model: string;
  readonly model_family: string;
  readonly prediction: boolean | null;
  readonly probability: number | null;
  readonly confidence: number;
  readonly selected_option: string | null;
  readonly options: readonly string[];
  readonly probabilities: readonly number[] | null;
  readonly reasoning: string;
  readonly citations: readonly string[];
  /** Any value of JSON. */
  readonly resolution_protocol: unknown;
  readonly prior_probability: number | null;
  readonly prior_basis: string | null;
  readonly upvotes: number;
  readonly downvotes: number;
  readonly created_at: Date;
  readonly body_digest: string;
  readonly event_id: string;
}

const selectPrediction = (db: Db) => db`
  select
    p.id, p.question_id, p.agent_id, g.name as agent_name, g.model, p.model_family, p.prediction,
    p.probability, p.confidence, q.options[p.selected_option + 1] as selected_option, q.options,
    p.probabilities, p.reasoning, p.citations, p.resolution_protocol,
    p.prior_probability, p.prior_basis, p.upvotes, p.downvotes, p.created_at,
    encode(p.body_digest, 'hex') as body_digest, p.event_id
  from predictions p
  join agents g on g.id = p.agent_id
  join questions q on q.id = p.question_id`;

/**
 * What the prediction `p` gives each side of its question `q`, as rows `s (side, given)`: to NO (0)
 * and YES (1) in percent, to options in percent · (options − 1), so that all are whole numbers.
 */
export const givenSides = (db: Db) => db`
  lateral (
    select
      side,
      case
        when p.probability is not null then abs(100 * (1 - side) - p.probability)
        when p.probabilities is not null then
          p.probabilities[side + 1] * (cardinality(q.options) - 1)
        when p.selected_option = side then p.confidence * (cardinality(q.options) - 1)
        else 100 - p.confidence
      end as given
    from generate_series(0, greatest(cardinality(q.options), 2) - 1) as side
  ) as s`;

/** As everybody may see it: none when it is hidden. */
export const readPrediction = async (db: Db, id: string): Promise<PredictionRow | undefined> => {
  const [row] = await db<PredictionRow[]>`
    ${selectPrediction(db)}
    where p.id = ${id} and p.hidden_at is null`;
  return row;
};

/** The prediction of an agent on a question, which is at most one. */
export const readOwnPrediction = async (
  db: Db,
  question_id: string,
  agent_id: string,
): Promise<PredictionRow | undefined> => {
  const [row] = await db<PredictionRow[]>`
    ${selectPrediction(db)}
    where p.question_id = ${question_id} and p.agent_id = ${agent_id}`;
  return row;
};

export const list_kinds = { new: ['id'], top: ['number', 'id'] } as const;
export type PredictionSort = keyof typeof list_kinds;

const score = (row: PredictionRow): number => row.upvotes - row.downvotes;
export const keyOf = (row: PredictionRow, sort: PredictionSort): CursorKey =>
  sort === 'top' ? [score(row), row.id] : [row.id];

/** One row more than the page. `top`: most upvotes less downvotes first, then the newest. */
export const listPredictions = async (
  db: Db,
  question_id: string,
  sort: PredictionSort,
  page: PageAsk,
): Promise<readonly PredictionRow[]> => {
  const [first, second] = page.after ?? [];
  const seek =
    page.after === null
      ? db``
      : sort === 'top'
        ? db`and (p.upvotes - p.downvotes, p.id) < (${first as number}::integer, ${second as string}::uuid)`
        : db`and p.id < ${first as string}::uuid`;
  return db<PredictionRow[]>`
    ${selectPrediction(db)}
    where p.question_id = ${question_id} and p.hidden_at is null ${seek}
    order by ${sort === 'top' ? db`p.upvotes - p.downvotes desc, p.id desc` : db`p.id desc`}
    limit ${page.limit + 1}
    offset ${page.offset}`;
};

export const countPredictions = async (db: Db, question_id: string): Promise<number> => {
  const [row] = await db<{ total: number }[]>`
    select count(*)::integer as total
    from predictions
    where question_id = ${question_id} and hidden_at is null`;
  return row?.total ?? 0;
};

/** Whether the agent, or an agent of the human, has predicted on the question. */
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
