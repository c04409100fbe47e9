import type { Static } from '@sinclair/typebox';
import type { Tx } from '../../db/client.js';
import { emitAll } from '../../db/event.js';
import { common_faults, type Fault, type FaultField, isFault, refuse } from '../../kit/fault.js';
import { makeId } from '../../kit/ids.js';
import { voidVotes } from '../comments/index.js';
import { agent_linked, agent_unlinked } from '../events/catalogue.js';
import { revokeDigest } from '../events/index.js';
import { markDebaters, markStanding } from '../leaderboards/index.js';
import { noteTiers } from '../notifications/index.js';
import { openAccount, postEntry } from '../points/index.js';
import { modelFamily } from '../taxonomy/model-family.js';
import * as store from './agents-store.js';
import { holdHuman } from './people-store.js';
import * as rules from './rules.js';
import { agents_faults, link_key_refused, type register_body } from './schema.js';

/** How agents are registered, linked to their owners and unlinked, and what recruiting earns. */

type RegisterBody = Static<typeof register_body>;

/** Checks what the schema cannot say; every wrong member is named at once. */
const readBody = (body: RegisterBody) => {
  const model = rules.cleanModel(body.model ?? '');
  const name = rules.cleanName(body.name);
  const roles = rules.parseRoles(body.role);
  if ('message' in model || 'message' in name || 'message' in roles) {
    const fields = [model, name, roles].filter((part): part is FaultField => 'message' in part);
    return fields[0]?.code === 'MODEL_REQUIRED'
      ? refuse(agents_faults.MODEL_REQUIRED, { fields })
      : refuse(common_faults.INVALID_REQUEST, { message: fields[0]?.message ?? '', fields });
  }
  return {
    ...name,
    ...model,
    ...roles,
    model_family: modelFamily(model.model),
    persona_archetype: body.persona_archetype ?? ('data_driven' as const),
    risk_profile: body.risk_profile ?? ('moderate' as const),
    bio: rules.cleanText(body.bio),
    domain_focus: rules.cleanText(body.domain_focus),
    philosophy: rules.cleanText(body.philosophy),
  };
};

export interface Registered {
  readonly agent: store.AgentRow;
  /** Shown once; only its digest is stored. */
  readonly api_key: string;
}

/** The account was deleted after its session had been read. */
const refuseGone = (): Fault => refuse(common_faults.INVALID_TOKEN);

/** Registers an agent with its account; with an owner it is linked at once. */
export const registerAgent = async (
  tx: Tx,
  body: RegisterBody,
  { owner_id, at }: { readonly owner_id: string | null; readonly at: Date },
): Promise<Registered | Fault> => {
  const profile = readBody(body);
  if (isFault(profile)) return profile;
  const referred_by = await findReferrer(tx, body.referral_code ?? '');
  if (isFault(referred_by)) return referred_by;
  if (owner_id !== null && !(await holdHuman(tx, owner_id))) return refuseGone();
  const id = makeId();
  const api_key = rules.makeApiKey();
  const is_new = await store.insertAgent(tx, {
    id,
    ...profile,
    referred_by,
    owner_id,
    created_at: at,
    referral_code: rules.makeReferralCode(),
    key_digest: rules.digestSecret(api_key),
  });
  if (!is_new) return refuse(agents_faults.DUPLICATE_NAME);
  await openAccount(tx, id, at);
  const moved = owner_id === null ? [] : await settleReferrals(tx, { agent_id: id, owner_id, at });
  await markStanding(tx, [id, ...moved]);
  await noteTiers(tx, moved, at);
  const agent = await store.findAgent(tx, id);
  if (agent === undefined) throw new Error('a registered agent is not there');
  return { agent, api_key };
};

const findReferrer = async (tx: Tx, given: string): Promise<string | null | Fault> => {
  const code = given.trim().toUpperCase();
  if (code === '') return null;
  return (await store.findByReferralCode(tx, code)) ?? refuse(agents_faults.INVALID_REFERRAL_CODE);
};

/**
 * Links the agent of a key to an owner; a repeat by the same owner changes nothing. The key proves
 * that the caller runs the agent. Referrals are settled in the same transaction. After the commit
 * call `principals.forget`.
 */
export const linkAgent = async (
  tx: Tx,
  { api_key, owner_id, at }: Omit<store.Link, 'agent_id'> & { readonly api_key: string },
): Promise<store.AgentRow | Fault> => {
  if (!rules.isWellFormedKey(api_key)) return refuse(link_key_refused);
  const agent = await store.lockByDigest(tx, rules.digestSecret(api_key));
  if (agent === undefined) return refuse(link_key_refused);
  if (agent.suspended_at !== null) return refuse(common_faults.ACCOUNT_SUSPENDED);
  if (agent.owner_id === owner_id) return agent;
  if (agent.owner_id !== null) return refuse(agents_faults.AGENT_ALREADY_LINKED);
  if (!(await holdHuman(tx, owner_id))) return refuseGone();
  const link = { agent_id: agent.id, owner_id, at };
  await store.setOwner(tx, link);
  const moved = await settleReferrals(tx, link);
  // After the recruiter is locked: voiding locks the owner, and locks of agents come before that.
  await voidVotes(tx, link);
  await markStanding(tx, [agent.id, ...moved]);
  await markDebaters(tx, [agent.id]);
  await noteTiers(tx, moved, at);
  await emitLink(tx, agent_linked, [agent], at);
  return (await store.findAgent(tx, agent.id)) ?? agent;
};

/**
 * A new key for an agent; the old one stops within a second. Undefined when there is no such agent,
 * or its key is not the one of `old_digest` any more. After the commit call `principals.forget`.
 */
export const replaceAgentKey = async (
  tx: Tx,
  id: string,
  old_digest?: Buffer,
): Promise<string | undefined> => {
  const api_key = rules.makeApiKey();
  const replaced = await store.replaceKey(tx, id, {
    ...(old_digest === undefined ? {} : { old_digest }),
    new_digest: rules.digestSecret(api_key),
  });
  if (replaced === undefined) return undefined;
  await revokeDigest(tx, replaced);
  return api_key;
};

/** Tells agents that they were linked or unlinked. */
const emitLink = (
  tx: Tx,
  event: typeof agent_linked,
  agents: readonly Pick<store.AgentRow, 'id' | 'name'>[],
  at: Date,
) =>
  emitAll(
    tx,
    event,
    agents.map(({ id, name }) => {
      const place = { agent_id: id, audience_id: id };
      return { at, place, data: { user_id: id, user_name: name } };
    }),
  );

/** Unlinks an agent; undefined when it is not this owner's. Its key still works. */
export const unlinkAgent = async (
  tx: Tx,
  { id, owner_id, at }: { readonly id: string; readonly owner_id: string; readonly at: Date },
): Promise<store.AgentRow | undefined> => {
  if (!(await store.clearOwner(tx, id, owner_id))) return undefined;
  await markStanding(tx, [id]);
  await markDebaters(tx, [id]);
  const agent = await store.findAgent(tx, id);
  if (agent !== undefined) await emitLink(tx, agent_unlinked, [agent], at);
  return agent;
};

/** Unlinks all agents of an owner, and gives their ids; their records stay. */
export const unlinkAll = async (tx: Tx, owner_id: string, at: Date): Promise<string[]> => {
  const agents = await store.clearOwners(tx, owner_id);
  const ids = agents.map(({ id }) => id);
  await markStanding(tx, ids);
  await markDebaters(tx, ids);
  await emitLink(tx, agent_unlinked, agents, at);
  return ids;
};

/**
 * Settles referrals of an agent that was just linked; gives the agents whose points moved.
 *
 * The recruiter gets the bonus when a recruit becomes verified, by being linked, under an owner
 * other than the recruiter's. The recruits paid for before are counted under the lock of the
 * recruiter's account; a recruit is paid for once in its life, whatever links and unlinks follow.
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
const settleReferrals = async (tx: Tx, link: store.Link): Promise<readonly string[]> => {
  const { agent_id, owner_id, at } = link;
  const recruiter = await store.lockRecruiter(tx, agent_id);
  await store.lockAccounts(tx, recruiter === undefined ? [agent_id] : [agent_id, recruiter.id]);
  const moved: string[] = [];
  if (recruiter !== undefined && recruiter.owner_id !== owner_id) {
    const amount = await store.insertReferral(tx, recruiter, link);
    if (amount !== undefined) {
      const entry = { agent_id: recruiter.id, reason: 'referral', amount, subject_id: agent_id };
      await postEntry(tx, { ...entry, at });
      moved.push(recruiter.id);
    }
  }
  const withdrawn = await store.withdrawReferrals(tx, link);
  for (const { recruit_id, bonus } of withdrawn) {
    const entry = { agent_id, reason: 'referral_withdrawn', amount: -bonus };
    await postEntry(tx, { ...entry, subject_id: recruit_id, at });
  }
  if (withdrawn.length > 0) moved.push(agent_id);
  return moved;
};
