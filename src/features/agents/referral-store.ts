import type { Db, Tx } from '../../kit/pg/client.js';

/** Referrals in Postgres: who recruited whom, and what was paid for it. */

export interface Recruiter {
  readonly id: string;
  readonly owner_id: string | null;
}

/**
 * The recruiter of an agent, held as it is until the transaction ends, so that its owner cannot
 * change beside a payment. Several recruits of one recruiter hold it together.
 */
export const holdRecruiter = async (tx: Tx, agent_id: string): Promise<Recruiter | undefined> => {
  const [row] = await tx<Recruiter[]>`
    select r.id, r.owner_id
    from agents r
    where r.id = (select referred_by from agents where id = ${agent_id})
    for share of r`;
  return row;
};

/** Locks accounts in the order of ids, as every writer of several does. */
export const lockAccounts = async (tx: Tx, agent_ids: readonly string[]): Promise<void> => {
  await tx`
    select agent_id
    from accounts
    where agent_id = any (${agent_ids as string[]}::uuid[])
    order by agent_id
    for update`;
};

/** How many recruits were paid for, and whether this one was; under the account's lock. */
export const readPaid = async (
  tx: Tx,
  recruiter_id: string,
  recruit_id: string,
): Promise<{ readonly count: number; readonly paid: boolean }> => {
  const [row] = await tx<{ count: number; paid: boolean }[]>`
    select count(*)::integer as count, coalesce(bool_or(recruit_id = ${recruit_id}), false) as paid
    from referrals
    where agent_id = ${recruiter_id}`;
  return row ?? { count: 0, paid: false };
};

export interface Referral {
  readonly agent_id: string;
  readonly agent_owner_id: string | null;
  readonly ordinal: number;
  readonly recruit_id: string;
  readonly recruit_owner_id: string;
  readonly bonus: number;
  readonly paid_at: Date;
}

export const insertReferral = async (tx: Tx, referral: Referral): Promise<void> => {
  await tx`insert into referrals ${tx({ ...referral })}`;
};

export interface Provisional {
  readonly ordinal: number;
  readonly recruit_id: string;
  readonly bonus: number;
}

/** Bonuses that were paid while the agent had no owner, for recruits of this owner. */
export const readProvisional = (db: Db, agent_id: string, owner_id: string) => db<Provisional[]>`
  select ordinal, recruit_id, bonus
  from referrals
  where agent_id = ${agent_id}
    and agent_owner_id is null
    and recruit_owner_id = ${owner_id}
    and withdrawn_at is null
  order by ordinal`;

export const markWithdrawn = async (
  tx: Tx,
  agent_id: string,
  taken: { readonly ordinals: readonly number[]; readonly at: Date },
): Promise<void> => {
  await tx`
    update referrals
    set withdrawn_at = ${taken.at}
    where agent_id = ${agent_id} and ordinal = any (${taken.ordinals as number[]}::integer[])`;
};
