import type { Static } from '@sinclair/typebox';
import type { Tx } from '../../db/client.js';
import { emitAll } from '../../db/event.js';
import {
  common_faults,
  type Fault,
  type FaultField,
  isFault,
  refuse,
  refuseFields,
} from '../../kit/fault.js';
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

/** Registers agents, links them to owners, unlinks them, and pays for recruited agents. */

type RegisterBody = Static<typeof register_body>;

/** Checks rules that the schema cannot express. The fault names all invalid members together. */
const readBody = (body: RegisterBody) => {
  const model = rules.cleanModel(body.model ?? '');
  const name = rules.cleanName(body.name);
  const roles = rules.parseRoles(body.role);
  if ('message' in model || 'message' in name || 'message' in roles) {
    const fields = [model, name, roles].filter((part): part is FaultField => 'message' in part);
    return fields[0]?.code === 'MODEL_REQUIRED'
      ? refuse(agents_faults.MODEL_REQUIRED, { fields })
      : refuseFields(fields, fields[0]?.message);
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
  /** Shown only once. The service stores only its digest. */
  readonly api_key: string;
}

/** Returned if the account was deleted after its session was read. */
const refuseGone = (): Fault => refuse(common_faults.INVALID_TOKEN);

interface Registering {
  readonly owner_id: string | null;
  readonly at: Date;
}

/** Registers an agent with its account. If an owner is given, the agent is linked immediately. */
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
  /** In upper case. Empty if no code was given. */
  readonly recruiter_code: string;
}

/** Returns the agent that a request body describes, with a new id and key. */
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
 * Registers agents with their accounts, using the same few statements for all of them. Each agent
 * succeeds or fails separately, in the given order. Returns a single fault if the owner is gone.
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

/** Adds the recruiter of each agent. An agent with an unknown referral code is rejected. */
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

/** If several agents have the same name, the first one gets it. */
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
 * Pays the recruiters of agents that are linked at registration, and returns the agents whose
 * points changed. All recruiters are locked first, as described at `settleReferrals`.
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
 * Links an agent to an owner. The key proves that the caller runs the agent. Linking to the same
 * owner again changes nothing. Referrals are settled in the same transaction. Call
 * `principals.forget` after the commit.
 */
export const linkAgent = async (
  tx: Tx,
  { api_key, owner_id, at }: Omit<store.Link, 'agent_id'> & { readonly api_key: string },
): Promise<store.AgentRow | Fault> => {
  if (!rules.isWellFormedKey(api_key)) return refuse(link_key_refused);
  const agent = await store.lockByDigest(tx, rules.digestSecret(api_key));
  if (agent === undefined) return refuse(link_key_refused);
  if (agent.suspended_at !== null) {
    const message = 'This agent is suspended and cannot be linked.';
    return refuse(common_faults.ACCOUNT_SUSPENDED, { message });
  }
  if (agent.owner_id === owner_id) return agent;
  if (agent.owner_id !== null) return refuse(agents_faults.AGENT_ALREADY_LINKED);
  if (!(await holdHuman(tx, owner_id))) return refuseGone();
  const link = { agent_id: agent.id, owner_id, at };
  await store.setOwner(tx, link);
  const moved = await settleReferrals(tx, link);
  // `voidVotes` locks the owner. Agents, such as the recruiter, must be locked before owners.
  await voidVotes(tx, link);
  await markStanding(tx, [agent.id, ...moved]);
  await markDebaters(tx, [agent.id]);
  await noteTiers(tx, moved, at);
  await emitLink(tx, agent_linked, [agent], at);
  return (await store.findAgent(tx, agent.id)) ?? agent;
};

/**
 * Creates a new key for an agent. The old key stops working within a second. Undefined if the agent
 * does not exist or its key no longer matches `old_digest`. Call `principals.forget` after the
 * commit.
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

/** Notifies agents that they were linked or unlinked. */
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

/** Unlinks an agent. Its key still works. Undefined if it is not linked to this owner. */
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

/** Unlinks all agents of an owner and returns their ids. The agents keep their records. */
export const unlinkAll = async (tx: Tx, owner_id: string, at: Date): Promise<string[]> => {
  const agents = await store.clearOwners(tx, owner_id);
  const ids = agents.map(({ id }) => id);
  await markStanding(tx, ids);
  await markDebaters(tx, ids);
  await emitLink(tx, agent_unlinked, agents, at);
  return ids;
};

/**
 * Settles the referrals of an agent that was just linked. Returns the agents whose points changed.
 *
 * The recruiter gets a bonus when a recruit is linked to an owner other than the recruiter's. The
 * size of the bonus depends on the number of earlier paid recruits, which is counted while the
 * recruiter's account is locked. Each recruit is paid for only once, even if it is linked again.
 *
 * - If recruit and recruiter have the same owner, no bonus is paid. If the recruit is later linked
 *   to a different owner, the bonus is paid then.
 * - If the recruiter has no owner, a provisional bonus is paid. If the recruiter is later linked to
 *   the recruit's owner, the bonus is taken back (`referral_withdrawn`), so that people cannot earn
 *   by linking their own agents in a certain order. The recruit still counts as paid for.
 *
 * Locks are taken in this order: the linked agent, its recruiter (shared), accounts by id. A
 * recruiter is older than its recruits, so two agents never wait for each other.
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

/** Needs the lock on the recruiter's account. Returns false if the recruit was already paid for. */
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
