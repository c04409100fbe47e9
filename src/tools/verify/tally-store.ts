import { readPages, type Sql, type Tx } from '../../kit/pg/client.js';

/** What the live tallies must hold, read from the record page by page. */

/** Ids of all questions, in pages. */
export const readQuestionIds = async (sql: Sql, after: string, most: number) => {
  const rows = await sql<{ id: string }[]>`
    select id
    from questions
    where id > ${after}
    order by id
    limit ${most}`;
  return rows.map(({ id }) => id);
};

export interface StandingTally {
  readonly question_id: string;
  /** Every event up to here is in the tally, and none after it. */
  readonly offset: number;
}

export interface Expected {
  readonly question_id: string;
  readonly options: number;
  readonly family: string;
  readonly yes: boolean | null;
  readonly option: number | null;
  readonly value: number;
  readonly probabilities: readonly number[] | null;
  /** How many predictions on the question the owner of each has. */
  readonly size: number;
  readonly count: number;
}

/**
 * What is stated how often, by question, family and size of owner, as of the offset at which the
 * tally of the question stands: what the log has by now, without what it got after that offset.
 */
export const readStatedValues = (
  sql: Sql,
  tallies: readonly StandingTally[],
): PromiseLike<readonly Expected[]> => sql<Expected[]>`
  with asked as (
    select *
    from unnest(
      ${tallies.map(({ question_id }) => question_id)}::uuid[],
      ${tallies.map(({ offset }) => offset)}::bigint[]
    ) as asked (question_id, "offset")
  ),
  later as (
    select e.id
    from events e
    join asked on asked.question_id = e.question_id and e."offset" > asked."offset"
    where e."offset" > ${Math.min(...tallies.map(({ offset }) => offset))}
      and e.event = 'prediction.placed'
  ),
  placed as (
    select
      p.*,
      count(*) over (partition by p.question_id, coalesce(p.owner_id, p.agent_id)) as size
    from predictions p
    where p.question_id = any (array(select question_id from asked))
      and not exists (select from outbox o where o.id = p.event_id)
      and not exists (select from later where later.id = p.event_id)
  )
  select
    p.question_id,
    cardinality(q.options) as options,
    p.model_family as family,
    p.prediction as yes,
    p.selected_option as option,
    coalesce(p.probability, p.confidence) as value,
    p.probabilities,
    p.size,
    count(*)::integer as count
  from placed p
  join questions q on q.id = p.question_id
  group by 1, 2, 3, 4, 5, 6, 7, 8`;

export interface LastEvent {
  readonly question_id: string;
  readonly last_offset: number;
}

/** The last prediction of each question in the log up to an offset, in pages of bounded size. */
export const streamLastPredictions = (
  tx: Tx,
  upto: number,
  most: number,
): AsyncIterable<readonly LastEvent[]> =>
  readPages(
    tx,
    tx<LastEvent[]>`
    select question_id, max("offset") as last_offset
    from events
    where event = 'prediction.placed' and question_id is not null and "offset" <= ${upto}
    group by question_id`,
    most,
  );

/** When the oldest event after an offset was handed over; null when there is none. */
export const readOldestAfter = async (sql: Sql, offset: number) => {
  const [row] = await sql<{ age_ms: number }[]>`
    select (extract(epoch from clock_timestamp() - recorded_at) * 1000)::integer as age_ms
    from events
    where "offset" > ${offset}
    order by "offset"
    limit 1`;
  return row?.age_ms ?? null;
};
