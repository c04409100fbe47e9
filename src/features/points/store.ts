import { type Fault, refuse } from '../../kit/fault.js';
import { makeId } from '../../kit/ids.js';
import type { PageAsk } from '../../kit/page.js';
import type { Db, Tx } from '../../kit/pg/client.js';
import { points_faults } from './faults.js';

/**
 * Accounts and their ledger. The balance is the sum of the ledger at every commit, because both
 * move in one statement; the ledger is append-only.
 *
 * A reversal may take more than the balance holds, because the points were staked or lost since.
 * The rest is lent (`debt_advanced`) and kept as `debt`; every later credit pays it back first
 * (`debt_repaid`). So no balance is ever below 0, whoever owes has a balance of 0, and the debt is
 * the sum of these two kinds of entries.
 */

export interface Account {
  readonly balance: number;
  /** Stakes of the predictions that are not settled. */
  readonly staked: number;
  /** What later credits pay back first. */
  readonly debt: number;
  readonly prediction_count: number;
}

export interface Entry {
  readonly agent_id: string;
  /** Why: `registration`, `stake`, `settlement`, `referral`, … */
  readonly reason: string;
  /** Points, positive or negative. */
  readonly amount: number;
  /** What it is about, such as a prediction or a recruited agent. */
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

export const insertAccount = async (tx: Tx, agent_id: string): Promise<void> => {
  await tx`insert into accounts (agent_id, balance) values (${agent_id}, 0)`;
};

/**
 * Moves a balance and appends the entry; the new balance, or a fault when it would go below 0. A
 * credit to an account in debt pays that back with a second entry.
 */
export const postEntry = async (tx: Tx, entry: Entry): Promise<number | Fault> => {
  const [row] = await tx<{ balance: number }[]>`
    with a as (
      select
        agent_id,
        debt,
        balance + ${entry.amount}::integer as credited,
        least(debt, greatest(${entry.amount}::integer, 0)) as repaid
      from accounts
      where agent_id = ${entry.agent_id}
      for update
    ),
    moved as (
      update accounts c
      set balance = a.credited - a.repaid, debt = a.debt - a.repaid
      from a
      where c.agent_id = a.agent_id and a.credited >= 0
      returning a.credited, a.repaid, c.balance
    ),
    entered as (
      insert into ledger
        (agent_id, id, reason, amount, balance_after, subject_id, question_id, created_at)
      select
        ${entry.agent_id}::uuid, e.id::uuid, e.reason, e.amount, e.balance_after,
        ${entry.subject_id ?? null}::uuid, ${entry.question_id ?? null}::uuid,
        ${entry.at}::timestamptz
      from moved
      cross join lateral (
        values
          (${makeId()}, ${entry.reason}, ${entry.amount}::integer, moved.credited),
          (${makeId()}, 'debt_repaid', -moved.repaid, moved.balance)
      ) as e (id, reason, amount, balance_after)
      where e.reason <> 'debt_repaid' or e.amount <> 0
    )
    select balance from moved`;
  return row?.balance ?? refuse(points_faults.INSUFFICIENT_POINTS);
};

export const readAccount = async (db: Db, agent_id: string): Promise<Account | undefined> => {
  const [row] = await db<Account[]>`
    select
      balance, staked, debt,
      (select count(*)::integer from predictions p where p.agent_id = c.agent_id)
        as prediction_count
    from accounts c
    where agent_id = ${agent_id}`;
  return row;
};

/** Entries of one agent, newest first; one row more than the page, to know whether it ends. */
export const readLedger = (db: Db, agent_id: string, ask: PageAsk): Promise<LedgerRow[]> =>
  db<LedgerRow[]>`
    select id, reason, amount, balance_after, subject_id, question_id, created_at
    from ledger
    where agent_id = ${agent_id}
      and (${ask.after === null} or id < ${(ask.after?.[0] ?? null) as string | null}::uuid)
    order by id desc
    offset ${ask.offset}
    limit ${ask.limit + 1}`;

export const countLedger = async (db: Db, agent_id: string): Promise<number> => {
  const [row] = await db<{ total: number }[]>`
    select count(*)::int as total
    from ledger
    where agent_id = ${agent_id}`;
  return row?.total ?? 0;
};
