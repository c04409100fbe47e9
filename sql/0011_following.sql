-- compat: running programs keep working. Until they are replaced, what they do reaches no inbox.

-- ---- Following ----

-- What people and agents follow. `subject` is the id of a question or agent, the name of a model
-- family, or a search in its normal form.
create table follows (
  id uuid not null,
  agent_id uuid references agents,
  human_id uuid references humans on delete cascade,
  follower_id uuid not null generated always as (coalesce(agent_id, human_id)) stored,
  kind text not null check (kind in ('question', 'agent', 'family', 'search')),
  subject text not null check (char_length(subject) between 1 and 1000),
  -- For a question: the figures of the headline that the follower last heard of, in percent, and
  -- by how many points one of them has to move to be news. Null: the usual number of the follower.
  heard double precision[],
  move_points smallint check (move_points between 1 and 100),
  created_at timestamptz not null,
  primary key (follower_id, kind, subject),
  check (num_nonnulls(agent_id, human_id) = 1)
);
create index follows_of_humans on follows (human_id) where human_id is not null;
create index follows_subject on follows (kind, subject);
create index follows_newest on follows (follower_id, id desc);

-- Followed questions, and the part of the log up to which their headline was compared.
create table followed_questions (
  question_id uuid primary key,
  checked_offset bigint not null
);

-- The filters of followed searches. A question matches if it matches all that are set.
create table followed_searches (
  subject text primary key,
  query tsquery,
  category text,
  subcategory text,
  tag text,
  question_type text
);

-- When a person last looked at what they follow, and when they did so before that visit.
create table follow_visits (
  human_id uuid primary key references humans on delete cascade,
  visited_at timestamptz not null,
  before_at timestamptz
);

-- Events of followed questions whose followers have not got them yet. The relay writes a row in the
-- transaction that gives the event its offset.
create table news_queue (
  "offset" bigint primary key,
  event text not null,
  question_id uuid not null,
  at timestamptz not null
);

-- How far the timer has looked for forecasts of followed agents and for finished days of families.
create table news_cursor (
  only_row boolean primary key default true check (only_row),
  agents_at timestamptz not null,
  day date not null
);
insert into news_cursor (agents_at, day) values (now(), (now() at time zone 'UTC')::date);

-- What a person or agent is told: news of what they follow and, for people, what happened to their
-- agents. Several agents of one person share an item if it has the same cause.
create table inbox_items (
  reader_id uuid not null,
  id uuid not null,
  kind text not null check (kind ~ '^[a-z]+[.][a-z_]+$'),
  cause text not null check (char_length(cause) between 1 and 200),
  agent_id uuid,
  question_id uuid,
  subject_id uuid,
  details jsonb not null,
  created_at timestamptz not null,
  read_at timestamptz,
  -- True until it is queued as an e-mail, if the reader wants one for it.
  mail_due boolean not null default false,
  primary key (reader_id, id),
  unique (reader_id, cause)
);
create index inbox_unread on inbox_items (reader_id, id desc) where read_at is null;
create index inbox_read on inbox_items (read_at) where read_at is not null;
create index inbox_mail_due on inbox_items (reader_id) where mail_due;

-- ---- E-mail ----

-- Which e-mails a person wants. Without a row: none.
create table mail_settings (
  human_id uuid primary key references humans on delete cascade,
  digest text not null check (digest in ('off', 'daily', 'weekly')),
  alerts text[] not null default '{}',
  move_points smallint not null check (move_points between 1 and 100),
  -- Null if the digest is off.
  next_digest_at timestamptz,
  -- Digests have covered the items up to this time.
  digested_until timestamptz,
  alerted_at timestamptz,
  -- Set if a mail server refused the address for good: no digest or alert is sent to it any more.
  stopped_at timestamptz,
  stopped_reason text check (char_length(stopped_reason) <= 500),
  check ((digest = 'off') = (next_digest_at is null)),
  check ((stopped_at is null) = (stopped_reason is null))
);
create index mail_settings_due on mail_settings (next_digest_at) where stopped_at is null;

-- Digests and alerts wait behind e-mails that somebody asked for just now.
alter table mails add column is_bulk boolean not null default false;
create index mails_waiting on mails (recipient) where sent_at is null and failed_at is null;
create index mails_in_order on mails (is_bulk, next_at) where sent_at is null and failed_at is null;
