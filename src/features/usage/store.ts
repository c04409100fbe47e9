import type { Db } from '../../db/client.js';
import { newestFirst } from '../../db/rows.js';
import type { PageRequest } from '../../http/page.js';

/** A person's agents in Postgres. */

export interface FleetRow {
  readonly id: string;
  readonly name: string;
  readonly suspended: boolean;
  readonly last_prediction_at: Date | null;
}

/** Returns agents, newest first, and at least one row more than the page. */
export const readFleet = (db: Db, owner_id: string, page: PageRequest) => db<FleetRow[]>`
  select
    a.id, a.name, a.suspended_at is not null as suspended,
    (
      select p.created_at from predictions p where p.agent_id = a.id order by p.id desc limit 1
    ) as last_prediction_at
  from agents a
  where a.owner_id = ${owner_id}
    ${newestFirst(db, 'a.id', page)}`;
