import { common_faults, type Fault, refuse } from '../../kit/fault.js';
import type { Tx } from '../../kit/pg/client.js';
import { noteTiers } from '../notifications/index.js';
import { markDebaters, markStanding } from '../standing/index.js';
import { voidVotes } from '../votes/index.js';
import { settleReferrals } from './referrals.js';
import { digestKey, isWellFormedKey } from './rules.js';
import { agents_faults, link_key_refused } from './schema.js';
import { type AgentRow, clearOwner, findAgent, lockByDigest, setOwner } from './store.js';

export interface Link {
  readonly api_key: string;
  readonly owner_id: string;
  readonly at: Date;
}

/**
 * Links the agent of a key to its owner; again by the same owner changes nothing. The key proves
 * that the caller runs the agent. What it means for referrals is settled in the same transaction.
 * After the commit this process forgets the agent in the principals.
 */
export const linkAgent = async (tx: Tx, link: Link): Promise<AgentRow | Fault> => {
  if (!isWellFormedKey(link.api_key)) return refuse(link_key_refused);
  const agent = await lockByDigest(tx, digestKey(link.api_key));
  if (agent === undefined) return refuse(link_key_refused);
  if (agent.suspended_at !== null) return refuse(common_faults.ACCOUNT_SUSPENDED);
  if (agent.owner_id === link.owner_id) return agent;
  if (agent.owner_id !== null) return refuse(agents_faults.AGENT_ALREADY_LINKED);
  await setOwner(tx, agent.id, { owner_id: link.owner_id, linked_at: link.at });
  const moved = await settleReferrals(tx, { agent_id: agent.id, ...link });
  // After the recruiter is held: it locks the owner, and locks of agents come before that.
  await voidVotes(tx, { agent_id: agent.id, owner_id: link.owner_id });
  await markStanding(tx, [agent.id, ...moved]);
  await markDebaters(tx, [agent.id]);
  await noteTiers(tx, moved, link.at);
  return (await findAgent(tx, agent.id)) ?? agent;
};

/** Takes an agent from its owner; false when it is not this owner's. Its key still holds. */
export const unlinkAgent = async (tx: Tx, id: string, owner_id: string): Promise<boolean> => {
  if (!(await clearOwner(tx, id, owner_id))) return false;
  await markStanding(tx, [id]);
  await markDebaters(tx, [id]);
  return true;
};
