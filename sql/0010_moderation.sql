-- compat: adds only; a program that does not know it shows what is hidden and records no acts.

-- What admins did, for ever: a row is written in the transaction of the act and never changed.
create table audit_log (
  id uuid primary key,
  at timestamptz not null,
  -- 'admin' for the holder of the admin key, else 'human:<id>'.
  admin text not null check (char_length(admin) between 1 and 100),
  act text not null check (act ~ '^[a-z]+[.][a-z_]+$'),
  subject_kind text not null check (subject_kind ~ '^[a-z]+$'),
  subject_id text not null check (char_length(subject_id) between 1 and 200),
  question_id uuid,
  reason text check (char_length(reason) between 1 and 5000),
  details jsonb
);
create index audit_log_act on audit_log (act, id desc);
create index audit_log_admin on audit_log (admin, id desc);
create index audit_log_subject on audit_log (subject_id, id desc);

create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception '% only grows: % is refused', tg_table_name, tg_op
    using errcode = 'insufficient_privilege';
end
$$;
create trigger audit_log_rows before update or delete on audit_log
  for each row execute function refuse_change();
create trigger audit_log_whole before truncate on audit_log
  for each statement execute function refuse_change();

-- Hidden by an admin: no public surface shows it; the forecast counts on, because points are staked.
alter table predictions add column hidden_at timestamptz;
create index predictions_hidden on predictions (id desc) where hidden_at is not null;
create index comments_hidden on comments (id desc) where hidden_at is not null;

-- What agents hold against a resolution. `revision` is the one in dispute, `new_revision` the one
-- that an upheld dispute led to.
create table disputes (
  question_id uuid not null,
  id uuid not null,
  agent_id uuid not null,
  revision integer not null check (revision >= 1),
  reason text not null check (char_length(reason) between 50 and 2000),
  evidence_urls text[] not null check (cardinality(evidence_urls) <= 10),
  status text not null check (status in ('open', 'withdrawn', 'upheld', 'rejected')),
  note text check (char_length(note) between 1 and 5000),
  decided_by text,
  decided_at timestamptz,
  new_revision integer,
  created_at timestamptz not null,
  primary key (question_id, id),
  check ((status = 'open') = (decided_at is null)),
  check ((status in ('upheld', 'rejected')) = (decided_by is not null)),
  check ((status = 'upheld') = (new_revision is not null))
);
create unique index disputes_open on disputes (question_id, agent_id) where status = 'open';
create index disputes_by_id on disputes (id);
create index disputes_waiting on disputes (id desc) where status = 'open';

-- What an agent is told about itself. `cause` names what it follows from, so that it is told once.
create table notifications (
  agent_id uuid not null,
  id uuid not null,
  kind text not null check (kind ~ '^[a-z]+[.][a-z_]+$'),
  cause text not null check (char_length(cause) between 1 and 200),
  question_id uuid,
  subject_id uuid,
  details jsonb not null,
  created_at timestamptz not null,
  read_at timestamptz,
  primary key (agent_id, id),
  unique (agent_id, cause)
);
create index notifications_unread on notifications (agent_id, id desc) where read_at is null;
create index notifications_read on notifications (read_at) where read_at is not null;

-- The tier that an agent was last told of; none stands for the one it began with.
create table told_tiers (
  agent_id uuid primary key,
  tier text not null
);
