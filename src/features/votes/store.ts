import type { Db, Tx } from '../../kit/pg/client.js';

/** Votes in Postgres, and the one statement by which a batch of them is cast. */

export interface Ballot {
  readonly kind: 'prediction' | 'comment';
  readonly subject_id: string;
  readonly agent_id: string;
  /** 1 for an upvote, −1 for a downvote. */
  readonly value: 1 | -1;
  /** True: takes such a vote back, if there is one. */
  readonly withdraw: boolean;
  readonly at: Date;
}

export interface Counted {
  readonly kind: 'counted';
  readonly upvotes: number;
  readonly downvotes: number;
  readonly my_vote: 1 | -1 | null;
}

export type Verdict = Counted | { readonly kind: 'absent' } | { readonly kind: 'same_owner' };

interface VerdictRow {
  readonly subject_id: string;
  readonly agent_id: string;
  readonly present: boolean;
  readonly same_owner: boolean;
  readonly upvotes: number;
  readonly downvotes: number;
  readonly my_vote: 1 | -1 | null;
}

const judge = (row: VerdictRow | undefined): Verdict => {
  if (row === undefined) throw new Error('a vote has no verdict');
  if (!row.present) return { kind: 'absent' };
  if (row.same_owner) return { kind: 'same_owner' };
  const { upvotes, downvotes, my_vote } = row;
  return { kind: 'counted', upvotes, downvotes, my_vote };
};

/**
 * What the votes in `moves` are about, locked in the order in which everybody locks it. New counts
 * follow from the locked ones: the checks of a table are made before it is known whether the row
 * has changed since the statement began.
 */
export const lockMoved = (db: Db) => db`
    locked_predictions as materialized (
      select p.question_id, p.agent_id, p.id, p.upvotes, p.downvotes
      from predictions p
      where p.id = any (array(select subject_id from moves where kind = 'prediction'))
      order by p.id
      for no key update
    ),
    locked_comments as materialized (
      select c.question_id, c.id, c.upvotes,
        c.parent_id is null and c.upvotes = c.ranked_upvotes as is_ranked
      from comments c
      where c.id = any (array(select subject_id from moves where kind = 'comment'))
      order by c.id
      for no key update
    ),
    -- Threads that stand in the order of threads where their votes put them, and soon will not. A
    -- row may still be there from votes that came and went.
    unranked as (
      insert into unranked_comments (question_id, id)
      select question_id, id from locked_comments where is_ranked
      on conflict do nothing
    )`;

/**
 * Casts a batch in one statement; at most one vote of an agent on a subject. Each move of a counter
 * follows from what became of the row of the vote: inserted, turned, deleted or left alone; so a
 * repeat moves nothing, and counters are the sum of the votes at every commit.
 *
 * Agents are locked first, voters and authors alike: linking locks its agent against that, so who
 * belongs to whom cannot change between the check of owners and the commit.
 */
export const castAll = async (tx: Tx, ballots: readonly Ballot[]): Promise<readonly Verdict[]> => {
  const rows = await tx<VerdictRow[]>`
    with d as (
      select *
      from unnest(
        ${ballots.map((b) => b.kind)}::text[],
        ${ballots.map((b) => b.subject_id)}::uuid[],
        ${ballots.map((b) => b.agent_id)}::uuid[],
        ${ballots.map((b) => b.value)}::smallint[],
        ${ballots.map((b) => (b.withdraw ? 't' : 'f'))}::text[],
        ${ballots.map((b) => b.at.toISOString())}::timestamptz[]
      ) as d (kind, subject_id, agent_id, value, withdraw, at)
    ),
    s as materialized (
      select p.id, p.question_id, p.agent_id as author_id, 'prediction' as kind, p.upvotes,
        p.downvotes
      from predictions p
      join questions q on q.id = p.question_id
      where p.id = any (array(select subject_id from d where kind = 'prediction'))
        and p.hidden_at is null
        and q.status <> 'draft'
      union all
      select c.id, c.question_id, c.agent_id, 'comment', c.upvotes, 0
      from comments c
      join questions q on q.id = c.question_id
      where c.id = any (array(select subject_id from d where kind = 'comment'))
        and c.hidden_at is null
        and q.status <> 'draft'
    ),
    a as materialized (
      select id, owner_id
      from agents
      where id = any (array(select agent_id from d union select author_id from s))
      order by id
      for key share
    ),
    judged as materialized (
      select
        d.*, s.question_id, s.author_id, s.upvotes, s.downvotes,
        s.id is not null as present,
        coalesce(s.author_id = d.agent_id or voter.owner_id = author.owner_id, false) as same_owner
      from d
      left join s on s.id = d.subject_id and s.kind = d.kind
      left join a voter on voter.id = d.agent_id
      left join a author on author.id = s.author_id
    ),
    cast_votes as (
      insert into votes as v
        (question_id, subject_id, agent_id, kind, author_id, value, created_at)
      select question_id, subject_id, agent_id, kind, author_id, value, at
      from judged
      where present and not same_owner and withdraw = 'f'
      order by subject_id, agent_id
      on conflict (question_id, subject_id, agent_id) do update
        set value = excluded.value, created_at = excluded.created_at
        where v.value <> excluded.value
      returning v.subject_id, v.agent_id, v.kind, v.author_id, v.value, v.xmax = 0 as is_new
    ),
    withdrawn as (
      delete from votes v
      using judged j
      where v.question_id = j.question_id
        and v.subject_id = j.subject_id
        and v.agent_id = j.agent_id
        and v.value = j.value
        and j.present
        and j.withdraw = 't'
      returning v.subject_id, v.agent_id, v.kind, v.author_id, v.value
    ),
    moves as materialized (
      select
        subject_id, kind, author_id,
        sum(up)::integer as up,
        sum(down)::integer as down
      from (
        select
          subject_id, kind, author_id,
          case when value = 1 then 1 when is_new then 0 else -1 end as up,
          case when value = -1 then 1 when is_new then 0 else -1 end as down
        from cast_votes
        union all
        select
          subject_id, kind, author_id,
          case when value = 1 then -1 else 0 end,
          case when value = -1 then -1 else 0 end
        from withdrawn
      ) each
      group by subject_id, kind, author_id
    ),
    ${lockMoved(tx)},
    moved_predictions as (
      update predictions p
      set upvotes = l.upvotes + m.up, downvotes = l.downvotes + m.down
      from locked_predictions l
      join moves m on m.subject_id = l.id and m.kind = 'prediction'
      where p.question_id = l.question_id and p.agent_id = l.agent_id
      returning p.id, p.upvotes, p.downvotes
    ),
    moved_comments as (
      update comments c
      set upvotes = l.upvotes + m.up
      from locked_comments l
      join moves m on m.subject_id = l.id and m.kind = 'comment'
      where c.question_id = l.question_id and c.id = l.id
      returning c.id, c.upvotes, 0 as downvotes
    ),
    marked as (
      insert into debater_changes (agent_id, id)
      select author_id, gen_random_uuid()
      from (select distinct author_id from moves where kind = 'comment') authors
    ),
    moved as (
      select * from moved_predictions
      union all
      select * from moved_comments
    )
    select
      j.subject_id, j.agent_id, j.present, j.same_owner,
      coalesce(moved.upvotes, j.upvotes) as upvotes,
      coalesce(moved.downvotes, j.downvotes) as downvotes,
      case when j.withdraw = 'f' then j.value else v.value end as my_vote
    from judged j
    left join moved on moved.id = j.subject_id
    -- Only where a vote is taken back, and each by itself: a join would read all votes, by a plan
    -- that was made while they were few and is kept.
    left join lateral (
      select v.value
      from votes v
      where j.withdraw = 't'
        and v.question_id = j.question_id
        and v.subject_id = j.subject_id
        and v.agent_id = j.agent_id
        and v.value <> j.value
      limit 1
    ) v on true`;
  const by_ballot = new Map(rows.map((row) => [`${row.subject_id} ${row.agent_id}`, row]));
  return ballots.map(({ subject_id, agent_id }) =>
    judge(by_ballot.get(`${subject_id} ${agent_id}`)),
  );
};
