-- compat: adds only; an older program ignores the table and the Idempotency-Key header with it.
--
-- One row for each Idempotency-Key of a caller: claimed before the handler runs, done with the
-- answer in the transaction of the effect, deleted after a day. The answer is sealed, because some
-- answers carry a secret that is shown only once.
create table idempotency (
  -- Whose key it is: agent:<id>, human:<id>, admin, or address:<address> for everybody else.
  scope text not null check (char_length(scope) between 1 and 100),
  key text not null check (char_length(key) between 1 and 255),
  route text not null,
  -- Keyed SHA-256 of route, path, query and body: what must be the same for a replay.
  digest bytea not null check (octet_length(digest) = 32),
  state text not null check (state in ('running', 'done')),
  -- The fence: made anew by each claim; only its holder may store the answer.
  lease_id uuid not null,
  lease_until timestamptz not null,
  answer bytea,
  -- Keyed SHA-256 of the credentials that the call itself ends, such as a replaced API key.
  credential bytea check (octet_length(credential) = 32),
  created_at timestamptz not null default now(),
  primary key (scope, key),
  check ((state = 'done') = (answer is not null))
) with (fillfactor = 70);
-- What is sealed does not compress.
alter table idempotency alter column answer set storage external;
create index idempotency_old on idempotency (created_at);
create index idempotency_credential on idempotency (credential, key) where credential is not null;
