import type { Db } from '../../db/client.js';
import type { Deps } from '../../http/deps.js';
import { common_faults, type Fault, refuse } from '../../kit/fault.js';

/**
 * The moment an export stands for: what was recorded before it, and nothing else. Ids are made in
 * the order of time and a little before the transaction that records them, so the moment lies
 * before every transaction that may still write: nothing can be added to what is older.
 */
export interface Snapshot {
  readonly snapshot: Date;
  readonly as_of: Date;
  /** Follow the log after this offset to miss nothing that came after the export. */
  readonly log_offset: number;
}

/** How Postgres names the connections of exports, after the name of the program. */
export const connection_name = 'exports';

/** From an id to the beginning of its transaction, at most; and how far clocks may differ. */
const settle_ms = 2_000;
/** A transaction of the service that has written nothing so far is over by then. */
const longest_before_write = '60 s';

/** When the oldest transaction began that may write; null for none. Exports only read. */
const readOldest = async (db: Db): Promise<Date | null> => {
  const [row] = await db<{ began_at: Date | null }[]>`
    select min(xact_start) as began_at
    from pg_stat_activity
    where datname = current_database()
      and backend_type = 'client backend'
      and pid <> pg_backend_pid()
      and application_name not like ${`% ${connection_name}`}
      and (
        backend_xid is not null
        or xact_start > clock_timestamp() - ${longest_before_write}::interval
      )`;
  return row?.began_at ?? null;
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

/** The refusal of an `as_of` that lies ahead; null where it does not, or is not given. */
export const refuseAhead = (as_of: string | undefined, now: Date): Fault | null =>
  as_of === undefined || Date.parse(as_of) <= now.getTime()
    ? null
    : refuseField('query.as_of', 'Must not lie in the future.');

export const takeSnapshot = async (
  { sql, clock }: Pick<Deps, 'sql' | 'clock'>,
  query: { readonly snapshot?: string; readonly as_of?: string },
): Promise<Snapshot | Fault> => {
  const now = clock();
  const wanted = query.snapshot === undefined ? null : Date.parse(query.snapshot);
  if (wanted !== null && wanted > now.getTime() - settle_ms) {
    return refuseField('query.snapshot', `Must lie at least ${settle_ms / 1000} s back.`);
  }
  const ahead = refuseAhead(query.as_of, now);
  if (ahead !== null) return ahead;
  const oldest = await readOldest(sql);
  const settled = Math.min(now.getTime(), oldest?.getTime() ?? Infinity) - settle_ms;
  if (wanted !== null && wanted > settled) {
    return refuse(common_faults.UNAVAILABLE, { headers: { 'Retry-After': '5' } });
  }
  const snapshot = new Date(wanted ?? settled);
  const as_of = new Date(Math.min(Date.parse(query.as_of ?? '') || settled, snapshot.getTime()));
  return { snapshot, as_of, log_offset: await readOffsetAt(sql, snapshot) };
};
