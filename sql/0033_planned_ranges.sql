-- compat: stop the relays and signers of programs before it: relays plan no deliveries any more.

-- For each offset up to here every wanted delivery has its row. Signers take turns by its lock.
create table delivery_plan (
  only_row boolean primary key default true check (only_row),
  planned_offset bigint not null
);
-- Until now deliveries were planned in the transaction that gave their events an offset.
insert into delivery_plan (planned_offset) select "offset" from log_head;

-- What is planned beyond it, because signers read different portions of the stream.
create table planned_ranges (
  first_offset bigint primary key,
  last_offset bigint not null,
  check (first_offset <= last_offset)
);

-- The head of the log when the webhook was made: it gets what comes after.
alter table webhooks add column after_offset bigint not null default 0;
