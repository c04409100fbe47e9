-- compat: adds only.

-- The digest of the log up to an offset, written once and never changed: at every thousand, and
-- before the oldest event that is kept. The first row is where the digests begin, with the events
-- that are kept when this runs. See docs/streaming.md.
create table event_digests (
  "offset" bigint primary key,
  digest text not null check (digest ~ '^[0-9a-f]{64}$')
);
insert into event_digests ("offset", digest) select oldest - 1, repeat('0', 64) from log_head;
