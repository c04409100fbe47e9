-- compat: programs before it plan nothing for webhooks that are off; stop their relays and signers.

alter table webhooks
  -- Which events of those asked for; null: all. An event that names no model family passes.
  add column filter_questions uuid[] check (cardinality(filter_questions) between 1 and 100),
  add column filter_categories text[] check (cardinality(filter_categories) between 1 and 50),
  add column filter_families text[] check (cardinality(filter_families) between 1 and 50),
  -- The secret before the last rotation, while both sign.
  add column old_secret_sealed bytea,
  add column old_secret_until timestamptz,
  -- Switched off at this time: what was queued by then is skipped, and nothing is sent before that
  -- is done.
  add column skip_before timestamptz,
  -- What failed since the last success. The lists hold as many different events as are asked for.
  add column failing_since timestamptz,
  add column failures integer not null default 0,
  add column failed_events uuid[] not null default '{}',
  add column gone_events uuid[] not null default '{}',
  -- The breaker: how often it opened in a row, and until when nothing is sent. After that, one
  -- delivery at a time probes.
  add column trips smallint not null default 0,
  add column paused_until timestamptz,
  add check ((old_secret_sealed is null) = (old_secret_until is null)),
  add check ((failing_since is null) = (failures = 0)),
  add check ((trips = 0) = (paused_until is null));
create index webhooks_unclear on webhooks (id) where not active or skip_before is not null;
create index webhooks_failing on webhooks (id) where failures > 0;

alter table deliveries
  -- When it was last put into the queue: planned, sent again by hand, or replayed.
  add column queued_at timestamptz not null default now(),
  -- How often it was sent again by hand or replayed.
  add column replays integer not null default 0,
  -- A row of state `gap` stands for events that were left out: so many, between two offsets.
  add column gap_until_offset bigint,
  add column gap_count integer check (gap_count > 0),
  add column gap_reason text check (gap_reason in ('backlog', 'age')),
  drop constraint deliveries_state_check,
  add constraint deliveries_state_check check (state in (
    'pending', 'sending', 'delivered', 'waiting', 'exhausted', 'expired', 'skipped_disabled',
    'blocked', 'gap'
  )),
  add check ((state = 'gap') = (gap_until_offset is not null)),
  add check ((gap_until_offset is null) = (gap_count is null)),
  add check ((gap_until_offset is null) = (gap_reason is null)),
  add check (gap_until_offset >= event_offset);
create index deliveries_skipped on deliveries (webhook_id, event_offset)
  where state = 'skipped_disabled';
create index deliveries_gaps on deliveries (webhook_id, event_offset) where state = 'gap';

-- The id of a delivery is that of its event, with the last 48 bits of the webhook's laid over its
-- own: each finds the other without an index.
create function delivery_id(webhook_id uuid, event_id uuid) returns uuid
language sql immutable parallel safe
return (
  left(event_id::text, 24) || lpad(
    to_hex(
      ('x' || right(event_id::text, 12))::bit(48)::bigint
      # ('x' || right(webhook_id::text, 12))::bit(48)::bigint
    ),
    12,
    '0'
  )
)::uuid;
update deliveries set id = delivery_id(webhook_id, event_id);

-- Webhooks that were deleted and whose deliveries are still to be removed.
create table webhook_leavings (
  webhook_id uuid primary key,
  deleted_at timestamptz not null default now()
);

-- The last replay of a webhook; it goes on while `done_at` is null.
create table webhook_replays (
  webhook_id uuid primary key,
  id uuid not null,
  after_offset bigint not null,
  next_offset bigint not null,
  until_offset bigint not null,
  queued integer not null default 0,
  started_at timestamptz not null default now(),
  done_at timestamptz,
  check (after_offset < next_offset and next_offset <= until_offset + 1)
);
create index webhook_replays_running on webhook_replays (webhook_id) where done_at is null;

-- Range-partitioned by day, so that old ones are dropped whole.
alter table attempts rename to old_attempts;
alter index attempts_pkey rename to old_attempts_pkey;
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
) partition by range (at);
create table attempts_default partition of attempts default;
insert into attempts select * from old_attempts;
drop table old_attempts;
