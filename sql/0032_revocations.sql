-- compat: api processes before it are told of no revoked key, and log an error; end them first.

-- Credentials that hold no longer, written in the transaction that ends them. Every api process
-- reads the newest and closes the sockets, streams and waits that they opened.
create table revocations (
  id bigint generated always as identity primary key,
  digest bytea not null check (octet_length(digest) = 32),
  reason text not null check (reason in ('revoked', 'suspended')),
  created_at timestamptz not null default clock_timestamp()
);
create index revocations_created on revocations (created_at);
create index revocations_digest on revocations (digest);

-- Nothing follows changes any more: what a process remembers of an agent or a question lives for a
-- second.
drop trigger agents_note_change on agents;
drop trigger questions_note_change on questions;
drop function note_change;
alter table agents drop column changed_in;
alter table questions drop column changed_in;
