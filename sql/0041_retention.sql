-- compat: adds only; an older program takes every event for kept, and answers nothing of those that went.

-- Events from `oldest` on are kept. It moves first, and the partitions before it go some time after
-- `oldest_at`, so that every process knows it by then.
alter table log_head
  add column oldest bigint not null default 1,
  add column oldest_at timestamptz not null default now(),
  add check (oldest between 1 and "offset" + 1);
update log_head
set oldest = coalesce((select min("offset") from events), "offset" + 1);

-- Old hourly snapshots are found and removed by it.
create index consensus_snapshots_hourly on consensus_snapshots (moment, question_id)
  where reason = 'hourly';
