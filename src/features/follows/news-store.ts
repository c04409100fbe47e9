import type { Db, Sql, Tx } from '../../db/client.js';
import { firstRow } from '../../db/rows.js';
import type { LiveConsensus } from '../consensus/index.js';
import { type LogEntry, timeOf } from '../events/log-entry.js';
import { type NewItem, tell } from '../notifications/index.js';
import { usual_move_points } from '../notifications/schema.js';
import { figuresOf } from './rules.js';

/** Queries that bring news to followers. */

/** Events that are news for the followers of their question, or of a search that matches it. */
export const news_events = [
  'question.created',
  'question.closing_soon',
  'question.resolved',
  'question.voided',
] as const;

/** Queues events that somebody waits for. */
export const queueNews = async (tx: Tx, entries: readonly LogEntry[]): Promise<void> => {
  const rows = entries.map((entry) => {
    const { offset, event, question_id } = entry;
    return { offset, event, question_id, at: timeOf(entry) };
  });
  await tx`
    insert into news_queue ("offset", event, question_id, at)
    select n."offset", n.event, n.question_id, n.at
    from json_to_recordset(${JSON.stringify(rows)}::text::json) as n (
      "offset" bigint, event text, question_id uuid, at timestamptz
    )
    where n.event = 'question.created' and exists (select from followed_searches)
      or exists (
        select from follows where kind = 'question' and subject = n.question_id::text
      )
    on conflict do nothing`;
};

export interface QueuedEvent {
  readonly offset: number;
  readonly event: (typeof news_events)[number];
  readonly question_id: string;
  readonly at: Date;
}

/** Lists the oldest queued events. */
export const listQueued = (db: Db, most: number) => db<QueuedEvent[]>`
  select "offset", event, question_id, at from news_queue order by "offset" limit ${most}`;

/** Takes a queued event. Returns false if another timer has it. */
export const takeQueued = async (tx: Tx, offset: number): Promise<boolean> => {
  const rows = await tx`
    delete from news_queue
    where "offset" = (
      select "offset" from news_queue where "offset" = ${offset} for update skip locked
    )`;
  return rows.count === 1;
};

export const tellFollowersOfQuestion = (tx: Tx, item: NewItem & { readonly question_id: string }) =>
  tell(
    tx,
    item,
    tx`
      select follower_id as reader_id, '{}'::jsonb as details
      from follows
      where kind = 'question' and subject = ${item.question_id}`,
  );

/** Tells the followers of each search that a question matches. */
export const tellFollowersOfSearches = (tx: Tx, item: NewItem & { readonly question_id: string }) =>
  tell(
    tx,
    item,
    tx`
      select f.follower_id as reader_id, jsonb_build_object(
        'searches', to_jsonb((array_agg(f.subject order by f.subject))[1:5])
      ) as details
      from questions q
      join question_words w on w.question_id = q.id
      join followed_searches s
        on (s.query is null or w.words @@ s.query)
        and (s.category is null or s.category = q.category)
        and (s.subcategory is null or s.subcategory = q.subcategory)
        and (s.tag is null or s.tag = any (q.tags))
        and (s.question_type is null or s.question_type = q.question_type)
      join follows f on f.kind = 'search' and f.subject = s.subject
      where q.id = ${item.question_id} and q.status <> 'draft'
      group by f.follower_id`,
  );

interface RangeRow {
  readonly id: string;
  readonly range_min: number | null;
  readonly range_max: number | null;
}

/** Computes the figures of questions' headlines now. Skips questions without a forecast. */
export const readFigures = async (
  sql: Sql,
  consensus: LiveConsensus,
  ids: readonly string[],
): Promise<readonly { readonly question_id: string; readonly figures: readonly number[] }[]> => {
  const [ranges, found] = await Promise.all([
    sql<RangeRow[]>`
      select id, range_min, range_max from questions where id = any (${ids as string[]}::uuid[])`,
    consensus.findAll(ids, null),
  ]);
  return found.flatMap((one) => {
    const range = ranges.find(({ id }) => id === one.question_id);
    const [min, max] = [range?.range_min ?? null, range?.range_max ?? null];
    const figures = figuresOf({
      ...one,
      range: min === null || max === null ? null : { min, max },
    });
    return figures === null ? [] : [{ question_id: one.question_id, figures }];
  });
};

/** Lists followed questions that got forecasts since their headline was compared. */
export const listMoving = (db: Db, most: number) => db<{ question_id: string; upto: number }[]>`
  select f.question_id, c.prediction_offset as upto
  from followed_questions f
  join question_counts c on c.question_id = f.question_id
  where c.prediction_offset > f.checked_offset
  order by f.question_id
  limit ${most}`;

/** Notes the comparison. Returns false if another timer was faster. */
export const markChecked = async (tx: Tx, question_id: string, upto: number): Promise<boolean> => {
  const rows = await tx`
    update followed_questions
    set checked_offset = ${upto}
    where question_id = ${question_id} and checked_offset < ${upto}`;
  return rows.count === 1;
};

/** Ends the comparison of a question that takes no more forecasts. */
export const endComparison = async (tx: Tx, question_id: string): Promise<void> => {
  await tx`delete from followed_questions where question_id = ${question_id}`;
};

/** Deletes a question from the followed ones if its last follower is gone. */
export const dropUnfollowed = async (tx: Tx, question_id: string): Promise<void> => {
  await tx`
    delete from followed_questions
    where question_id = ${question_id}
      and not exists (
        select from follows where kind = 'question' and subject = ${question_id}
      )`;
};

/** The follows whose followers last heard of a headline that differs by enough points, or of none. */
const followsOf = (db: Db, question_id: string, figures: readonly number[]) => db`
  select f.follower_id, f.heard
  from follows f
  left join mail_settings s on s.human_id = f.human_id
  where f.kind = 'question'
    and f.subject = ${question_id}
    and (
      f.heard is null
      or exists (
        select
        from unnest(f.heard, ${figures as number[]}::double precision[]) as x (was, is_now)
        where abs(was - is_now) >= coalesce(f.move_points, s.move_points, ${usual_move_points})
      )
    )`;

/** Tells each follower for whom the headline moved far enough since the follower last heard of it. */
export const tellMove = async (
  tx: Tx,
  item: NewItem & { readonly question_id: string },
  figures: readonly number[],
): Promise<void> => {
  const { question_id } = item;
  const moved = followsOf(tx, question_id, figures);
  await tell(
    tx,
    item,
    tx`
      select m.follower_id as reader_id, jsonb_build_object('before', to_jsonb(m.heard)) as details
      from (${moved}) as m
      where m.heard is not null`,
  );
  await tx`
    update follows f
    set heard = ${figures as number[]}::double precision[]
    from (${moved}) as m
    where f.follower_id = m.follower_id and f.kind = 'question' and f.subject = ${question_id}`;
};

interface Cursor {
  readonly agents_at: Date;
  /** The day whose end the followers of families are told next, as `YYYY-MM-DD`. */
  readonly day: string;
}

const cursorColumns = (db: Db) => db`agents_at, to_char(day, 'YYYY-MM-DD') as day`;

export const readNewsCursor = (db: Db) =>
  firstRow(db<Cursor[]>`select ${cursorColumns(db)} from news_cursor`);

/** Locks the cursor, so that one timer at a time works. Undefined if another one does. */
export const lockNewsCursor = (tx: Tx) =>
  firstRow(tx<Cursor[]>`select ${cursorColumns(tx)} from news_cursor for update skip locked`);

export const moveNewsCursor = async (tx: Tx, { agents_at, day }: Cursor): Promise<void> => {
  await tx`update news_cursor set agents_at = ${agents_at}, day = ${day}::date`;
};

/** The forecasts of an agent in a day are counted up to this number. */
export const max_counted = 1_000;

/**
 * Followed agents that forecast after `since`: how many forecasts each made today, and on which
 * question the last one was. Hidden forecasts do not count.
 */
export const listForecasters = (
  db: Db,
  { since, today }: { readonly since: Date; readonly today: Date },
) => db<{ agent_id: string; predictions: number; question_id: string }[]>`
  select f.agent_id, made.predictions, last.question_id
  from (select distinct subject::uuid as agent_id from follows where kind = 'agent') f
  cross join lateral (
    select question_id, coalesce(revised_at, created_at) as at
    from predictions
    where agent_id = f.agent_id and hidden_at is null
    order by coalesce(revised_at, created_at) desc, id desc
    limit 1
  ) last
  cross join lateral (
    select count(*)::int as predictions
    from (
      select
      from predictions
      where agent_id = f.agent_id
        and coalesce(revised_at, created_at) >= ${today}
        and hidden_at is null
      limit ${db.unsafe(String(max_counted))}
    ) counted
  ) made
  where last.at > ${since} and last.at >= ${today}
  order by f.agent_id`;

/** Tells the followers of an agent, unless they already know of this number of forecasts. */
export const tellFollowersOfAgent = (
  tx: Tx,
  item: NewItem & { readonly agent_id: string },
  predictions: number,
) =>
  tell(
    tx,
    item,
    tx`
      select f.follower_id as reader_id, jsonb_build_object('predictions', ${predictions}::integer) as details
      from follows f
      where f.kind = 'agent'
        and f.subject = ${item.agent_id}
        and not exists (
          select
          from inbox_items i
          where i.reader_id = f.follower_id
            and i.cause = ${item.cause}
            and (i.details ->> 'predictions')::integer >= ${predictions}
        )`,
  );

export const tellFollowersOfFamily = (tx: Tx, item: NewItem, family: string) =>
  tell(
    tx,
    item,
    tx`
      select follower_id as reader_id, '{}'::jsonb as details
      from follows
      where kind = 'family' and subject = ${family}`,
  );

export const hasFamilyFollowers = async (db: Db): Promise<boolean> =>
  (await db`select from follows where kind = 'family' limit 1`).length > 0;
