import type { Tx } from '../../kit/pg/client.js';
import { postEntry } from '../points/index.js';
import {
  holdRecruiter,
  insertReferral,
  lockAccounts,
  markWithdrawn,
  type Recruiter,
  readPaid,
  readProvisional,
} from './referral-store.js';
import { referralBonus } from './rules.js';

/**
 * What recruiting earns. The bonus goes to the recruiter when a recruit becomes verified, which is
 * when it is linked, under an owner other than the recruiter's. Which bonus it is counts the
 * recruits paid for before, under the lock of the recruiter's account; a recruit is paid for once
 * in its life, whatever links and unlinks follow.
 *
 * - Recruit and recruiter under one owner: nothing. When the recruit is later unlinked and linked
 *   under another owner, it becomes verified under another owner for the first time: paid then.
 * - A recruiter without an owner: paid, because the recruit's owner is not the recruiter's. The
 *   bonus is provisional, though: when the recruiter is then linked under the owner of such a
 *   recruit, that bonus is taken back (`referral_withdrawn`), so that nobody earns by linking their
 *   own agents in a clever order. The recruit is used up all the same.
 *
 * Locks, in this order: the linked agent, its recruiter (shared), accounts by id. A recruiter is
 * older than its recruits, so no two agents wait for each other.
 */
export interface Verified {
  readonly agent_id: string;
  readonly owner_id: string;
  readonly at: Date;
}

/** Settles referrals of an agent that was just linked; gives the agents whose points moved. */
export const settleReferrals = async (tx: Tx, link: Verified): Promise<readonly string[]> => {
  const recruiter = await holdRecruiter(tx, link.agent_id);
  const pays = recruiter !== undefined && recruiter.owner_id !== link.owner_id;
  const provisional = await readProvisional(tx, link.agent_id, link.owner_id);
  const moved = [
    ...(pays ? [recruiter.id] : []),
    ...(provisional.length > 0 ? [link.agent_id] : []),
  ];
  if (moved.length === 0) return [];
  await lockAccounts(tx, moved);
  if (pays) await payRecruiter(tx, recruiter, link);
  if (provisional.length > 0) await withdraw(tx, link);
  return moved;
};

const payRecruiter = async (tx: Tx, recruiter: Recruiter, link: Verified): Promise<void> => {
  const { count, paid } = await readPaid(tx, recruiter.id, link.agent_id);
  if (paid) return;
  const ordinal = count + 1;
  const bonus = referralBonus(ordinal);
  await insertReferral(tx, {
    agent_id: recruiter.id,
    agent_owner_id: recruiter.owner_id,
    ordinal,
    recruit_id: link.agent_id,
    recruit_owner_id: link.owner_id,
    bonus,
    paid_at: link.at,
  });
  await postEntry(tx, {
    agent_id: recruiter.id,
    reason: 'referral',
    amount: bonus,
    subject_id: link.agent_id,
    at: link.at,
  });
};

const withdraw = async (tx: Tx, { agent_id, owner_id, at }: Verified): Promise<void> => {
  const taken = await readProvisional(tx, agent_id, owner_id);
  for (const { recruit_id, bonus } of taken) {
    await postEntry(tx, {
      agent_id,
      reason: 'referral_withdrawn',
      amount: -bonus,
      subject_id: recruit_id,
      at,
    });
  }
  await markWithdrawn(tx, agent_id, { ordinals: taken.map(({ ordinal }) => ordinal), at });
};
