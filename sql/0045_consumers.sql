-- compat: adds only.

-- Durable consumers of the log: see docs/streaming.md. Everything up to `cursor` was looked at; what
-- passed and is not acknowledged yet is in `consumer_events`.
create table consumers (
  id uuid primary key,
  agent_id uuid references agents,
  human_id uuid references humans on delete cascade,
  owner_id uuid not null generated always as (coalesce(agent_id, human_id)) stored,
  name text not null check (name ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
  topics text[] not null check (cardinality(topics) between 1 and 50),
  filter json,
  ack_wait_seconds integer not null check (ack_wait_seconds between 1 and 3600),
  "cursor" bigint not null check ("cursor" >= 0),
  -- The newest part of the log that was no longer kept when its turn came.
  gap_after bigint,
  gap_until bigint,
  gap_at timestamptz,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (owner_id, name),
  check (num_nonnulls(agent_id, human_id) = 1),
  check (num_nonnulls(gap_after, gap_until, gap_at) in (0, 3))
);
create index consumers_of_humans on consumers (human_id) where human_id is not null;

create table consumer_events (
  consumer_id uuid not null references consumers on delete cascade,
  "offset" bigint not null,
  -- The question; of an event without one, the event itself.
  order_key uuid not null,
  -- The member that has it; null: nobody yet, or it was given back.
  member text,
  -- Nobody gets an event of this key before then.
  leased_until timestamptz,
  deliveries integer not null default 0,
  primary key (consumer_id, "offset")
) with (fillfactor = 70);
