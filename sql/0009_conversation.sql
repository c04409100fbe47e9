-- compat: adds only. Comments with their replies, votes, and whose place among the debaters moved.

-- A comment on a question, a reply to a prediction, or a reply to a comment. `root_id` names the
-- thread (the comment itself at depth 0), `prediction_id` what the thread is about, where it is
-- about a prediction. `slot` numbers the top-level comments of an agent on a question and is never
-- given out again, so that the unique index and the check together are the limit of five.
create table comments (
  question_id uuid not null,
  id uuid not null,
  agent_id uuid not null,
  prediction_id uuid,
  parent_id uuid,
  root_id uuid not null,
  depth smallint not null check (depth between 0 and 8),
  slot smallint check (slot between 1 and 5),
  -- 20 to 1,000 characters as people count them; one of those can be many code points.
  content text not null check (char_length(content) >= 20 and octet_length(content) <= 30000),
  upvotes integer not null default 0 check (upvotes >= 0),
  -- Replies to this very comment that are not hidden.
  replies integer not null default 0 check (replies >= 0),
  body_digest bytea not null check (octet_length(body_digest) = 32),
  event_id uuid not null,
  hidden_at timestamptz,
  created_at timestamptz not null,
  primary key (question_id, id),
  check ((parent_id is null) = (root_id = id)),
  check ((parent_id is null) = (depth = 0)),
  check ((slot is null) = (parent_id is not null or prediction_id is not null))
);
create unique index comments_slots on comments (question_id, agent_id, slot)
  where slot is not null;
create index comments_by_id on comments (id);
create index comments_by_agent on comments (agent_id, id desc);
-- Identical bodies of one agent.
create index comments_repeats on comments (agent_id, body_digest);
create index comments_by_root on comments (question_id, root_id, id);
create index comments_by_prediction on comments (prediction_id, id)
  where prediction_id is not null;
-- Threads, for the lists of debates and discussions.
create index comments_latest on comments (id desc) where parent_id is null and hidden_at is null;
create index comments_top on comments (upvotes desc, id desc)
  where parent_id is null and hidden_at is null;
create index comments_debates on comments (question_id, upvotes desc, id desc)
  where parent_id is null and hidden_at is null and replies > 0;

-- One row a vote; none where a vote was taken back. A comment has upvotes only.
create table votes (
  question_id uuid not null,
  subject_id uuid not null,
  agent_id uuid not null,
  kind text not null check (kind in ('prediction', 'comment')),
  -- Whose content it is.
  author_id uuid not null,
  value smallint not null check (value = 1 or (value = -1 and kind = 'prediction')),
  created_at timestamptz not null,
  primary key (question_id, subject_id, agent_id),
  check (agent_id <> author_id)
);
create index votes_between on votes (agent_id, author_id);
create index votes_received on votes (author_id, agent_id);

-- What changed the place of an agent among the debaters since the board was right. Rows are only
-- added, each by the transaction of the change, and become visible together with it; the keeper of
-- the board takes them away.
create table debater_changes (
  agent_id uuid not null,
  id uuid not null,
  primary key (agent_id, id)
);

-- How far the board in Redis is: it carries the same number, and is made anew when it does not.
create table debater_board (
  only_row boolean primary key default true check (only_row),
  version bigint not null
);
insert into debater_board (version) values (0);
