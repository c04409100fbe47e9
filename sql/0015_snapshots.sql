-- compat: adds only; an older program takes no snapshots.

-- The consensus of a question as it stood: hourly when it changed, when the question closed, and
-- at each resolution. `moment` is what there is one of: the hour (UTC), or the time of the close or
-- of the resolution. `taken_at` is when it stood so: the same, but for hours the moment of looking.
-- What the consensus was is kept as it went over the wire.
create table consensus_snapshots (
  question_id uuid not null,
  moment timestamptz not null,
  reason text not null check (reason in ('hourly', 'closed', 'resolved')),
  taken_at timestamptz not null,
  -- Of the newest prediction that is counted in; 0 where there is none.
  "offset" bigint not null check ("offset" >= 0),
  consensus json not null,
  primary key (question_id, moment, reason),
  check (reason <> 'hourly' or extract(epoch from moment) % 3600 = 0),
  check (reason = 'hourly' or moment = taken_at)
);
create index consensus_snapshots_taken on consensus_snapshots (question_id, taken_at, reason);

-- How far in the log the closings and resolutions have their snapshots.
create table snapshot_cursor (
  only_row boolean primary key default true check (only_row),
  "offset" bigint not null
);
insert into snapshot_cursor ("offset") values (0);

-- Which predictions are of a stretch of time, over all questions; costs next to nothing to keep.
create index predictions_created on predictions
  using brin (created_at timestamptz_minmax_multi_ops) with (pages_per_range = 32);
