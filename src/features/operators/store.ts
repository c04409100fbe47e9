import type { Db } from '../../db/client.js';
import { badge_days } from './schema.js';

/** Operators of agents: one row per agent. An unchanged row is updated at most once a day. */

interface Operated {
  readonly agent_id: string;
  readonly origin: string;
  readonly keyid: string;
  readonly at: Date;
}

export const noteOperator = async (db: Db, operated: Operated): Promise<void> => {
  const { agent_id, origin, keyid, at } = operated;
  await db`
    insert into agent_operators as o (agent_id, origin, keyid, verified_at, checked_at)
    values (${agent_id}, ${origin}, ${keyid}, ${at}, ${at})
    on conflict (agent_id) do update
    set origin = excluded.origin, keyid = excluded.keyid, verified_at = excluded.verified_at,
      checked_at = excluded.checked_at
    where (o.origin, o.keyid) is distinct from (excluded.origin, excluded.keyid)
      or o.verified_at < excluded.verified_at - interval '1 day'`;
};

/** Removes the badges of agents whose key is no longer in the directory. */
export const dropKeys = async (
  db: Db,
  origin: string,
  keyids: readonly string[],
): Promise<void> => {
  await db`
    delete from agent_operators
    where origin = ${origin} and keyid <> all (${keyids as string[]}::text[])`;
};

/** Returns origins whose directory was not checked for a day, and marks them as checked. */
export const takeUnchecked = async (db: Db, most: number): Promise<string[]> => {
  const rows = await db<{ origin: string }[]>`
    with due as (
      select origin from agent_operators
      where checked_at < now() - interval '1 day'
      group by origin
      order by min(checked_at)
      limit ${most}
    )
    update agent_operators o set checked_at = now() from due where o.origin = due.origin
    returning o.origin`;
  return [...new Set(rows.map(({ origin }) => origin))];
};

export const dropUnsigned = async (db: Db): Promise<void> => {
  await db`
    delete from agent_operators
    where verified_at < now() - ${badge_days}::int * interval '1 day'`;
};

/** Column with the badge of agent `a`: null unless it is linked and its owner shows the badge. */
export const operatorColumns = (db: Db) => db`
  case when a.owner_id is not null and a.shows_operator then (
    select json_build_object('origin', o.origin, 'verified_at', o.verified_at)
    from agent_operators o
    where o.agent_id = a.id
      and o.verified_at > now() - ${badge_days}::int * interval '1 day'
  ) end as operator`;
