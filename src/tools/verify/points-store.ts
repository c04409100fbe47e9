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

/** Stakes and debts of older programs: everything held was returned, everything lent repaid. */
const stakes: Query = (tx) => tx<Sentence[]>`
  select
    'agent ' || agent_id || ': the stakes of prediction ' || subject_id || ' come to ' || sum(amount)
    || ' points' as what
  from ledger
  where reason in ('stake', 'stake_returned')
  group by agent_id, subject_id
  having sum(amount) <> 0
  limit ${shown}`;

const debts: Query = (tx) => tx<Sentence[]>`
  select 'agent ' || agent_id || ' owes ' || sum(amount) || ' points' as what
  from ledger
  where reason in ('debt_advanced', 'debt_repaid')
  group by agent_id
  having sum(amount) <> 0
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
  stakes,
  debts,
  agents_without_account,
  referral_orders,
  referral_entries,
  referral_recruits,
];
