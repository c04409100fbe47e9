-- compat: end api and timer processes before it first: they follow what is dropped here.

-- Credentials that hold no longer, written in the transaction that ends them. Every api process
-- reads the newest and closes the sockets, streams and waits that they opened.
create table revocations (
  id uuid primary key default gen_random_uuid(),
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

-- Boards are made anew from the record and hold nothing that the record has to follow.
drop table debater_board;
alter table board_head drop column fence;
-- In which category scores changed; null: any.
alter table standing_changes add column category text;

-- What each agent on the boards won, less what it lost: ranks beyond the boards in Redis are
-- counted here. The keeper of the boards brings it up to date for the agents of each mark.
create table board_nets (
  agent_id uuid primary key,
  kind text not null check (kind in ('agent', 'imported')),
  net integer not null
);
create index board_nets_rank on board_nets (kind, net);
insert into board_nets (agent_id, kind, net)
select
  a.id, case when is_imported(a.owner_id) then 'imported' else 'agent' end,
  coalesce(sum(s.net), 0)
from agents a
left join scores s on s.agent_id = a.id
where a.owner_id is not null and a.suspended_at is null
group by a.id;
