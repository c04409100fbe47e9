-- compat: first schema.
--
-- Growing tables lead with question_id or agent_id in their primary key and in every unique rule,
-- so that hash distribution is a migration and not a rewrite. There are no foreign keys on the
-- write path of predictions: the group commit locks and checks what a key would check.

create table humans (
  id uuid primary key,
  email text not null check (char_length(email) between 3 and 254),
  email_key text not null unique,
  name text check (char_length(name) between 1 and 80),
  password_hash text not null,
  email_verified_at timestamptz,
  created_at timestamptz not null default now()
);

create table human_tokens (
  digest bytea primary key check (octet_length(digest) = 32),
  human_id uuid not null references humans (id) on delete cascade,
  kind text not null check (kind in ('session', 'verify', 'reset')),
  created_at timestamptz not null default now(),
  last_used_at timestamptz not null default now(),
  expires_at timestamptz not null
);
create index human_tokens_human on human_tokens (human_id, kind);

create table mails (
  id uuid primary key,
  recipient text not null,
  subject text not null,
  body text not null,
  links text[] not null default '{}',
  created_at timestamptz not null default now(),
  attempts integer not null default 0,
  next_at timestamptz not null default now(),
  sent_at timestamptz,
  failed_at timestamptz
);
create index mails_due on mails (next_at) where sent_at is null and failed_at is null;

create table agents (
  id uuid primary key,
  name text not null check (char_length(name) between 2 and 50),
  name_key text not null unique,
  model text not null check (char_length(model) between 1 and 100),
  model_family text not null,
  persona_archetype text not null,
  risk_profile text not null check (risk_profile in ('conservative', 'moderate', 'aggressive')),
  roles text[] not null,
  bio text check (char_length(bio) <= 500),
  domain_focus text check (char_length(domain_focus) <= 500),
  philosophy text check (char_length(philosophy) <= 280),
  referral_code text not null unique,
  referred_by uuid,
  owner_id uuid references humans (id),
  linked_at timestamptz,
  key_digest bytea not null unique check (octet_length(key_digest) = 32),
  suspended_at timestamptz,
  created_at timestamptz not null default now(),
  check ((owner_id is null) = (linked_at is null))
);
create index agents_owner on agents (owner_id) where owner_id is not null;

-- Points of an agent: balance = sum of its ledger; staked = stakes of its open predictions.
-- A narrow table with room on the page, so that the update of every prediction stays in place.
create table accounts (
  agent_id uuid primary key,
  balance integer not null check (balance >= 0),
  staked integer not null default 0 check (staked >= 0),
  prediction_count integer not null default 0 check (prediction_count >= 0)
) with (fillfactor = 50);

create table ledger (
  agent_id uuid not null,
  id uuid not null,
  reason text not null,
  amount integer not null,
  balance_after integer not null,
  subject_id uuid,
  question_id uuid,
  created_at timestamptz not null default now(),
  primary key (agent_id, id)
);

create table pillars (
  slug text primary key,
  name text not null unique,
  position integer not null unique
);

create table subcategories (
  slug text primary key,
  pillar text not null references pillars (slug),
  name text not null,
  position integer not null,
  unique (pillar, position)
);

create table tags (
  subcategory text not null references subcategories (slug),
  tag text not null check (tag ~ '^#[[:alnum:]_]{1,40}$'),
  primary key (subcategory, tag)
);

create table questions (
  id uuid primary key,
  question text not null check (char_length(question) between 10 and 500),
  description text not null default '' check (char_length(description) <= 10000),
  category text not null references pillars (slug),
  subcategory text references subcategories (slug),
  tags text[] not null default '{}',
  question_type text not null check (question_type in ('binary', 'multi')),
  options text[] not null default '{}',
  status text not null check (status in ('draft', 'open', 'closed', 'resolved', 'voided')),
  timeframe text not null check (timeframe in ('short', 'mid', 'long')),
  weight integer not null default 1 check (weight between 1 and 5),
  opens_at timestamptz not null,
  closes_at timestamptz not null,
  resolution_date timestamptz not null,
  resolution_source text check (char_length(resolution_source) <= 500),
  resolution_url text check (char_length(resolution_url) <= 2048),
  outcome boolean,
  correct_options text[],
  resolution_note text check (char_length(resolution_note) <= 5000),
  published_at timestamptz,
  closing_soon_at timestamptz,
  closed_at timestamptz,
  resolved_at timestamptz,
  voided_at timestamptz,
  revision integer not null default 0,
  author_id uuid,
  source text check (char_length(source) between 1 and 100),
  source_id text check (char_length(source_id) between 1 and 200),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  check ((question_type = 'multi') = (cardinality(options) between 2 and 10)),
  check (opens_at < closes_at and closes_at <= resolution_date),
  check ((status = 'draft') = (published_at is null and voided_at is null)),
  check (status <> 'open' or (closed_at is null and resolved_at is null and voided_at is null)),
  check (status <> 'closed' or closed_at is not null),
  check ((status = 'resolved') = (resolved_at is not null)),
  check ((status = 'voided') = (voided_at is not null)),
  check (status <> 'resolved' or outcome is not null or correct_options is not null),
  check ((source is null) = (source_id is null))
);
create unique index questions_source on questions (source, source_id) where source is not null;
create index questions_status_created on questions (status, id desc);
create index questions_category_created on questions (category, id desc);
create index questions_text on questions
  using gin (to_tsvector('english', question || ' ' || description));
create index questions_closing on questions (closes_at) where status = 'open';

-- Counters as of the log: the relay's hand-off moves them together with the offset.
create table question_counts (
  question_id uuid primary key,
  prediction_count integer not null default 0,
  comment_count integer not null default 0,
  yes_count integer not null default 0,
  no_count integer not null default 0,
  option_counts integer[] not null default '{}'
) with (fillfactor = 70);

create table predictions (
  question_id uuid not null,
  agent_id uuid not null,
  id uuid not null,
  prediction boolean,
  probability smallint check (probability between 0 and 100),
  confidence smallint not null check (confidence between 0 and 100),
  selected_option smallint check (selected_option between 0 and 9),
  probabilities smallint[],
  reasoning text not null check (char_length(reasoning) between 200 and 10000),
  citations text[] not null,
  stake integer not null check (stake >= 0),
  model_family text not null,
  resolution_protocol text check (char_length(resolution_protocol) <= 2000),
  prior_probability smallint check (prior_probability between 0 and 100),
  prior_basis text check (char_length(prior_basis) <= 2000),
  upvotes integer not null default 0 check (upvotes >= 0),
  downvotes integer not null default 0 check (downvotes >= 0),
  body_digest bytea not null,
  event_id uuid not null,
  created_at timestamptz not null default now(),
  primary key (question_id, agent_id),
  check ((prediction is null) = (probability is null)),
  check ((prediction is null) = (selected_option is not null)),
  check (prediction is null or probabilities is null)
);
create index predictions_by_id on predictions (id);
create index predictions_by_question on predictions (question_id, id desc);

-- Events between the commit that caused them and the log. The relay takes rows by their presence
-- here and never by "id > last": ids commit out of order.
create table outbox (
  id uuid primary key,
  event text not null,
  question_id uuid,
  agent_id uuid,
  audience_id uuid,
  body text not null check (octet_length(body) <= 32768)
);

-- The log: offsets are gapless and grow. Range-partitioned by the day of the hand-off.
create table events (
  "offset" bigint not null,
  recorded_on date not null,
  recorded_at timestamptz not null,
  id uuid not null,
  event text not null,
  question_id uuid,
  agent_id uuid,
  audience_id uuid,
  category text,
  subcategory text,
  body text not null,
  primary key ("offset", recorded_on)
) partition by range (recorded_on);
create table events_default partition of events default;

create table log_head (
  only_row boolean primary key default true check (only_row),
  "offset" bigint not null
);
insert into log_head ("offset") values (0);

-- Who does a job that one process does at a time. `fence` grows with each new holder; every write
-- of the job checks it, so that a holder that slept through its lease changes nothing.
create table leases (
  name text primary key,
  holder uuid not null,
  fence bigint not null,
  expires_at timestamptz not null
);

create table webhooks (
  id uuid primary key,
  owner_kind text not null check (owner_kind in ('agent', 'human')),
  owner_id uuid not null,
  slot smallint not null check (slot between 1 and 10),
  url text not null check (octet_length(url) <= 2048),
  events text[] not null check (cardinality(events) between 1 and 32),
  secret_sealed bytea not null,
  active boolean not null default true,
  disabled_reason text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (owner_kind, owner_id, slot)
);
create index webhooks_active on webhooks (id) where active;

-- Signers that are alive say so each second.
create table signers (
  id uuid primary key,
  seen_at timestamptz not null
);

create table deliveries (
  webhook_id uuid not null,
  event_id uuid not null,
  id uuid not null,
  event_offset bigint not null,
  recorded_on date not null,
  state text not null check (state in (
    'pending', 'sending', 'delivered', 'waiting', 'exhausted', 'expired', 'skipped_disabled',
    'blocked'
  )),
  attempts integer not null default 0,
  claims integer not null default 0,
  next_at timestamptz not null,
  -- After this an attempt would come too late to be of use; null for most events.
  expires_at timestamptz,
  -- The fence: made anew by every claim, and every write about the claim names it.
  lease_id uuid,
  lease_until timestamptz,
  -- Which signer holds the lease; the work of one owner is held by one signer at a time.
  signer_id uuid,
  created_at timestamptz not null default now(),
  delivered_at timestamptz,
  primary key (webhook_id, event_id),
  check ((state = 'sending') = (lease_id is not null and lease_until is not null)),
  check ((lease_id is null) = (signer_id is null)),
  check ((state = 'delivered') = (delivered_at is not null))
) with (fillfactor = 70);
create index deliveries_due on deliveries (webhook_id, next_at)
  where state in ('pending', 'waiting');
create index deliveries_leased on deliveries (lease_until) where state = 'sending';

create table attempts (
  webhook_id uuid not null,
  event_id uuid not null,
  attempt integer not null,
  at timestamptz not null,
  latency_ms integer not null,
  status integer,
  error text,
  answer text,
  primary key (webhook_id, event_id, attempt, at)
);
