import type { Sql, Tx } from '../../db/client.js';
import { createGroupCommit, type GroupCommit } from '../../db/group-commit.js';

/**
 * Votes, and the counters of what they are about: a counter is the sum of its votes at every
 * commit. A batch
 *
 *   begins · locks the agents, voters and authors alike · locks what is voted on · reads it with
 *   the voters' own votes · judges the ballots in order · writes votes and counters · commits
 *
 * Linking an agent locks it against that, so that who belongs to whom cannot change between the
 * check of owners and the commit. Everything is locked in the order of ids.
 */

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

/** The counters, and the vote that the agent has now. */
type Counted = { readonly upvotes: number; downvotes: number; value: 1 | -1 | null };

export type Verdict = Counted | 'absent' | 'same_owner';

const lockAgents = (tx: Tx, ballots: readonly Ballot[], ids: readonly string[]) => tx`
  select id
  from agents
  where id = any (array(
    select unnest(${ballots.map((ballot) => ballot.agent_id)}::uuid[])
    union all
    select agent_id from predictions where id = any (${ids as string[]}::uuid[])
    union all
    select agent_id from comments where id = any (${ids as string[]}::uuid[])
  ))
  order by id
  for key share`;

/** Two statements, sent at once. */
const lockSubjects = (tx: Tx, ids: readonly string[]) =>
  ['predictions', 'comments'].map((table) =>
    tx`
      select id
      from ${tx(table)}
      where id = any (${ids as string[]}::uuid[])
      order by id
      for no key update`.execute(),
  );

/** What a ballot is about, under the locks; nulls where it is not there. */
interface Subject {
  readonly question_id: string | null;
  readonly author_id: string;
  readonly upvotes: number;
  readonly downvotes: number;
  readonly same_owner: boolean;
  readonly own: 1 | -1 | null;
}

const readSubjects = (tx: Tx, ballots: readonly Ballot[]) => tx<Subject[]>`
  select
    s.question_id, s.agent_id as author_id, s.upvotes, s.downvotes,
    coalesce(s.agent_id = d.agent_id or voter.owner_id = author.owner_id, false) as same_owner,
    (
      select v.value
      from votes v
      where v.question_id = s.question_id and v.subject_id = s.id and v.agent_id = d.agent_id
    ) as own
  from unnest(
    ${ballots.map((ballot) => ballot.kind)}::text[],
    ${ballots.map((ballot) => ballot.subject_id)}::uuid[],
    ${ballots.map((ballot) => ballot.agent_id)}::uuid[]
  ) with ordinality as d (kind, subject_id, agent_id, n)
  left join lateral (
    select p.id, p.question_id, p.agent_id, p.upvotes, p.downvotes
    from predictions p
    join questions q on q.id = p.question_id
    where d.kind = 'prediction' and p.id = d.subject_id
      and p.hidden_at is null and q.status <> 'draft'
    union all
    select c.id, c.question_id, c.agent_id, c.upvotes, 0
    from comments c
    join questions q on q.id = c.question_id
    where d.kind = 'comment' and c.id = d.subject_id
      and c.hidden_at is null and q.status <> 'draft'
  ) s on true
  left join agents voter on voter.id = d.agent_id
  left join agents author on author.id = s.agent_id
  order by d.n`;

/** A vote that came, was turned or went (`value` null), and what it adds to the counters. */
interface Change extends Pick<Ballot, 'kind' | 'subject_id' | 'agent_id' | 'at'> {
  readonly question_id: string;
  readonly author_id: string;
  readonly value: 1 | -1 | null;
  readonly up: number;
  readonly down: number;
}

const judge = (ballots: readonly Ballot[], subjects: readonly Subject[]) => {
  /** What the ballots so far add, by subject. */
  const added = new Map<string, { up: number; down: number }>();
  const changes: Change[] = [];
  const verdicts = ballots.map((ballot, n): Verdict => {
    const { question_id, author_id, same_owner, own, ...stored } = subjects[n] as Subject;
    if (question_id === null) return 'absent';
    if (same_owner) return 'same_owner';
    const { withdraw, value: cast_value, ...cast } = ballot;
    const left = own === cast_value ? null : own;
    const value = withdraw ? left : cast_value;
    const sum = added.get(cast.subject_id) ?? { up: 0, down: 0 };
    added.set(cast.subject_id, sum);
    if (value !== own) {
      const up = Number(value === 1) - Number(own === 1);
      const down = Number(value === -1) - Number(own === -1);
      sum.up += up;
      sum.down += down;
      changes.push({ ...cast, question_id, author_id, value, up, down });
    }
    return { upvotes: stored.upvotes + sum.up, downvotes: stored.downvotes + sum.down, value };
  });
  return { changes, verdicts };
};

/** Writes votes and counters of subjects that are locked. */
const write = async (tx: Tx, changes: readonly Change[]): Promise<void> => {
  if (changes.length === 0) return;
  await tx`
    with d as materialized (
      select *
      from json_to_recordset(${JSON.stringify(changes)}::text::json) as d (
        kind text, question_id uuid, subject_id uuid, agent_id uuid, author_id uuid,
        value smallint, up integer, down integer, at timestamptz
      )
    ),
    gone as (
      delete from votes v
      using d
      where v.question_id = d.question_id and v.subject_id = d.subject_id
        and v.agent_id = d.agent_id and d.value is null
    ),
    come as (
      insert into votes (question_id, subject_id, agent_id, kind, author_id, value, created_at)
      select question_id, subject_id, agent_id, kind, author_id, value, at
      from d
      where value is not null
      on conflict (question_id, subject_id, agent_id) do update
        set value = excluded.value, created_at = excluded.created_at
    ),
    moves as materialized (
      select
        kind, question_id, subject_id, author_id,
        sum(up)::integer as up,
        sum(down)::integer as down
      from d
      group by kind, question_id, subject_id, author_id
    ),
    moved_predictions as (
      update predictions p
      set upvotes = p.upvotes + m.up, downvotes = p.downvotes + m.down
      from moves m
      where m.kind = 'prediction' and p.question_id = m.question_id and p.agent_id = m.author_id
    ),
    moved_comments as (
      update comments c
      set upvotes = c.upvotes + m.up
      from moves m
      where m.kind = 'comment' and c.question_id = m.question_id and c.id = m.subject_id
    )
    insert into debater_changes (agent_id, id)
    select author_id, gen_random_uuid()
    from (select distinct author_id from moves where kind = 'comment') authors`;
};

const cast = async (tx: Tx, ballots: readonly Ballot[]): Promise<readonly Verdict[]> => {
  const ids = ballots.map(({ subject_id }) => subject_id);
  // Sent in this order at once; the last is a statement of its own, whose view is younger than the
  // locks.
  const locks = [lockAgents(tx, ballots, ids).execute(), ...lockSubjects(tx, ids)];
  const [subjects] = await Promise.all([readSubjects(tx, ballots), ...locks]);
  const { changes, verdicts } = judge(ballots, subjects);
  await write(tx, changes);
  return verdicts;
};

/** The group commit of votes; one a process. */
export const createVoting = (sql: Sql): GroupCommit<Ballot, Verdict> =>
  createGroupCommit<Ballot, Verdict>({
    commit: ({ drafts }) => sql.begin((tx) => cast(tx, drafts)),
    key: ({ agent_id, subject_id }) => `${agent_id} ${subject_id}`,
    one_a_key: true,
  });

/**
 * Takes away the votes between an agent and the others of its owner; for the transaction that links
 * it, after the link. The owner is locked, so that of two agents linked at once the later one finds
 * the earlier. Votes under way have the agent locked, and linking waits for them by that.
 */
export const voidVotes = async (
  tx: Tx,
  { agent_id, owner_id }: { readonly agent_id: string; readonly owner_id: string },
): Promise<void> => {
  await tx`select id from humans where id = ${owner_id} for no key update`;
  const votes = await tx<Omit<Change, 'value'>[]>`
    select
      v.kind, v.question_id, v.subject_id, v.agent_id, v.author_id, now() as at,
      -(v.value = 1)::integer as up,
      -(v.value = -1)::integer as down
    from votes v
    join agents other on other.owner_id = ${owner_id} and other.id <> ${agent_id}
    where (v.agent_id = ${agent_id} and v.author_id = other.id)
      or (v.agent_id = other.id and v.author_id = ${agent_id})`;
  if (votes.length === 0) return;
  const ids = votes.map(({ subject_id }) => subject_id);
  await Promise.all(lockSubjects(tx, ids));
  const gone = votes.map((vote) => ({ ...vote, value: null }));
  await write(tx, gone);
};
