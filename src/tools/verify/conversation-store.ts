import { shown } from './parts.js';
import type { Query, Sentence } from './query.js';

/** Comments and votes against their counters, their events and their limits. */

/** Counters move with the log, so comments whose event still waits do not count. */
const comment_counts: Query = (tx) => tx<Sentence[]>`
  select
    'question ' || q.question_id || ' counts ' || q.comment_count || ' comments instead of '
    || coalesce(c.count, 0) as what
  from question_counts q
  left join (
    select question_id, count(*) as count
    from comments c
    where hidden_at is null and not exists (select from outbox o where o.id = c.event_id)
    group by question_id
  ) c using (question_id)
  where q.comment_count <> coalesce(c.count, 0)
  limit ${shown}`;

const replies: Query = (tx) => tx<Sentence[]>`
  select
    'comment ' || c.id || ' counts ' || c.replies || ' replies instead of ' || coalesce(r.count, 0)
      as what
  from comments c
  left join (
    select question_id, parent_id, count(*) as count
    from comments
    where parent_id is not null and hidden_at is null
    group by question_id, parent_id
  ) r on r.question_id = c.question_id and r.parent_id = c.id
  where c.replies <> coalesce(r.count, 0)
  limit ${shown}`;

const threads: Query = (tx) => tx<Sentence[]>`
  select 'comment ' || c.id || ' does not stand where it says in its thread' as what
  from comments c
  left join comments p on p.question_id = c.question_id and p.id = c.parent_id
  where c.parent_id is not null
    and (
      p.id is null
      or c.depth <> p.depth + 1
      or c.root_id <> p.root_id
      or c.prediction_id is distinct from p.prediction_id
    )
  limit ${shown}`;

const comment_events: Query = (tx) => tx<Sentence[]>`
  select 'comment ' || c.id || ' has no event' as what
  from comments c
  where not exists (select from outbox o where o.id = c.event_id)
    and not exists (
      select from events e where e.id = c.event_id and e.event = 'comment.created'
    )
    and c.created_at > coalesce(
      (select min(recorded_at) from events having min("offset") > 1),
      '-infinity'
    )
  limit ${shown}`;

const prediction_votes: Query = (tx) => tx<Sentence[]>`
  select
    'prediction ' || p.id || ' counts ' || (p.upvotes, p.downvotes)::text || ' votes instead of '
    || (coalesce(v.up, 0), coalesce(v.down, 0))::text as what
  from predictions p
  left join (
    select
      question_id, subject_id,
      count(*) filter (where value = 1) as up,
      count(*) filter (where value = -1) as down
    from votes
    where kind = 'prediction'
    group by question_id, subject_id
  ) v on v.question_id = p.question_id and v.subject_id = p.id
  where p.upvotes <> coalesce(v.up, 0) or p.downvotes <> coalesce(v.down, 0)
  limit ${shown}`;

const comment_votes: Query = (tx) => tx<Sentence[]>`
  select
    'comment ' || c.id || ' counts ' || c.upvotes || ' votes instead of ' || coalesce(v.up, 0)
      as what
  from comments c
  left join (
    select question_id, subject_id, count(*) as up
    from votes
    where kind = 'comment'
    group by question_id, subject_id
  ) v on v.question_id = c.question_id and v.subject_id = c.id
  where c.upvotes <> coalesce(v.up, 0)
  limit ${shown}`;

const vote_subjects: Query = (tx) => tx<Sentence[]>`
  select 'a vote of ' || v.agent_id || ' is about no ' || v.kind || ' of its author' as what
  from votes v
  left join predictions p
    on v.kind = 'prediction' and p.question_id = v.question_id and p.agent_id = v.author_id
    and p.id = v.subject_id
  left join comments c
    on v.kind = 'comment' and c.question_id = v.question_id and c.id = v.subject_id
    and c.agent_id = v.author_id
  where p.id is null and c.id is null
  limit ${shown}`;

const votes_between: Query = (tx) => tx<Sentence[]>`
  select
    'agent ' || v.agent_id || ' has voted on content of ' || v.author_id || ', of the same owner'
      as what
  from votes v
  join agents a on a.id = v.agent_id
  join agents b on b.id = v.author_id
  where a.owner_id = b.owner_id
  limit ${shown}`;

const comments_a_question: Query = (tx) => tx<Sentence[]>`
  select 'agent ' || agent_id || ' has ' || count(*) || ' comments on ' || question_id as what
  from comments
  where parent_id is null and prediction_id is null
  group by question_id, agent_id
  having count(*) > 5
  limit ${shown}`;

export const conversation_queries: readonly Query[] = [
  comment_counts,
  replies,
  threads,
  comment_events,
  prediction_votes,
  comment_votes,
  vote_subjects,
  votes_between,
  comments_a_question,
];
