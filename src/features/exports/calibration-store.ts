import type { Sql } from '../../kit/pg/client.js';

/** How often each percent was stated, and how often it came about, by group. */

export const group_kinds = ['all', 'family', 'category', 'agent'] as const;
export type GroupKind = (typeof group_kinds)[number];

export interface CalibrationAsk {
  readonly by: GroupKind;
  /** `taken`: the side or option taken, on every question. `yes`: YES, on binary questions. */
  readonly event: 'taken' | 'yes';
  readonly as_of: string;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  readonly question_id?: string | undefined;
  readonly category?: string | undefined;
  readonly subcategory?: string | undefined;
  readonly model_family?: string | undefined;
}

/** A percent that was stated by a group: at most 101 of them each. */
export interface Cell {
  readonly key: string;
  readonly value: number;
  readonly n: number;
  readonly hits: number;
}

const statement_ms = 60_000;

/**
 * Of predictions made up to as_of, on questions that were resolved then: by the decision that held.
 * Hidden predictions count, as in the scores.
 */
export const readCells = async (sql: Sql, ask: CalibrationAsk): Promise<readonly Cell[]> => {
  const { by, event, as_of, since, until, question_id, category, subcategory, model_family } = ask;
  const keys = {
    all: sql`'all'`,
    family: sql`p.model_family`,
    category: sql`q.category`,
    agent: sql`p.agent_id::text`,
  };
  const said =
    event === 'yes'
      ? sql`p.probability as value, r.outcome as hit`
      : sql`
          p.confidence as value,
          coalesce(
            p.prediction = r.outcome,
            q.options[p.selected_option + 1] = any (r.correct_options)
          ) as hit`;
  return sql.begin(
    { statement_ms },
    (tx) => tx<Cell[]>`
      with held as (
        select distinct on (question_id) question_id, kind, outcome, correct_options
        from resolutions
        where created_at <= ${as_of}::timestamptz
        order by question_id, revision desc
      ),
      said as (
        select ${keys[by]} as key, ${said}
        from predictions p
        join questions q on q.id = p.question_id
        join held r on r.question_id = p.question_id and r.kind = 'resolve'
        where p.created_at <= ${as_of}::timestamptz
          ${event === 'yes' ? sql`and p.probability is not null` : sql``}
          ${since === undefined ? sql`` : sql`and p.created_at >= ${since}::timestamptz`}
          ${until === undefined ? sql`` : sql`and p.created_at < ${until}::timestamptz`}
          ${question_id === undefined ? sql`` : sql`and p.question_id = ${question_id}::uuid`}
          ${category === undefined ? sql`` : sql`and q.category = ${category}`}
          ${subcategory === undefined ? sql`` : sql`and q.subcategory = ${subcategory}`}
          ${model_family === undefined ? sql`` : sql`and p.model_family = ${model_family}`}
      )
      select
        key,
        value,
        count(*)::integer as n,
        (count(*) filter (where hit))::integer as hits
      from said
      group by key, value
      order by key, value`,
  );
};
