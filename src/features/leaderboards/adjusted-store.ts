import { type Db, readPages, type Sql } from '../../db/client.js';
import { limitToPage } from '../../db/rows.js';
import type { BoardClass, Detail } from './rules.js';
import type { Coverage } from './schema.js';
import { type BoardPage, type BoardQuery, type BoardRow, isRanked, kindOf } from './store.js';

/** Boards that are adjusted for difficulty, in Postgres: their scores, rows and pages. */

/** A score of a forecaster. `name` is null for agents. */
export interface ScoreRow {
  readonly id: string;
  readonly question_id: string;
  readonly brier: number;
  readonly name: string | null;
  readonly reference: string | null;
}

const rows_of_a_page = 10_000;
const how = { mode: 'isolation level repeatable read read only', statement_ms: 60_000 };

/** Calls `take` with each score of a class and of the references, ordered by question. */
export const readScores = (sql: Sql, of: BoardClass, take: (row: ScoreRow) => void) =>
  sql.begin(how, async (tx) => {
    const rows = tx<ScoreRow[]>`
      select
        forecaster_id as id, question_id, brier, s.name,
        case when kind not in ('family', 'model') then kind end as reference
      from forecaster_scores s
      left join agents a on a.id = forecaster_id
      where brier is not null and
        case
          when kind is null then ${isRanked(tx)} and ${of} in (${kindOf(tx)}, 'all')
          else kind in (${of}, 'crowd', 'even') or (kind = 'market' and ${of} <> 'imported')
        end
      order by question_id, forecaster_id`;
    for await (const page of readPages(tx, rows, rows_of_a_page)) page.forEach(take);
  });

const rows_of_a_write = 5_000;

/** Replaces a board. */
export const putAdjusted = (
  sql: Sql,
  of: BoardClass,
  { rows, coverage }: { rows: readonly BoardRow[]; coverage: Coverage },
): Promise<void> =>
  sql.begin(async (tx) => {
    await tx`delete from adjusted_scores where class = ${of}`;
    for (let from = 0; from < rows.length; from += rows_of_a_write) {
      const some = rows.slice(from, from + rows_of_a_write);
      await tx`
        insert into adjusted_scores (class, key, id, detail, rank)
        select ${of}, key, agent_id, detail, rank
        from json_to_recordset(${JSON.stringify(some)}::text::json) as d (
          key double precision, agent_id uuid, detail json, rank integer
        )`;
    }
    await tx`
      insert into adjusted_boards (class, total, coverage)
      values (${of}, ${rows.length}, ${JSON.stringify(coverage)}::text::json)
      on conflict (class) do update set total = excluded.total, coverage = excluded.coverage`;
  });

/** Reads a page. Skips agents that were suspended or unlinked after the board was made. */
export const readAdjusted = async (db: Db, query: BoardQuery): Promise<BoardPage> => {
  const { of = 'agent', limit, offset, after } = query;
  const [boards, rows] = await Promise.all([
    db<{ total: number; coverage: Coverage }[]>`
      select total, coverage from adjusted_boards where class = ${of}`,
    db<(BoardRow & { detail: Detail })[]>`
      select s.id as agent_id, s.key, s.rank, s.detail
      from adjusted_scores s
      left join agents a on a.id = s.id
      where s.class = ${of}
        and (${after === null} or (s.key, s.id) >
          (${after?.key ?? null}::float8, ${after?.agent_id ?? null}::uuid))
        and (s.detail ->> 'name' is not null or ${isRanked(db)})
      order by s.key, s.id
      ${limitToPage(db, { limit, offset })}`,
  ]);
  const [board] = boards;
  return { total: board?.total ?? 0, rows: rows.slice(0, limit + 1), coverage: board?.coverage };
};

/** Reads the values of rows on the board of a class, by id. */
export const readAdjustedValues = async (
  db: Db,
  of: BoardClass,
  rows: readonly BoardRow[],
): Promise<ReadonlyMap<string, number>> => {
  const ids = rows.map(({ agent_id }) => agent_id);
  const found = await db<{ id: string; value: number }[]>`
    select id, (detail ->> 'value')::float8 as value
    from adjusted_scores
    where class = ${of} and id = any (${ids}::uuid[])`;
  return new Map(found.map(({ id, value }) => [id, value]));
};

/**
 * Claims a run. Returns false if the boards are not due or another process makes them. They are due
 * an hour after the last run started, or a quarter of an hour after a run that did not finish.
 */
export const claimRun = async (db: Db, at: Date): Promise<boolean> => {
  const rows = await db`
    update adjusted_runs
    set begun_at = ${at}
    where exists (select from scores)
      and begun_at <= ${at}::timestamptz - case
        when exists (
          select from adjusted_boards
          where class = 'model' and (coverage ->> 'made_at')::timestamptz >= begun_at
        ) then interval '1 hour'
        else interval '15 minutes'
      end`;
  return rows.count === 1;
};
