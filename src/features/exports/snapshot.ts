import type { Deps } from '../../kit/deps.js';
import { common_faults, type Fault, refuse } from '../../kit/fault.js';
import type { Db } from '../../kit/pg/client.js';

/**
 * The moment an export stands for: what was recorded before it, and nothing else. Ids are made in
 * the order of time and a little before the transaction that records them, so the moment lies
 * before every transaction that may still write: nothing can be added to what is older.
 */

/** How Postgres names the connections of exports, after the name of the program. */
export const connection_name = 'exports';

/** From an id to the beginning of its transaction, at most; and how far clocks may differ. */
export const settle_ms = 2_000;
/** A transaction of the service that has written nothing so far is over by then. */
const longest_before_write = '60 s';

export interface Snapshot {
  readonly snapshot: Date;
  readonly as_of: Date;
  readonly log_offset: number;
}

export interface SnapshotQuery {
  readonly snapshot?: string;
  readonly as_of?: string;
}

/** Age of the oldest transaction that may write; exports only read. */
const readOldestMs = async (db: Db): Promise<number> => {
  const [row] = await db<{ age_ms: number }[]>`
    select
      coalesce(extract(epoch from clock_timestamp() - min(xact_start)) * 1000, 0)::float8 as age_ms
    from pg_stat_activity
    where datname = current_database()
      and backend_type = 'client backend'
      and pid <> pg_backend_pid()
      and application_name not like ${`% ${connection_name}`}
      and (
        backend_xid is not null
        or xact_start > clock_timestamp() - ${longest_before_write}::interval
      )`;
  return row?.age_ms ?? 0;
};

/** The newest event that was recorded up to a moment; 0 for none. */
const readOffsetAt = async (db: Db, at: Date): Promise<number> => {
  const [row] = await db<{ offset: number }[]>`
    select "offset"
    from events
    where recorded_at <= ${at} and recorded_on <= ${at}::timestamptz::date
    order by "offset" desc
    limit 1`;
  return row?.offset ?? 0;
};

const refuseField = (path: string, message: string): Fault =>
  refuse(common_faults.INVALID_REQUEST, { fields: [{ path, message }] });

export const takeSnapshot = async (
  { sql, clock }: Pick<Deps, 'sql' | 'clock'>,
  query: SnapshotQuery,
): Promise<Snapshot | Fault> => {
  const now = clock().getTime();
  const asked = query.snapshot === undefined ? null : Date.parse(query.snapshot);
  if (asked !== null && asked > now - settle_ms) {
    return refuseField('query.snapshot', `Must lie at least ${settle_ms / 1000} s back.`);
  }
  if (query.as_of !== undefined && Date.parse(query.as_of) > now) {
    return refuseField('query.as_of', 'Must not lie in the future.');
  }
  const settled = Math.floor(now - settle_ms - (await readOldestMs(sql)));
  if (asked !== null && asked > settled) {
    return refuse(common_faults.UNAVAILABLE, { headers: { 'Retry-After': '5' } });
  }
  const snapshot = new Date(asked ?? settled);
  const as_of = new Date(Math.min(Date.parse(query.as_of ?? '') || settled, snapshot.getTime()));
  return { snapshot, as_of, log_offset: await readOffsetAt(sql, snapshot) };
};
