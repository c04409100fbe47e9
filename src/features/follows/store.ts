import type { Db, Tx } from '../../db/client.js';
import { firstRow, newestFirst, readTotal } from '../../db/rows.js';
import { searchQuery } from '../../db/words.js';
import type { PageRequest } from '../../http/page.js';
import { firstIdAt, makeId } from '../../kit/ids.js';
import { usual_move_points } from '../notifications/schema.js';
import type { Search } from './rules.js';
import { type FollowKind, max_follows } from './schema.js';

/** Follows in Postgres. */

/** An agent, or a person. */
export type Follower = { readonly kind: 'agent' | 'human'; readonly id: string };

/** The subject of a follow: an id, a family, or a search in its normal form. */
export interface Subject {
  readonly kind: FollowKind;
  readonly subject: string;
}

export interface FollowRow extends Subject {
  readonly id: string;
  /** The question or the name of the agent; null for other kinds. */
  readonly title: string | null;
  readonly move_points: number;
  readonly created_at: Date;
}

interface Wish extends Subject {
  /** The figures of the question's headline now. Null without forecasts and for other kinds. */
  readonly heard: readonly number[] | null;
  /** Null keeps the number that is stored. */
  readonly move_points: number | null;
  readonly at: Date;
}

const columns = (db: Db) => db`
  f.id, f.kind, f.subject, f.created_at,
  coalesce(
    f.move_points,
    (select move_points from mail_settings where human_id = f.human_id),
    ${usual_move_points}
  ) as move_points,
  case f.kind
    when 'question' then (select question from questions where id = f.subject::uuid)
    when 'agent' then (select name from agents where id = f.subject::uuid)
  end as title`;

const follower_lock = 7_366_146;

/** Follows something, or changes `move_points`. Returns null if the follower follows too much. */
export const putFollow = async (tx: Tx, { kind: of, id }: Follower, wish: Wish) => {
  const { kind, subject, heard, move_points, at } = wish;
  await tx`select pg_advisory_xact_lock(${follower_lock}, hashtext(${id}))`;
  // Locks the row that the timer locks too, so that it does not delete it meanwhile.
  if (kind === 'question') {
    await tx`
      insert into followed_questions as q (question_id, checked_offset)
      select ${subject}::uuid, coalesce(
        (select prediction_offset from question_counts where question_id = ${subject}::uuid), 0
      )
      on conflict (question_id) do update set checked_offset = q.checked_offset`;
  }
  const row = await firstRow(tx<(FollowRow & { readonly is_new: boolean })[]>`
    insert into follows as f
      (id, agent_id, human_id, kind, subject, heard, move_points, created_at)
    select
      ${makeId()}, ${of === 'agent' ? id : null}::uuid, ${of === 'human' ? id : null}::uuid,
      ${kind}, ${subject}, ${heard as number[] | null}::double precision[],
      ${move_points}::smallint,
      ${at}
    where (
      select count(*)
      from follows
      where follower_id = ${id} and (kind, subject) <> (${kind}, ${subject})
    ) < ${max_follows}
    on conflict (follower_id, kind, subject) do update
      set move_points = coalesce(${move_points}::smallint, f.move_points)
    returning ${columns(tx)}, xmax = 0 as is_new`);
  return row ?? null;
};

/** Stores the filters of a followed search, and locks them until the transaction ends. */
export const putSearch = async (tx: Tx, subject: string, search: Search): Promise<void> => {
  const { q, category = null, subcategory = null, tag = null, question_type = null } = search;
  await tx`
    insert into followed_searches (subject, query, category, subcategory, tag, question_type)
    values (
      ${subject}, ${q === undefined ? tx`null` : searchQuery(tx, q, { is_prefix: false })},
      ${category}, ${subcategory}, ${tag}, ${question_type}
    )
    on conflict (subject) do update set query = excluded.query`;
};

/**
 * Ends a follow. If it was the last one of a search, deletes the filters too. They are locked
 * first, so that the next statement sees everybody who follows the search by then.
 */
export const deleteFollow = async (tx: Tx, { id }: Follower, { kind, subject }: Subject) => {
  await tx`
    delete from follows
    where follower_id = ${id} and kind = ${kind} and subject = ${subject}`;
  if (kind !== 'search') return;
  await tx`select from followed_searches where subject = ${subject} for update`;
  await tx`
    delete from followed_searches
    where subject = ${subject}
      and not exists (select from follows where kind = 'search' and subject = ${subject})`;
};

/** Deletes the filters of searches whose followers deleted their accounts. */
export const dropOrphanSearches = async (tx: Tx): Promise<void> => {
  const orphans = tx`
    not exists (select from follows f where f.kind = 'search' and f.subject = s.subject)`;
  await tx`select from followed_searches s where ${orphans} for update skip locked`;
  await tx`delete from followed_searches s where ${orphans}`;
};

const filterOf = (db: Db, kind: FollowKind | undefined) =>
  kind === undefined ? db`` : db`and f.kind = ${kind}`;

export const findFollow = (db: Db, { id }: Follower, { kind, subject }: Subject) =>
  firstRow(db<FollowRow[]>`
    select ${columns(db)}
    from follows f
    where f.follower_id = ${id} and f.kind = ${kind} and f.subject = ${subject}`);

/** Lists follows, newest first, and at least one row more than the page. */
export const listFollows = (
  db: Db,
  { id }: Follower,
  kind: FollowKind | undefined,
  page: PageRequest,
) => db<FollowRow[]>`
  select ${columns(db)}
  from follows f
  where f.follower_id = ${id} ${filterOf(db, kind)} ${newestFirst(db, 'f.id', page)}`;

export const countFollows = (db: Db, { id }: Follower, kind: FollowKind | undefined) =>
  readTotal(db<{ total: number }[]>`
    select count(*)::int as total
    from follows f
    where f.follower_id = ${id} ${filterOf(db, kind)}`);

/** Counts the forecasts and comments on questions since a time. Hidden ones do not count. */
export const countSince = (db: Db, ids: readonly string[], since: Date) => db<
  { question_id: string; predictions: number; comments: number }[]
>`
  select
    i.id as question_id,
    (
      select count(*)::int
      from predictions p
      where p.question_id = i.id
        and coalesce(p.revised_at, p.created_at) > ${since}
        and p.hidden_at is null
    ) as predictions,
    (
      select count(*)::int
      from comments c
      where c.question_id = i.id
        and c.id > ${firstIdAt(since.getTime())}::uuid
        and c.hidden_at is null
    ) as comments
  from unnest(${ids as string[]}::uuid[]) as i (id)`;

/**
 * Notes a look of a person at the followed things. A look within `gap_ms` of the last one belongs to
 * the same visit. Returns when the visit before this one began.
 */
export const noteVisit = async (
  db: Db,
  human_id: string,
  { at, gap_ms }: { readonly at: Date; readonly gap_ms: number },
): Promise<Date | null> => {
  const ended = new Date(at.getTime() - gap_ms);
  const row = await firstRow(db<{ before_at: Date | null }[]>`
    insert into follow_visits as v (human_id, visited_at)
    values (${human_id}, ${at})
    on conflict (human_id) do update
      set
        before_at = case when v.visited_at < ${ended} then v.visited_at else v.before_at end,
        visited_at = case when v.visited_at < ${ended} then ${at} else v.visited_at end
    returning before_at`);
  return row?.before_at ?? null;
};
