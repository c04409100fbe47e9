import { type Fault, refuse } from '../../kit/fault.js';
import type { PageAsk } from '../../kit/page.js';
import { brokenConstraint, type Db, type Tx } from '../../kit/pg/client.js';
import type { ModelFamily } from '../taxonomy/index.js';
import type { PersonaArchetype, RiskProfile, Role } from './rules.js';
import { agents_faults } from './schema.js';

/** Agents: their profile, their key's digest and their owner. */

export interface AgentRow {
  readonly id: string;
  readonly name: string;
  readonly model: string;
  readonly model_family: ModelFamily;
  readonly persona_archetype: PersonaArchetype;
  readonly risk_profile: RiskProfile;
  readonly roles: readonly Role[];
  readonly bio: string | null;
  readonly domain_focus: string | null;
  readonly philosophy: string | null;
  readonly referral_code: string;
  readonly owner_id: string | null;
  readonly linked_at: Date | null;
  readonly suspended_at: Date | null;
  readonly created_at: Date;
  readonly balance: number;
  readonly prediction_count: number;
}

const columns = (db: Db) => db`
  a.id, a.name, a.model, a.model_family, a.persona_archetype, a.risk_profile, a.roles, a.bio,
  a.domain_focus, a.philosophy, a.referral_code, a.owner_id, a.linked_at, a.suspended_at,
  a.created_at, c.balance,
  (select count(*)::integer from predictions p where p.agent_id = a.id) as prediction_count`;

export interface NewAgent {
  readonly id: string;
  readonly name: string;
  readonly name_key: string;
  readonly model: string;
  readonly model_family: ModelFamily;
  readonly persona_archetype: PersonaArchetype;
  readonly risk_profile: RiskProfile;
  readonly roles: readonly Role[];
  readonly bio: string | null;
  readonly domain_focus: string | null;
  readonly philosophy: string | null;
  readonly referral_code: string;
  readonly referred_by: string | null;
  readonly owner_id: string | null;
  readonly key_digest: Buffer;
  readonly created_at: Date;
}

/** Adds an agent; a fault when its name is taken, a throw when its referral code is. */
export const insertAgent = async (tx: Tx, agent: NewAgent): Promise<undefined | Fault> => {
  const linked_at = agent.owner_id === null ? null : agent.created_at;
  const added = await tx`
    insert into agents (
      id, name, name_key, model, model_family, persona_archetype, risk_profile, roles, bio,
      domain_focus, philosophy, referral_code, referred_by, owner_id, linked_at, key_digest,
      created_at
    )
    values (
      ${agent.id}, ${agent.name}, ${agent.name_key}, ${agent.model}, ${agent.model_family},
      ${agent.persona_archetype}, ${agent.risk_profile}, ${agent.roles as string[]},
      ${agent.bio}, ${agent.domain_focus}, ${agent.philosophy},
      ${agent.referral_code}, ${agent.referred_by}, ${agent.owner_id}, ${linked_at},
      ${agent.key_digest}, ${agent.created_at}
    )
    on conflict (name_key) do nothing`;
  return added.count === 1 ? undefined : refuse(agents_faults.DUPLICATE_NAME);
};

/** True when an insert failed because its random referral code exists already. */
export const isReferralClash = (error: unknown): boolean =>
  brokenConstraint(error) === 'agents_referral_code_key';

export const findAgent = async (db: Db, id: string): Promise<AgentRow | undefined> => {
  const [row] = await db<AgentRow[]>`
    select ${columns(db)}
    from agents a
    join accounts c on c.agent_id = a.id
    where a.id = ${id}`;
  return row;
};

export const findByReferralCode = async (db: Db, code: string): Promise<string | undefined> => {
  const [row] = await db<{ id: string }[]>`select id from agents where referral_code = ${code}`;
  return row?.id;
};

export interface PrincipalRow {
  readonly id: string;
  readonly name: string;
  readonly model: string;
  readonly model_family: string;
  readonly owner_id: string | null;
  readonly suspended: boolean;
}

/** Agents by the digest of their key, in hex; of digests that nobody has there is nothing. */
export const findPrincipals = async (
  db: Db,
  digests: readonly string[],
): Promise<ReadonlyMap<string, PrincipalRow>> => {
  const rows = await db<(PrincipalRow & { readonly digest: string })[]>`
    select
      hex as digest, a.id, a.name, a.model, a.model_family, a.owner_id,
      a.suspended_at is not null as suspended
    from unnest(${digests as string[]}::text[]) as hex
    join agents a on a.key_digest = decode(hex, 'hex')`;
  return new Map(rows.map((row) => [row.digest, row]));
};

export interface ProfileChange {
  readonly bio?: string | null;
  readonly domain_focus?: string | null;
  readonly philosophy?: string | null;
  readonly persona_archetype?: PersonaArchetype;
  readonly risk_profile?: RiskProfile;
  readonly roles?: readonly Role[];
}

export const updateProfile = async (db: Db, id: string, change: ProfileChange): Promise<void> => {
  const names = Object.keys(change);
  if (names.length === 0) return;
  await db`update agents set ${db(change as never, ...(names as never[]))} where id = ${id}`;
};

export interface KeyChange {
  readonly id: string;
  /** The key that asks for the change; undefined when the caller is known by other means. */
  readonly old_digest: Buffer | undefined;
  readonly new_digest: Buffer;
}

/**
 * Puts a new key in place of the old, whose digest it returns; undefined when that was replaced in
 * the meantime.
 */
export const replaceKey = async (db: Db, change: KeyChange): Promise<Buffer | undefined> => {
  const { id, old_digest, new_digest } = change;
  const [old] = await db<{ key_digest: Buffer }[]>`
    update agents a
    set key_digest = ${new_digest}
    from (select id, key_digest from agents where id = ${id} for update) old
    where a.id = old.id ${old_digest === undefined ? db`` : db`and old.key_digest = ${old_digest}`}
    returning old.key_digest`;
  return old?.key_digest;
};

/** The agent of a key, locked until the transaction ends. */
export const lockByDigest = async (tx: Tx, digest: Buffer): Promise<AgentRow | undefined> => {
  const [row] = await tx<AgentRow[]>`
    select ${columns(tx)}
    from agents a
    join accounts c on c.agent_id = a.id
    where a.key_digest = ${digest}
    for update of a`;
  return row;
};

export const setOwner = async (
  tx: Tx,
  id: string,
  link: { readonly owner_id: string; readonly linked_at: Date },
): Promise<void> => {
  await tx`
    update agents
    set owner_id = ${link.owner_id}, linked_at = ${link.linked_at}
    where id = ${id}`;
};

/** Takes an agent from its owner; false when it is not this owner's. */
export const clearOwner = async (db: Db, id: string, owner_id: string): Promise<boolean> => {
  const rows = await db`
    update agents
    set owner_id = null, linked_at = null
    where id = ${id} and owner_id = ${owner_id}`;
  return rows.count === 1;
};

/** Agents of one owner, newest first; one row more than the page, to know whether it ends. */
export const readOwned = (db: Db, owner_id: string, ask: PageAsk): Promise<AgentRow[]> =>
  db<AgentRow[]>`
    select ${columns(db)}
    from agents a
    join accounts c on c.agent_id = a.id
    where a.owner_id = ${owner_id}
      and (${ask.after === null} or a.id < ${(ask.after?.[0] ?? null) as string | null}::uuid)
    order by a.id desc
    offset ${ask.offset}
    limit ${ask.limit + 1}`;

export const countOwned = async (db: Db, owner_id: string): Promise<number> => {
  const [row] = await db<{ total: number }[]>`
    select count(*)::int as total
    from agents
    where owner_id = ${owner_id}`;
  return row?.total ?? 0;
};
