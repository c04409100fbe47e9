import type { Static } from '@sinclair/typebox';
import type { Db, Tx } from '../../db/client.js';
import { firstRow, newestFirst, readTotal } from '../../db/rows.js';
import type { PageRequest } from '../../http/page.js';
import { restoreKey, suspendKey } from '../events/index.js';
import { operatorColumns } from '../operators/index.js';
import type { operator_schema } from '../operators/schema.js';
import type { me_user_schema } from './schema.js';

/** Queries for agents: profile, digest of the key, owner and recruited agents. */

type Shown = Static<typeof me_user_schema>;

export type Profile = Pick<
  Shown,
  'bio' | 'domain_focus' | 'philosophy' | 'persona_archetype' | 'risk_profile' | 'roles'
>;

interface Identity
  extends Profile,
    Pick<Shown, 'id' | 'name' | 'model' | 'model_family' | 'referral_code' | 'owner_id'> {
  readonly created_at: Date;
}

export interface AgentRow extends Identity {
  readonly linked_at: Date | null;
  readonly suspended_at: Date | null;
  readonly balance: number;
  readonly prediction_count: number;
  readonly shows_operator: boolean;
  readonly operator: Static<typeof operator_schema> | null;
}

export const selectAgents = (db: Db) => db`
  select
    a.id, a.name, a.model, a.model_family, a.persona_archetype, a.risk_profile, a.roles, a.bio,
    a.domain_focus, a.philosophy, a.referral_code, a.owner_id, a.linked_at, a.suspended_at,
    a.created_at, a.shows_operator, c.balance, ${operatorColumns(db)},
    (select count(*)::integer from predictions p where p.agent_id = a.id) as prediction_count
  from agents a
  join accounts c on c.agent_id = a.id`;

export interface NewAgent extends Identity {
  readonly name_key: string;
  readonly referred_by: string | null;
  readonly key_digest: Buffer;
}

/**
 * Inserts agents in one statement and returns the ids of those whose name was free. All calls
 * insert names in the same order, so two calls with the same names cannot deadlock.
 */
export const insertAgents = async (
  tx: Tx,
  agents: readonly NewAgent[],
): Promise<readonly string[]> => {
  const rows = agents.map((agent) => ({
    ...agent,
    key_digest: `\\x${agent.key_digest.toString('hex')}`,
    linked_at: agent.owner_id === null ? null : agent.created_at,
  }));
  const added = await tx<{ id: string }[]>`
    insert into agents (
      id, name, name_key, model, model_family, persona_archetype, risk_profile, roles, bio,
      domain_focus, philosophy, referral_code, referred_by, owner_id, linked_at, key_digest,
      created_at
    )
    select
      id, name, name_key, model, model_family, persona_archetype, risk_profile, roles, bio,
      domain_focus, philosophy, referral_code, referred_by, owner_id, linked_at, key_digest,
      created_at
    from json_to_recordset(${JSON.stringify(rows)}::text::json) as a (
      id uuid, name text, name_key text, model text, model_family text, persona_archetype text,
      risk_profile text, roles text[], bio text, domain_focus text, philosophy text,
      referral_code text, referred_by uuid, owner_id uuid, linked_at timestamptz,
      key_digest bytea, created_at timestamptz
    )
    order by name_key collate "C"
    on conflict (name_key) do nothing
    returning id`;
  return added.map(({ id }) => id);
};

export const findAgent = (db: Db, id: string) =>
  firstRow(db<AgentRow[]>`${selectAgents(db)} where a.id = ${id}`);

/** Finds an agent by its id or by its `name_key`. */
export const findAgentBy = (db: Db, id: string, name_key: string) =>
  firstRow(db<AgentRow[]>`
    ${selectAgents(db)} where a.id::text = ${id} or a.name_key = ${name_key} limit 1`);

interface Named extends Pick<AgentRow, 'id' | 'name'> {
  readonly name_key: string;
}

/**
 * Finds the agent with this `name_key`, or agents whose name is the same with other blanks, hyphens
 * and underscores: at most two, which shows that the name is ambiguous.
 */
export const findBySlug = (db: Db, name_key: string) =>
  db<Named[]>`
    select id, name, name_key
    from agents
    where translate(name_key, ' _', '--') = translate(${name_key}, ' _', '--')
    order by (name_key = ${name_key}) desc
    limit 2`;

export const findAgents = (db: Db, ids: readonly string[]) => db<AgentRow[]>`
  ${selectAgents(db)} where a.id = any (${ids as string[]}::uuid[])`;

export const findByReferralCodes = (db: Db, codes: readonly string[]) => db<
  { id: string; referral_code: string }[]
>`
  select id, referral_code from agents where referral_code = any (${codes as string[]}::text[])`;

export const updateProfile = async (
  db: Db,
  id: string,
  change: Partial<Profile>,
): Promise<void> => {
  if (Object.keys(change).length === 0) return;
  await db`update agents set ${db(change)} where id = ${id}`;
};

/**
 * Replaces a key and returns the digest of the old key. If `old_digest` is given and the agent's
 * key no longer matches it, returns undefined.
 */
export const replaceKey = async (
  db: Db,
  id: string,
  { old_digest, new_digest }: { readonly old_digest?: Buffer; readonly new_digest: Buffer },
): Promise<Buffer | undefined> => {
  const [old] = await db<{ key_digest: Buffer }[]>`
    update agents a
    set key_digest = ${new_digest}
    from (select id, key_digest from agents where id = ${id} for update) old
    where a.id = old.id ${old_digest === undefined ? db`` : db`and old.key_digest = ${old_digest}`}
    returning old.key_digest`;
  return old?.key_digest;
};

export const lockByDigest = (tx: Tx, digest: Buffer) =>
  firstRow(tx<AgentRow[]>`
    ${selectAgents(tx)} where a.key_digest = ${digest} for update of a`);

export interface Link {
  readonly agent_id: string;
  readonly owner_id: string;
  readonly at: Date;
}

export const setOwner = async (tx: Tx, { agent_id, owner_id, at }: Link): Promise<void> => {
  await tx`update agents set owner_id = ${owner_id}, linked_at = ${at} where id = ${agent_id}`;
};

/** Shows or hides the operator of an agent that belongs to this owner. */
export const showOperator = async (
  db: Db,
  {
    id,
    owner_id,
    shows,
  }: { readonly id: string; readonly owner_id: string; readonly shows: boolean },
): Promise<void> => {
  await db`
    update agents set shows_operator = ${shows} where id = ${id} and owner_id = ${owner_id}`;
};

/** Unlinks an agent from its owner. Returns false if the agent is not linked to this owner. */
export const clearOwner = async (db: Db, id: string, owner_id: string): Promise<boolean> => {
  const rows = await db`
    update agents
    set owner_id = null, linked_at = null
    where id = ${id} and owner_id = ${owner_id}`;
  return rows.count === 1;
};

/** Unlinks all agents of an owner and returns them. */
export const clearOwners = async (tx: Tx, owner_id: string) => {
  await tx`select from agents where owner_id = ${owner_id} order by id for update`;
  return tx<{ id: string; name: string }[]>`
    update agents
    set owner_id = null, linked_at = null
    where owner_id = ${owner_id}
    returning id, name`;
};

export const findOwned = (db: Db, id: string, owner_id: string) =>
  firstRow(db<AgentRow[]>`${selectAgents(db)} where a.id = ${id} and a.owner_id = ${owner_id}`);

/** Locks an agent until the transaction ends. False if the agent is not linked to this owner. */
export const lockOwned = async (tx: Tx, id: string, owner_id: string): Promise<boolean> => {
  const rows = await tx`
    select from agents where id = ${id} and owner_id = ${owner_id} for update`;
  return rows.count === 1;
};

/** The condition that agent `a` predicted on a question, if one is given. */
const hasPredictedOn = (db: Db, question_id: string | undefined) =>
  question_id === undefined
    ? db``
    : db`and exists (
        select from predictions p where p.question_id = ${question_id} and p.agent_id = a.id
      )`;

export const readOwned = (
  db: Db,
  {
    owner_id,
    predicted_on,
  }: { readonly owner_id: string; readonly predicted_on?: string | undefined },
  page: PageRequest,
): Promise<AgentRow[]> =>
  db<AgentRow[]>`
    ${selectAgents(db)}
    where a.owner_id = ${owner_id} ${hasPredictedOn(db, predicted_on)}
      ${newestFirst(db, 'a.id', page)}`;

export const countOwned = (db: Db, owner_id: string, predicted_on?: string) =>
  readTotal(db<{ total: number }[]>`
    select count(*)::int as total
    from agents a
    where a.owner_id = ${owner_id} ${hasPredictedOn(db, predicted_on)}`);

/**
 * Suspends an agent and its key, or restores both if `at` is null. Undefined if the agent does not
 * exist. `changed` is false if the agent was already in this state. Call `principals.forget` after
 * the commit.
 */
export const setSuspended = async (tx: Tx, id: string, at: Date | null) => {
  const [row] = await tx<{ id: string; suspended_at: Date | null; changed: boolean }[]>`
    update agents a
    set suspended_at = case when ${at}::timestamptz is not null then coalesce(was, ${at}) end
    from (select suspended_at as was from agents where id = ${id} for update) old
    where id = ${id}
    returning id, suspended_at, (was is null) <> (suspended_at is null) as changed`;
  if (row?.changed === true) await (at === null ? restoreKey(tx, id) : suspendKey(tx, id));
  return row;
};

export type Recruiter = Pick<Identity, 'id' | 'owner_id'>;

/**
 * Locks the recruiter of an agent until the transaction ends, so that the recruiter's owner cannot
 * change during a payment. The lock is shared, so several recruits can hold it at the same time.
 */
export const lockRecruiter = (tx: Tx, agent_id: string) =>
  firstRow(tx<Recruiter[]>`
    select r.id, r.owner_id
    from agents r
    where r.id = (select referred_by from agents where id = ${agent_id})
    for share of r`);

/** Locks several recruiters by id, with a shared lock like `lockRecruiter`. */
export const lockRecruiters = (tx: Tx, ids: readonly string[]) => tx<Recruiter[]>`
  select id, owner_id from agents where id = any (${ids as string[]}::uuid[]) order by id for share`;

/** Locks accounts in the order of their ids, like all code that locks several accounts. */
export const lockAccounts = async (tx: Tx, agent_ids: string[]): Promise<void> => {
  await tx`
    select agent_id
    from accounts
    where agent_id = any (${agent_ids}::uuid[])
    order by agent_id
    for update`;
};

/**
 * Records a recruit and returns the recruiter's bonus: 200 points for the first recruit, 300 for
 * the second to fourth, 500 for each later one. Undefined if this recruit was already paid for.
 * The recruiter's account must be locked.
 */
export const insertReferral = async (
  tx: Tx,
  recruiter: Recruiter,
  { agent_id, owner_id, at }: Link,
): Promise<number | undefined> => {
  const [row] = await tx<{ bonus: number }[]>`
    insert into referrals
      (agent_id, agent_owner_id, ordinal, recruit_id, recruit_owner_id, bonus, paid_at)
    select
      ${recruiter.id}, ${recruiter.owner_id}, ordinal, ${agent_id}, ${owner_id},
      case when ordinal = 1 then 200 when ordinal <= 4 then 300 else 500 end, ${at}
    from (
      select count(*)::integer + 1 as ordinal from referrals where agent_id = ${recruiter.id}
    ) o
    on conflict (agent_id, recruit_id) do nothing
    returning bonus`;
  return row?.bonus;
};

/** Withdraws the bonuses that a newly linked agent got earlier for recruits of the same owner. */
export const withdrawReferrals = async (tx: Tx, { agent_id, owner_id, at }: Link) => {
  const rows = await tx<{ ordinal: number; recruit_id: string; bonus: number }[]>`
    update referrals
    set withdrawn_at = ${at}
    where agent_id = ${agent_id}
      and agent_owner_id is null
      and recruit_owner_id = ${owner_id}
      and withdrawn_at is null
    returning ordinal, recruit_id, bonus`;
  return [...rows].sort((a, b) => a.ordinal - b.ordinal);
};
