-- compat: an older program can neither place nor settle on the result; end them first.
--
-- Nothing is staked any more, and no balance has a lower bound. What was held goes back by one
-- entry a prediction, what was lent is taken back by one entry an account, so that the sum of each
-- ledger stays its balance. A decision that is being settled goes on: the predictions before its
-- cursor have their stakes back and their net, those above it get their stakes here and their net
-- from the job.

lock table resolutions, accounts, predictions, ledger in access exclusive mode;

alter table accounts drop constraint accounts_balance_check;

with moment as materialized (
  -- Once the locks are held, so that what was committed before has smaller ids.
  select clock_timestamp() as at
),
entries as (
  select
    l.agent_id, 'stake_returned' as reason, -sum(l.amount)::integer as amount, l.subject_id,
    p.question_id
  from ledger l
  join predictions p on p.id = l.subject_id and p.agent_id = l.agent_id
  where l.reason in ('stake', 'stake_returned')
  group by l.agent_id, l.subject_id, p.question_id
  having sum(l.amount) < 0
  union all
  select agent_id, 'debt_repaid', -debt, null, null
  from accounts
  where debt > 0
),
numbered as (
  select
    e.*,
    row_number() over in_order as n,
    (a.balance + sum(e.amount) over in_order)::integer as balance_after
  from entries e
  join accounts a on a.agent_id = e.agent_id
  window in_order as (partition by e.agent_id order by e.reason desc, e.subject_id)
),
entered as (
  insert into ledger
    (agent_id, id, reason, amount, balance_after, subject_id, question_id, created_at)
  select
    agent_id,
    -- A UUIDv7 of this moment, in which the number of the entry gives the order.
    (
      lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0')
        || '7' || lpad(to_hex(n >> 12), 3, '0')
        || '8' || lpad(to_hex(n & 4095), 3, '0')
        || right(gen_random_uuid()::text, 12)
    )::uuid,
    reason, amount, balance_after, subject_id, question_id, at
  from numbered, moment
  returning agent_id, amount
)
update accounts a
set balance = a.balance + of_agent.amount
from (select agent_id, sum(amount)::integer as amount from entered group by agent_id) as of_agent
where a.agent_id = of_agent.agent_id;

-- By which rule a decision pays: 1 divides by U, which depends on how many options are correct, and
-- 2 by 1 - 1/n. They differ with several correct options only.
alter table resolutions
  add column points_rule smallint not null default 2 check (points_rule in (1, 2));
update resolutions set points_rule = 1 where cardinality(correct_options) > 1;

alter table accounts drop column staked, drop column debt, drop column prediction_count;
alter table predictions drop column stake;
drop function balances_before(integer, integer[]);

-- Predictions of an agent, counted and in their order.
create index predictions_by_agent on predictions (agent_id, id);
