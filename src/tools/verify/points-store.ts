import { shown } from './parts.js';
import type { Query, Sentence } from './query.js';

/** Points: accounts against the ledger, the predictions and the referrals that they follow from. */

const balances: Query = (tx) => tx<Sentence[]>`
  select
    'agent ' || agent_id || ': balance ' || coalesce(a.balance::text, 'none')
    || ', the sum of the ledger is ' || coalesce(l.total, 0) as what
  from accounts a
  full join (select agent_id, sum(amount) as total from ledger group by agent_id) l
    using (agent_id)
  where a.balance is distinct from coalesce(l.total, 0)
  limit ${shown}`;

const negative_balances: Query = (tx) => tx<Sentence[]>`
  select
    'agent ' || agent_id || ': balance ' || balance || ', staked ' || staked || ', debt ' || debt
    as what
  from accounts
  where balance < 0 or staked < 0 or debt < 0
  limit ${shown}`;

const negative_moments: Query = (tx) => tx<Sentence[]>`
  select 'agent ' || agent_id || ' had a balance of ' || balance_after || ' after ' || id as what
  from ledger
  where balance_after < 0
  limit ${shown}`;

const debts: Query = (tx) => tx<Sentence[]>`
  select
    'agent ' || a.agent_id || ': balance ' || a.balance || ' with a debt of ' || a.debt
    || ', the ledger says ' || coalesce(l.debt, 0) as what
  from accounts a
  left join (
    select agent_id, sum(amount) as debt
    from ledger
    where reason in ('debt_advanced', 'debt_repaid')
    group by agent_id
  ) l using (agent_id)
  where a.debt <> coalesce(l.debt, 0) or (a.debt > 0 and a.balance > 0)
  limit ${shown}`;

const agents_without_account: Query = (tx) => tx<Sentence[]>`
  select 'agent ' || g.id || ' has no account' as what
  from agents g
  where not exists (select from accounts a where a.agent_id = g.id)
  limit ${shown}`;

const referral_orders: Query = (tx) => tx<Sentence[]>`
  select
    'recruiter ' || agent_id || ' was paid for ' || count(*) || ' recruits, the last as number '
    || max(ordinal) as what
  from referrals
  group by agent_id
  having count(*) <> max(ordinal) or count(distinct recruit_id) <> count(*)
  limit ${shown}`;

const referral_entries: Query = (tx) => tx<Sentence[]>`
  select
    'recruit ' || coalesce(r.recruit_id, l.subject_id) || ' of '
    || coalesce(r.agent_id, l.agent_id) || ': bonus ' || coalesce(r.bonus::text, 'none') || ', '
    || coalesce(l.count, 0) || ' ledger entries of together ' || coalesce(l.total, 0) as what
  from referrals r
  full join (
    select agent_id, subject_id, count(*) as count, sum(amount) as total
    from ledger
    where reason = 'referral'
    group by agent_id, subject_id
  ) l on l.agent_id = r.agent_id and l.subject_id = r.recruit_id
  where l.count is distinct from 1 or r.bonus is null or l.total <> r.bonus
  limit ${shown}`;

const referral_recruits: Query = (tx) => tx<Sentence[]>`
  select 'agent ' || r.recruit_id || ' was not recruited by ' || r.agent_id as what
  from referrals r
  left join agents a on a.id = r.recruit_id
  where a.referred_by is distinct from r.agent_id
  limit ${shown}`;

export const points_queries: readonly Query[] = [
  balances,
  negative_balances,
  negative_moments,
  debts,
  agents_without_account,
  referral_orders,
  referral_entries,
  referral_recruits,
];
