import type { Db, Tx } from '../../db/client.js';
import type { PageRequest } from '../../http/page.js';
import type { NewPrediction, PredictionRow } from './columns.js';
import type { ForecastColumns } from './distribution.js';
import { selectPrediction } from './store.js';

/** Stores revisions, and reads all forecasts of a prediction. */

export interface LockedPrediction {
  readonly row: PredictionRow;
  readonly is_open: boolean;
  /** True for an imported question that is not decided yet. */
  readonly takes_imports: boolean;
}

/**
 * Locks the questions, so that they cannot close before the commit. Then locks the predictions.
 * Both follow the order of their ids. Missing predictions are left out.
 */
export const lockPredictions = async (
  tx: Tx,
  ids: readonly string[],
): Promise<LockedPrediction[]> => {
  const questions = tx<(Omit<LockedPrediction, 'row'> & { id: string })[]>`
    with locked as materialized (
      select id, status, opens_at, closes_at, source
      from questions
      where id in (select question_id from predictions where id = any (${ids as string[]}::uuid[]))
      order by id
      for share
    )
    -- Not now(), which is the time before the wait for the locks.
    select
      id,
      status = 'open' and opens_at <= clock_timestamp() and closes_at > clock_timestamp()
        as is_open,
      status in ('open', 'closed') and source is not null as takes_imports
    from locked`.execute();
  const predictions = tx<PredictionRow[]>`
    ${selectPrediction(tx)}
    where p.id = any (${ids as string[]}::uuid[])
    order by p.id
    for no key update of p`.execute();
  const by_id = new Map((await questions).map(({ id, ...question }) => [id, question]));
  return (await predictions).flatMap((row) => {
    const question = by_id.get(row.question_id);
    return question === undefined ? [] : { row, ...question };
  });
};

/** The columns that a revision replaces. */
export interface Revision
  extends ForecastColumns,
    Pick<NewPrediction, 'question_id' | 'agent_id' | 'revision' | 'revision_reason'> {
  readonly revised_at: Date;
  readonly revision_event_id: string;
}

const stated = 'prediction, probability, confidence, selected_option, probabilities, cdf';

/** Replaces forecasts, and stores the earlier ones. Sends the statement without waiting. */
export const revise = (tx: Tx, revisions: readonly Revision[]): Promise<unknown> => {
  const prefixed = (name: string) => stated.replace(/\w+/g, `${name}.$&`);
  return tx`
    with d as (
      select *
      from json_to_recordset(${JSON.stringify(revisions)}::text::json) as d (
        question_id uuid, agent_id uuid, revision smallint, prediction boolean,
        probability smallint, confidence smallint, selected_option smallint,
        probabilities smallint[], cdf double precision[], revised_at timestamptz, revision_reason text,
        revision_event_id uuid
      )
    ),
    kept as (
      insert into earlier_forecasts (
        question_id, agent_id, revision, ${tx.unsafe(stated)}, reason, event_id, created_at
      )
      select
        p.question_id, p.agent_id, p.revision, ${tx.unsafe(prefixed('p'))}, p.revision_reason,
        coalesce(p.revision_event_id, p.event_id), coalesce(p.revised_at, p.created_at)
      from d
      join predictions p on p.question_id = d.question_id and p.agent_id = d.agent_id
    )
    update predictions p
    set
      (${tx.unsafe(stated)}) = row(${tx.unsafe(prefixed('d'))}),
      revision = d.revision, revised_at = d.revised_at, revision_reason = d.revision_reason,
      revision_event_id = d.revision_event_id
    from d
    where p.question_id = d.question_id and p.agent_id = d.agent_id`.execute();
};

export interface ForecastRow extends ForecastColumns {
  readonly id: string;
  readonly revision: number;
  readonly reason: string | null;
  readonly event_id: string;
  readonly forecast_at: Date;
  /** Null if the forecast is the current one. */
  readonly until: Date | null;
}

/** Returns the question of a prediction, even of a hidden one. */
export const readQuestionOf = async (db: Db, id: string): Promise<string | undefined> => {
  const [row] = await db<{ question_id: string }[]>`
    select question_id from predictions where id = ${id}`;
  return row?.question_id;
};

/** Lists every forecast of a prediction, oldest first. Reads one row more than the page. */
export const listForecasts = (
  db: Db,
  { question_id, agent_id }: Pick<PredictionRow, 'question_id' | 'agent_id'>,
  { after, offset, limit }: PageRequest,
) => db<ForecastRow[]>`
  select *
  from (
    select
      event_id as id, revision, ${db.unsafe(stated)}, reason, event_id, forecast_at,
      lead(forecast_at) over (order by revision) as until
    from forecasts
    where question_id = ${question_id} and agent_id = ${agent_id}
  ) as f
  where ${after === null} or revision > ${(after?.[0] as number) ?? 0}
  order by revision
  offset ${offset}
  limit ${limit + 1}`;

/** Returns the forecast at a time, or now if `at` is null. Undefined before the first forecast. */
export const readForecastAt = async (
  db: Db,
  question_id: string,
  agent_id: string,
  at: Date | null,
): Promise<(ForecastColumns & { readonly forecast_at: Date }) | undefined> => {
  const [row] = await db<(ForecastColumns & { forecast_at: Date })[]>`
    select ${db.unsafe(stated)}, forecast_at
    from forecasts
    where question_id = ${question_id} and agent_id = ${agent_id} 
      and (${at}::timestamptz is null or forecast_at <= ${at})
    order by revision desc
    limit 1`;
  return row;
};
