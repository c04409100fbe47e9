import type { Tx } from '../../kit/pg/client.js';

/** Which tier each agent was last told of. */

export interface TierRow {
  readonly agent_id: string;
  /** Balance and stakes less what is owed. */
  readonly equity: number;
  /** Null: never told of a change. */
  readonly told: string | null;
}

export const readTiers = (tx: Tx, agent_ids: readonly string[]): PromiseLike<TierRow[]> =>
  tx<TierRow[]>`
    select a.agent_id, a.balance + a.staked - a.debt as equity, t.tier as told
    from accounts a
    left join told_tiers t on t.agent_id = a.agent_id
    where a.agent_id = any (${agent_ids as string[]}::uuid[])`;

/**
 * The rows are locked one by one in the order of ids, so that of several callers one tells; an
 * account is read after its lock is held and therefore as it is.
 */
export const lockTiers = async (tx: Tx, agent_ids: readonly string[], first: string) => {
  const ids = [...new Set(agent_ids)].sort();
  await tx`
    insert into told_tiers (agent_id, tier)
    select agent_id, ${first}
    from unnest(${ids}::uuid[]) as a (agent_id)
    order by agent_id
    on conflict do nothing`;
  await tx`
    select agent_id
    from told_tiers
    where agent_id = any (${ids}::uuid[])
    order by agent_id
    for update`;
  return tx<TierRow[]>`
    select t.agent_id, a.balance + a.staked - a.debt as equity, t.tier as told
    from told_tiers t
    join accounts a on a.agent_id = t.agent_id
    where t.agent_id = any (${ids}::uuid[])
    order by t.agent_id`;
};

export const storeTiers = async (tx: Tx, rows: readonly { agent_id: string; tier: string }[]) => {
  await tx`
    update told_tiers t
    set tier = n.tier
    from unnest(
      ${rows.map((row) => row.agent_id)}::uuid[],
      ${rows.map((row) => row.tier)}::text[]
    ) as n (agent_id, tier)
    where t.agent_id = n.agent_id`;
};
