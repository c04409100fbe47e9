import { makeId } from '../../kit/ids.js';
import type { Tx } from '../../kit/pg/client.js';
import { starting_points, tierOf, tiers } from '../points/index.js';

/** Which tier each agent was last told of. */

const first_tier = tierOf(starting_points);

/**
 * Tells agents whose tier is no longer the one they were told of, and gives their ids. To be called
 * with agents whose points changed, after the change and in its transaction, which holds their
 * accounts: one statement compares with what was told and writes both, so that each change that it
 * sees is told once, as often as anybody asks. A tier that changed and came back in between is not
 * told. Most calls change no tier, and write nothing; those who are told get ids that are made from
 * one and differ in their last digits.
 */
export const noteTiers = async (
  tx: Tx,
  agent_ids: readonly string[],
  at: Date,
): Promise<readonly string[]> => {
  if (agent_ids.length === 0) return [];
  const rows = await tx<{ agent_id: string }[]>`
    with now as (
      select
        a.agent_id,
        coalesce(t.tier, ${first_tier}::text) as before,
        (${tiers.map(({ tier }) => tier)}::text[])[
          greatest(
            1,
            width_bucket(
              a.balance,
              ${tiers.map(({ from_points }) => from_points)}::integer[]
            )
          )
        ] as tier
      from unnest(${agent_ids as string[]}::uuid[]) as given (agent_id)
      join accounts a on a.agent_id = given.agent_id
      left join told_tiers t on t.agent_id = given.agent_id
    ),
    told as (
      insert into told_tiers (agent_id, tier)
      select agent_id, tier
      from now
      where tier <> before
      order by agent_id
      on conflict (agent_id) do update
        set tier = excluded.tier
        where told_tiers.tier <> excluded.tier
      returning agent_id
    ),
    numbered as (
      select
        now.*,
        (
          left(${makeId()}::text, 24)
            || lpad(to_hex(row_number() over (order by now.agent_id)), 12, '0')
        )::uuid as id
      from now
      join told on told.agent_id = now.agent_id
    )
    insert into notifications (agent_id, id, kind, cause, details, created_at)
    select
      agent_id, id, 'tier.changed', 'tier:' || id,
      jsonb_build_object('tier', tier, 'before', before), ${at}::timestamptz
    from numbered
    order by agent_id
    on conflict do nothing
    returning agent_id`;
  return rows.map(({ agent_id }) => agent_id);
};
