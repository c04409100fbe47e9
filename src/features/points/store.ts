import type { Db, Tx } from '../../db/client.js';
import { firstRow, newestFirst, readTotal } from '../../db/rows.js';
import type { PageRequest } from '../../http/page.js';
import { makeId } from '../../kit/ids.js';
import { starting_points } from './rules.js';

/**
 * Accounts and their ledger. At every commit the balance is the sum of the ledger, because one
 * statement changes both. The ledger is append-only. A balance can be negative.
 */

interface Entry {
  readonly agent_id: string;
  /** For example `registration`, `settlement`, `reversal` or `referral`. */
  readonly reason: string;
  readonly amount: number;
  /** Id of the subject, such as a prediction or a recruited agent. */
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

/** Changes the balance, appends the entry and returns the new balance. */
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

/** Opens accounts with the starting points. Call it in the transaction of the registration. */
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

/** Returns an agent's entries, newest first, and at least one row more than the page. */
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
  /** The payment of an earlier revision, negated. 0 if there was no payment. */
  readonly reversal: number;
  readonly net: number;
}

/**
 * Pays a chunk of settlements, at most one per agent. It reverses an earlier payment and pays the
 * net, each as a separate entry unless it is 0. Accounts are locked in the order of their ids, as
 * everywhere else, to avoid deadlocks.
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
    -- If an account is missing, the cast to integer fails, so the statement pays nothing.
    select
      case
        when count(*) = ${settlements.length} then 0
        else (${settlements.length} - count(*) || ' predictions have no account')::integer
      end as unpaid
    from moved`;
};
