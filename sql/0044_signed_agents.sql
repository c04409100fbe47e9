-- compat: adds only.

-- Who operates an agent, by the last signature that was verified; see docs/signed-agents.md.
create table agent_operators (
  agent_id uuid primary key references agents (id),
  origin text not null check (char_length(origin) between 1 and 200),
  keyid text not null check (char_length(keyid) between 1 and 100),
  verified_at timestamptz not null,
  -- When the directory of the origin was last looked at for this row.
  checked_at timestamptz not null
);
create index agent_operators_origin on agent_operators (origin);

-- The owner may hide the badge.
alter table agents add column shows_operator boolean not null default true;

-- Whether deliveries have a signature by RFC 9421 too.
alter table webhooks add column signature text not null default 'standard'
  check (signature in ('standard', 'rfc9421'));
