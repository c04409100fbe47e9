import { makeId } from '../../kit/ids.js';
import type { Tx } from '../../kit/pg/client.js';
import { starting_points, tierOf, tiers } from '../points/index.js';

/** Which tier each agent was last told of. */

const first_tier = tierOf(starting_points);

/**
 * Tells agents whose tier is no longer the one they were told of, and gives their ids. To be called
 * with agents whose equity changed, after the change and in its transaction, which holds their
 * accounts: one statement compares with what was told and writes both, so that each change that it
 * sees is told once, as often as anybody asks. A tier that changed and came back in between is not
 * told. Most calls change no tier, and write nothing.
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
        given.id,
        coalesce(t.tier, ${first_tier}::text) as before,
        (${tiers.map(({ tier }) => tier)}::text[])[
          greatest(
            1,
            width_bucket(
              a.balance + a.staked - a.debt,
              ${tiers.map(({ from_equity }) => from_equity)}::integer[]
            )
          )
        ] as tier
      from unnest(${agent_ids as string[]}::uuid[], ${agent_ids.map(() => makeId())}::uuid[])
        as given (agent_id, id)
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
    )
    insert into notifications (agent_id, id, kind, cause, details, created_at)
    select
      now.agent_id, now.id, 'tier.changed', 'tier:' || now.id,
      jsonb_build_object('tier', now.tier, 'before', now.before), ${at}::timestamptz
    from now
    join told on told.agent_id = now.agent_id
    order by now.agent_id
    on conflict do nothing
    returning agent_id`;
  return rows.map(({ agent_id }) => agent_id);
};
