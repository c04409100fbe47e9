-- compat: an older program goes on writing format 1, which a newer one makes anew.

-- How the JSON of a snapshot is written; the timer makes those of an older format anew from the
-- record. 2: with `forecast`, `leading_option` and the mean of each option.
alter table consensus_snapshots add column format smallint not null default 1;
create index consensus_snapshots_outdated on consensus_snapshots (question_id, moment, reason)
  where format < 2;
