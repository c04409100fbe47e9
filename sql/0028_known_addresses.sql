-- compat: adds only; a program that does not know it keeps none, and reads none.

-- Where a person has proved to be: the network addresses of log-ins that were right and of links
-- that were opened, as keyed digests. Failed log-ins from elsewhere do not keep the person out.
create table known_addresses (
  human_id uuid not null references humans (id) on delete cascade,
  digest bytea not null check (octet_length(digest) = 32),
  last_used_at timestamptz not null,
  primary key (human_id, digest)
);
