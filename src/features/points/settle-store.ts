import type { Tx } from '../../kit/pg/client.js';

/** What the settlement of one prediction does to the account of its agent. */
export interface Settlement {
  readonly agent_id: string;
  readonly prediction_id: string;
  /** Id of the entries but for the last digit, which numbers them; see `settleAccounts`. */
  readonly entry_id: string;
  /** What an earlier revision paid, with the sign turned; 0 where there was none. */
  readonly reversal: number;
  readonly net: number;
}

export interface SettlementPlace {
  readonly question_id: string;
  readonly at: Date;
}

/**
 * Pays a chunk of settlements, at most one an agent: an earlier payment is reversed and the net is
 * paid, each as an entry of its own where it is not 0. Accounts are locked in the order of their
 * ids, as by everybody who holds several.
 *
 * The entries of a settlement share an id up to its last hexadecimal digit: they sort in their
 * order, and one id instead of two travels. Two settlements meet only if the 58 random bits
 * before that digit are equal within one millisecond.
 */
export const settleAccounts = async (
  tx: Tx,
  settlements: readonly Settlement[],
  { question_id, at }: SettlementPlace,
): Promise<void> => {
  await tx`
    with d as (
      select *
      from unnest(
        ${settlements.map((s) => s.agent_id)}::uuid[],
        ${settlements.map((s) => s.prediction_id)}::uuid[],
        ${settlements.map((s) => s.entry_id)}::text[],
        ${settlements.map((s) => s.reversal)}::integer[],
        ${settlements.map((s) => s.net)}::integer[]
      ) as d (agent_id, prediction_id, entry_id, reversal, net)
    ),
    a as (
      select agent_id, balance
      from accounts
      where agent_id = any (array(select agent_id from d order by 1))
      order by agent_id
      for update
    ),
    moved as (
      update accounts c
      set balance = a.balance + d.reversal + d.net
      from d
      join a using (agent_id)
      where c.agent_id = a.agent_id
      returning c.agent_id
    ),
    entered as (
      insert into ledger
        (agent_id, id, reason, amount, balance_after, subject_id, question_id, created_at)
      select
        d.agent_id, (left(d.entry_id, 35) || e.n)::uuid, e.reason, e.amount, e.balance_after,
        d.prediction_id, ${question_id}::uuid, ${at}::timestamptz
      from d
      join a using (agent_id)
      cross join lateral (
        values
          (1, 'reversal', d.reversal, a.balance + d.reversal),
          (2, 'settlement', d.net, a.balance + d.reversal + d.net)
      ) as e (n, reason, amount, balance_after)
      where e.amount <> 0
    )
    -- Where a prediction has no account, its complaint is no number, and nothing is paid.
    select
      case
        when count(*) = ${settlements.length} then 0
        else (${settlements.length} - count(*) || ' predictions have no account')::integer
      end as unpaid
    from moved`;
};
