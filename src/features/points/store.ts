import { makeId } from '../../kit/ids.js';
import type { PageAsk } from '../../kit/page.js';
import type { Db, Tx } from '../../kit/pg/client.js';

/**
 * Accounts and their ledger. The balance is the sum of the ledger at every commit, because both
 * move in one statement; the ledger is append-only. A balance may be below 0.
 */

export interface Account {
  readonly balance: number;
  readonly prediction_count: number;
}

export interface Entry {
  readonly agent_id: string;
  /** Why: `registration`, `settlement`, `reversal`, `referral`, … */
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

export const readAccount = async (db: Db, agent_id: string): Promise<Account | undefined> => {
  const [row] = await db<Account[]>`
    select
      balance,
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
