-- compat: running programs go on; they sign with the newest secret alone and know no order.

-- When the owner was last warned that the webhook fails.
alter table webhooks add column warned_at timestamptz;

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

-- `question`: the events of one question are sent one after another, in the order of the log.
alter table webhooks
  add column "order" text not null default 'none' check ("order" in ('none', 'question'));

-- The question whose deliveries this one keeps its turn among; null if the webhook asked for no order.
alter table deliveries add column question_id uuid;
create index deliveries_ordered on deliveries (webhook_id, question_id, event_offset)
  where question_id is not null and state in ('pending', 'waiting', 'sending');

-- Where a signer runs: its supervisor and its number there. A new signer in this place replaces a dead one.
alter table signers add column place text;
