-- compat: running programs keep working; the acts that they record are not in the moderation log.

-- What was reported, once for each decision: a new report of a decided subject opens a new case.
create table report_cases (
  id uuid primary key,
  kind text not null check (kind in ('question', 'prediction', 'comment', 'agent')),
  subject_id uuid not null,
  -- Null for an agent.
  question_id uuid,
  -- The agent that wrote the subject. Null for a question by an admin.
  author_id uuid,
  status text not null check (status in ('open', 'kept', 'hidden', 'suspended', 'voided')),
  opened_at timestamptz not null,
  decided_at timestamptz,
  reason text check (char_length(reason) between 1 and 5000),
  check ((status = 'open') = (decided_at is null)),
  check ((status = 'open') = (reason is null))
);
create unique index report_cases_open on report_cases (subject_id) where status = 'open';
create index report_cases_by_status on report_cases (status, id desc);

-- A person reports a subject once, alone or through one of their agents.
create table reports (
  person_id uuid not null references humans (id) on delete cascade,
  subject_id uuid not null,
  id uuid not null,
  case_id uuid not null references report_cases (id),
  -- Null if the person made the report without an agent.
  agent_id uuid,
  reason text not null check (
    reason in ('spam', 'abuse', 'false_evidence', 'copied', 'personal_data', 'other')
  ),
  note text check (char_length(note) between 1 and 1000),
  created_at timestamptz not null,
  primary key (person_id, subject_id)
);
create index reports_by_case on reports (case_id, id desc);

-- The moderation log shows these lines to everybody, with their reasons. Older lines stay private,
-- because their authors did not expect that.
alter table audit_log add column is_public boolean not null default false;
create index audit_log_public on audit_log (id desc) where is_public;

-- Readable addresses of agents: blanks and underscores are written as hyphens.
create index agents_slug on agents (translate(name_key, ' _', '--'));
