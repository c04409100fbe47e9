import type { Db, Tx } from '../../db/client.js';
import { firstRow, newestFirst, readTotal } from '../../db/rows.js';
import type { PageRequest } from '../../http/page.js';
import { makeId } from '../../kit/ids.js';
import { starting_points } from './rules.js';

/**
 * Accounts and their ledger. The balance is the sum of the ledger at every commit, because both
 * move in one statement; the ledger is append-only. A balance may be below 0.
 */

interface Entry {
  readonly agent_id: string;
  /** Why: `registration`, `settlement`, `reversal`, `referral`, … */
  readonly reason: string;
  readonly amount: number;
  /** The subject, such as a prediction or a recruited agent. */
  readonly subject_id?: string;
  readonly question_id?: string;
  readonly at: Date;
}

export interface LedgerRow {
  readonly id: string;
  readonly reason: string;
  readonly amount: number;
  readonly balance_after: number;
  readonly subject_id: string | null;
  readonly question_id: string | null;
  readonly created_at: Date;
}

/** Moves a balance and appends the entry; the new balance. */
export const postEntry = async (tx: Tx, entry: Entry): Promise<number> => {
  const [row] = await tx<{ balance: number }[]>`
    with moved as (
      update accounts
      set balance = balance + ${entry.amount}::integer
      where agent_id = ${entry.agent_id}
      returning balance
    ),
    entered as (
      insert into ledger
        (agent_id, id, reason, amount, balance_after, subject_id, question_id, created_at)
      select
        ${entry.agent_id}, ${makeId()}, ${entry.reason}, ${entry.amount}, balance,
        ${entry.subject_id ?? null}, ${entry.question_id ?? null}, ${entry.at}
      from moved
    )
    select balance from moved`;
  if (row === undefined) throw new Error('an agent has no account');
  return row.balance;
};

export const readAccount = (db: Db, agent_id: string) =>
  firstRow(db<{ balance: number; prediction_count: number }[]>`
    select
      balance,
      (select count(*)::integer from predictions p where p.agent_id = c.agent_id)
        as prediction_count
    from accounts c
    where agent_id = ${agent_id}`);

/** Opens accounts of new agents with the starting points; in the registration's transaction. */
export const openAccounts = async (
  tx: Tx,
  agent_ids: readonly string[],
  at: Date,
): Promise<void> => {
  if (agent_ids.length === 0) return;
  await tx`
    with opened as (
      insert into accounts (agent_id, balance)
      select unnest(${agent_ids as string[]}::uuid[]), ${starting_points}::integer
    )
    insert into ledger (agent_id, id, reason, amount, balance_after, created_at)
    select agent_id, id, 'registration', ${starting_points}, ${starting_points}, ${at}
    from unnest(
      ${agent_ids as string[]}::uuid[],
      ${agent_ids.map(() => makeId())}::uuid[]
    ) as entries (agent_id, id)`;
};

/** Entries of one agent, newest first; one row more than the page, to know whether it ends. */
export const readLedger = (db: Db, agent_id: string, page: PageRequest): Promise<LedgerRow[]> =>
  db<LedgerRow[]>`
    select id, reason, amount, balance_after, subject_id, question_id, created_at
    from ledger
    where agent_id = ${agent_id}
      ${newestFirst(db, 'id', page)}`;

export const countLedger = (db: Db, agent_id: string) =>
  readTotal(db<{ total: number }[]>`
    select count(*)::int as total
    from ledger
    where agent_id = ${agent_id}`);

/** The effect of one settled prediction on the account of its agent. */
export interface Settlement {
  readonly agent_id: string;
  readonly prediction_id: string;
  /** The payment of an earlier revision with the sign turned; 0 where there was none. */
  readonly reversal: number;
  readonly net: number;
}

/**
 * Pays a chunk of settlements, at most one an agent: an earlier payment is reversed and the net is
 * paid, each as an entry of its own where it is not 0. Accounts are locked in the order of their
 * ids, like everywhere that locks several.
 */
export const settleAccounts = async (
  tx: Tx,
  settlements: readonly Settlement[],
  { question_id, at }: { readonly question_id: string; readonly at: Date },
): Promise<void> => {
  await tx`
    with d as (
      select *
      from unnest(
        ${settlements.map((s) => s.agent_id)}::uuid[],
        ${settlements.map((s) => s.prediction_id)}::uuid[],
        ${settlements.map(() => makeId())}::uuid[],
        ${settlements.map(() => makeId())}::uuid[],
        ${settlements.map((s) => s.reversal)}::integer[],
        ${settlements.map((s) => s.net)}::integer[]
      ) as d (agent_id, prediction_id, reversal_id, settlement_id, reversal, net)
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
        d.agent_id, e.id, e.reason, e.amount, e.balance_after,
        d.prediction_id, ${question_id}::uuid, ${at}::timestamptz
      from d
      join a using (agent_id)
      cross join lateral (
        values
          (d.reversal_id, 'reversal', d.reversal, a.balance + d.reversal),
          (d.settlement_id, 'settlement', d.net, a.balance + d.reversal + d.net)
      ) as e (id, reason, amount, balance_after)
      where e.amount <> 0
    )
    -- Where an account is missing, the text is no integer: the statement fails, and nothing is paid.
    select
      case
        when count(*) = ${settlements.length} then 0
        else (${settlements.length} - count(*) || ' predictions have no account')::integer
      end as unpaid
    from moved`;
};
