import type { PageAsk } from '../../kit/page.js';
import type { Db } from '../../kit/pg/client.js';

/**
 * Threads by upvotes. Their order goes along `ranked_upvotes`, which follows `upvotes` in the
 * background, so that a vote writes no index. Threads where the two may differ stand in
 * `unranked_comments`: a list takes them out of the order and puts them where their votes say.
 *
 * A row of `unranked_comments` comes and goes only while its comment is locked. So a comment that
 * has none has equal counts at every commit, and who finds the counts equal adds the row.
 */

/** Where all threads are meant, or those of a question; with a reply, or with and without. */
export interface Which {
  readonly question_id: string | null;
  readonly replied: boolean;
}

const within = (db: Db, { question_id, replied }: Which) => db`
  c.parent_id is null
  and c.hidden_at is null
  ${replied ? db`and c.replies > 0` : db``}
  ${question_id === null ? db`` : db`and c.question_id = ${question_id}`}`;

const unranked = (db: Db, { question_id }: Which) =>
  question_id === null
    ? db`unranked_comments`
    : db`(select * from unranked_comments where question_id = ${question_id})`;

/** For `from`: the rows of `comments` of one page and one more, in no order. */
export const topThreads = (db: Db, which: Which, page: PageAsk) => {
  const [upvotes = null, id = null] = page.after ?? [];
  const below = (count: ReturnType<typeof db>) =>
    page.after === null
      ? db``
      : db`and (${count}, c.id) < (${upvotes as number}::integer, ${id as string}::uuid)`;
  return db`(
    select *
    from (
      (
        select *
        from comments c
        where ${within(db, which)}
          and c.id not in (select u.id from ${unranked(db, which)} u)
          ${below(db`c.ranked_upvotes`)}
        order by c.ranked_upvotes desc, c.id desc
        limit ${page.limit + page.offset + 1}
      )
      union all
      -- Each by its key, however many the table had when the plan was made.
      select c.*
      from ${unranked(db, which)} u
      cross join lateral (
        select *
        from comments c
        where c.question_id = u.question_id and c.id = u.id and ${within(db, which)}
        offset 0
      ) c
      where true ${below(db`c.upvotes`)}
    ) merged
    order by upvotes desc, id desc
    limit ${page.limit + 1}
    offset ${page.offset}
  )`;
};

/**
 * Gives some comments the rank that their upvotes ask for; how many were looked at. A vote under
 * way is waited for, and what it made of the count is what is ranked.
 */
export const rankMoved = async (db: Db, most: number): Promise<number> => {
  const [row] = await db<{ count: number }[]>`
    with moved as materialized (
      select question_id, id from unranked_comments order by question_id, id limit ${most}
    ),
    locked as materialized (
      select c.question_id, c.id, c.upvotes, c.ranked_upvotes
      from comments c
      where c.id = any (array(select id from moved))
      order by c.id
      for no key update
    ),
    ranked as (
      update comments c
      set ranked_upvotes = l.upvotes
      from locked l
      where c.question_id = l.question_id and c.id = l.id and l.upvotes <> l.ranked_upvotes
    ),
    done as (
      delete from unranked_comments u
      using locked l
      where u.question_id = l.question_id and u.id = l.id
    )
    select count(*)::integer as count from moved`;
  return row?.count ?? 0;
};
