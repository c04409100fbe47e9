-- compat: running programs go on, but sign with the newest secret alone where one is rotated meanwhile.

-- When its owner was told last that a webhook fails.
alter table webhooks add column failing_told_at timestamptz;

-- Secrets that were replaced and sign until the time that was promised for each.
create table webhook_old_secrets (
  webhook_id uuid not null references webhooks on delete cascade,
  secret_sealed bytea not null,
  until timestamptz not null,
  replaced_at timestamptz not null default now(),
  primary key (webhook_id, replaced_at)
);
insert into webhook_old_secrets (webhook_id, secret_sealed, until, replaced_at)
select id, old_secret_sealed, old_secret_until, updated_at
from webhooks
where old_secret_until > now();
