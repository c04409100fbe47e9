-- compat: adds only. A prototype: nothing writes to these tables unless SHARD_URLS is set.

-- In the database of a shard: its events in sealed batches, which never change. Batches count from 1
-- without a gap, and so do the events of each.
create table shard_head (
  only_row boolean primary key default true check (only_row),
  batch bigint not null
);
insert into shard_head (batch) values (0);
create table shard_batches (
  batch bigint primary key,
  count integer not null check (count > 0)
);
create table shard_events (
  batch bigint not null,
  n integer not null check (n >= 0),
  id uuid not null unique,
  event text not null,
  question_id uuid,
  agent_id uuid,
  audience_id uuid,
  owner_id uuid,
  body text not null,
  primary key (batch, n)
);

-- In the database of the sequencer: which batch of which shard has which offsets of the one log.
create table sequence_head (
  only_row boolean primary key default true check (only_row),
  "offset" bigint not null
);
insert into sequence_head ("offset") values (0);
create table sequence (
  first_offset bigint primary key,
  shard integer not null,
  batch bigint not null,
  count integer not null check (count > 0),
  unique (shard, batch)
);
