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
import { openAccounts, postEntry } from '../points/index.js';
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

interface Registering {
  readonly owner_id: string | null;
  readonly at: Date;
}

/** Registers an agent with its account; with an owner it is linked at once. */
export const registerAgent = async (
  tx: Tx,
  body: RegisterBody,
  registering: Registering,
): Promise<Registered | Fault> => {
  const registered = await registerAgents(tx, [prepareAgent(body)], registering);
  return isFault(registered) ? registered : (registered[0] as Registered | Fault);
};

interface NewAgent extends Omit<store.NewAgent, 'owner_id' | 'created_at'> {
  readonly api_key: string;
  /** In capitals; empty if none was given. */
  readonly recruiter_code: string;
}

/** The agent that a body describes, with its id and key. */
export const prepareAgent = (body: RegisterBody): NewAgent | Fault => {
  const profile = readBody(body);
  if (isFault(profile)) return profile;
  const api_key = rules.makeApiKey();
  return {
    id: makeId(),
    ...profile,
    api_key,
    key_digest: rules.digestSecret(api_key),
    referral_code: rules.makeReferralCode(),
    recruiter_code: (body.referral_code ?? '').trim().toUpperCase(),
    referred_by: null,
  };
};

/**
 * Registers agents with their accounts, all in the same few statements. Each is judged by itself, in
 * the order given. The fault of all: their owner is gone.
 */
export const registerAgents = async (
  tx: Tx,
  given: readonly (NewAgent | Fault)[],
  registering: Registering,
): Promise<readonly (Registered | Fault)[] | Fault> => {
  const { owner_id, at } = registering;
  if (owner_id !== null && !(await holdHuman(tx, owner_id))) return refuseGone();
  const judged = refuseRepeats(await findReferrers(tx, given));
  const wanted = judged.filter((one): one is NewAgent => !isFault(one));
  const added = await insertAll(tx, wanted, registering);
  await openAccounts(tx, added, at);
  const recruits = wanted.filter(({ id }) => added.includes(id));
  const moved = owner_id === null ? [] : await payForRecruits(tx, recruits, { owner_id, at });
  await markStanding(tx, [...added, ...moved]);
  await noteTiers(tx, moved, at);
  const rows = await store.findAgents(tx, added);
  const by_id = new Map(rows.map((agent) => [agent.id, agent]));
  return judged.map((one) => {
    if (isFault(one)) return one;
    const agent = by_id.get(one.id);
    return agent === undefined
      ? refuse(agents_faults.DUPLICATE_NAME)
      : { agent, api_key: one.api_key };
  });
};

/** With the recruiter of each; a code that no agent has is refused. */
const findReferrers = async (
  tx: Tx,
  given: readonly (NewAgent | Fault)[],
): Promise<readonly (NewAgent | Fault)[]> => {
  const codes = given.flatMap((one) =>
    isFault(one) || one.recruiter_code === '' ? [] : [one.recruiter_code],
  );
  if (codes.length === 0) return given;
  const found = await store.findByReferralCodes(tx, [...new Set(codes)]);
  const by_code = new Map(found.map(({ referral_code, id }) => [referral_code, id]));
  return given.map((one) => {
    if (isFault(one) || one.recruiter_code === '') return one;
    const referred_by = by_code.get(one.recruiter_code);
    if (referred_by === undefined) return refuse(agents_faults.INVALID_REFERRAL_CODE);
    return { ...one, referred_by };
  });
};

/** The first agent of a name keeps it. */
const refuseRepeats = (given: readonly (NewAgent | Fault)[]): readonly (NewAgent | Fault)[] => {
  const names = new Set<string>();
  return given.map((one) => {
    if (isFault(one)) return one;
    if (names.has(one.name_key)) return refuse(agents_faults.DUPLICATE_NAME);
    names.add(one.name_key);
    return one;
  });
};

const insertAll = async (
  tx: Tx,
  agents: readonly NewAgent[],
  { owner_id, at }: Registering,
): Promise<readonly string[]> => {
  if (agents.length === 0) return [];
  const rows = agents.map(({ api_key: _key, recruiter_code: _code, ...agent }) => {
    return { ...agent, owner_id, created_at: at };
  });
  return store.insertAgents(tx, rows);
};

/**
 * Pays the recruiters of new agents that were linked when they registered; the agents whose points
 * moved. All recruiters are locked first, as `settleReferrals` says.
 */
const payForRecruits = async (
  tx: Tx,
  recruits: readonly NewAgent[],
  { owner_id, at }: Omit<store.Link, 'agent_id'>,
): Promise<readonly string[]> => {
  const referred = recruits.filter(({ referred_by }) => referred_by !== null);
  if (referred.length === 0) return [];
  const ids = new Set(referred.map(({ referred_by }) => referred_by as string));
  const locked = await store.lockRecruiters(tx, [...ids]);
  const recruiters = locked.filter((recruiter) => recruiter.owner_id !== owner_id);
  await store.lockAccounts(
    tx,
    recruiters.map(({ id }) => id),
  );
  const moved = new Set<string>();
  for (const { id: agent_id, referred_by } of referred) {
    const recruiter = recruiters.find(({ id }) => id === referred_by);
    if (recruiter === undefined) continue;
    if (await payRecruiter(tx, recruiter, { agent_id, owner_id, at })) moved.add(recruiter.id);
  }
  return [...moved];
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
      const scope = { agent_id: id, audience_id: id };
      return { at, scope, data: { user_id: id, user_name: name } };
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
    if (await payRecruiter(tx, recruiter, link)) moved.push(recruiter.id);
  }
  const withdrawn = await store.withdrawReferrals(tx, link);
  for (const { recruit_id, bonus } of withdrawn) {
    const entry = { agent_id, reason: 'referral_withdrawn', amount: -bonus };
    await postEntry(tx, { ...entry, subject_id: recruit_id, at });
  }
  if (withdrawn.length > 0) moved.push(agent_id);
  return moved;
};

/** Under the lock of the recruiter's account; false if the recruit was paid for before. */
const payRecruiter = async (
  tx: Tx,
  recruiter: store.Recruiter,
  link: store.Link,
): Promise<boolean> => {
  const amount = await store.insertReferral(tx, recruiter, link);
  if (amount === undefined) return false;
  const entry = { agent_id: recruiter.id, reason: 'referral', amount, subject_id: link.agent_id };
  await postEntry(tx, { ...entry, at: link.at });
  return true;
};
