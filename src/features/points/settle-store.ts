import type { Tx } from '../../kit/pg/client.js';
import { type SendLast, sendOne } from '../../kit/pg/short-transaction.js';

/** What the settlement of one prediction does to the account of its agent. */
export interface Settlement {
  readonly agent_id: string;
  readonly prediction_id: string;
  /** Id of the entries but for the last digit, which numbers them; see `settleAccounts`. */
  readonly entry_id: string;
  /** The stake, where it is still held; else 0. */
  readonly stake_returned: number;
  /** What an earlier revision paid, with the sign turned; 0 where there was none. */
  readonly reversal: number;
  readonly net: number;
}

export interface SettlementPlace {
  readonly question_id: string;
  readonly at: Date;
}

/**
 * Pays a chunk of settlements, at most one an agent: the stake goes back, an earlier payment is
 * reversed, the net is paid, each as an entry of its own where it is not 0. What a reversal takes
 * beyond the balance is lent and becomes debt; whatever is left over pays debt back. Accounts are
 * locked in the order of their ids, as by everybody who holds several.
 *
 * The entries of a settlement share an id up to its last hexadecimal digit: they sort in their
 * order, and one id instead of five travels. Two settlements meet only if the 58 random bits
 * before that digit are equal within one millisecond.
 */
export const settleAccounts = async (
  tx: Tx,
  settlements: readonly Settlement[],
  { question_id, at }: SettlementPlace,
  send: SendLast = sendOne,
): Promise<void> => {
  await send(tx`
    with d as (
      select *
      from unnest(
        ${settlements.map((s) => s.agent_id)}::uuid[],
        ${settlements.map((s) => s.prediction_id)}::uuid[],
        ${settlements.map((s) => s.entry_id)}::text[],
        ${settlements.map((s) => s.stake_returned)}::integer[],
        ${settlements.map((s) => s.reversal)}::integer[],
        ${settlements.map((s) => s.net)}::integer[]
      ) as d (agent_id, prediction_id, entry_id, stake, reversal, net)
    ),
    a as (
      select agent_id, balance, staked, debt
      from accounts
      where agent_id = any (array(select agent_id from d order by 1))
      order by agent_id
      for update
    ),
    lent as (
      select
        d.*,
        a.debt,
        a.staked,
        a.balance + d.stake as returned,
        greatest(0, -(a.balance + d.stake + d.reversal + least(d.net, 0))) as advanced
      from d
      join a using (agent_id)
    ),
    settled as (
      select
        *,
        returned + advanced + reversal + net as credited,
        least(debt + advanced, returned + advanced + reversal + net) as repaid
      from lent
    ),
    moved as (
      update accounts c
      set
        balance = s.credited - s.repaid,
        debt = s.debt + s.advanced - s.repaid,
        staked = s.staked - s.stake
      from settled s
      where c.agent_id = s.agent_id
      returning c.agent_id
    ),
    entered as (
      insert into ledger
        (agent_id, id, reason, amount, balance_after, subject_id, question_id, created_at)
      select
        s.agent_id, (left(s.entry_id, 35) || e.n)::uuid, e.reason, e.amount, e.balance_after,
        s.prediction_id, ${question_id}::uuid, ${at}::timestamptz
      from settled s
      cross join lateral (
        values
          (1, 'stake_returned', s.stake, s.returned),
          (2, 'debt_advanced', s.advanced, s.returned + s.advanced),
          (3, 'reversal', s.reversal, s.returned + s.advanced + s.reversal),
          (4, 'settlement', s.net, s.credited),
          (5, 'debt_repaid', -s.repaid, s.credited - s.repaid)
      ) as e (n, reason, amount, balance_after)
      where e.amount <> 0
    )
    -- Where a prediction has no account, its complaint is no number, and nothing is paid.
    select
      case
        when count(*) = ${settlements.length} then 0
        else (${settlements.length} - count(*) || ' predictions have no account')::integer
      end as unpaid
    from moved`);
};
