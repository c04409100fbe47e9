-- compat: adds only; a program that does not know it links agents and pays no bonus.
--
-- One row for each recruit that was ever paid for, and it stays for ever: it is what makes a second
-- payment impossible. `agent_id` is the recruiter; a recruit has one recruiter, from registration.
create table referrals (
  agent_id uuid not null,
  ordinal integer not null check (ordinal >= 1),
  recruit_id uuid not null,
  bonus integer not null check (
    bonus = case when ordinal = 1 then 200 when ordinal <= 4 then 300 else 500 end
  ),
  -- The owner under whom the recruit became verified, and the recruiter's own at that time.
  recruit_owner_id uuid not null,
  agent_owner_id uuid,
  paid_at timestamptz not null,
  -- Set when the recruiter had no owner and was then linked under that of the recruit.
  withdrawn_at timestamptz,
  primary key (agent_id, ordinal),
  unique (agent_id, recruit_id),
  check (agent_owner_id is null or agent_owner_id <> recruit_owner_id)
);
