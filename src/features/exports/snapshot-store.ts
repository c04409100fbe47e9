import type { Db } from '../../db/client.js';
import type { Deps } from '../../http/deps.js';
import { common_faults, type Fault, refuse, refuseFields } from '../../kit/fault.js';

/**
 * An export contains exactly the rows that were recorded before `snapshot`. Ids grow with time, and
 * an id is made shortly before the transaction that records it. `snapshot` is earlier than every
 * transaction that may still write. So no row from before `snapshot` can be added later.
 */
export interface Snapshot {
  readonly snapshot: Date;
  readonly as_of: Date;
  /** To miss nothing after the export, follow the log after this offset. */
  readonly log_offset: number;
}

/** Postgres shows the connections of exports with this suffix after the program's name. */
export const connection_name = 'exports';

/**
 * Maximum time between the creation of an id and the start of its transaction, including clock
 * differences.
 */
const settle_ms = 2_000;
/** A transaction of the service that has written nothing yet ends within this time. */
const longest_before_write = '60 s';

/**
 * Returns when the oldest transaction that may write started; null if no such transaction is open.
 * Ignores connections of exports, because they only read.
 */
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

/** Returns the offset of the newest event recorded up to a moment; 0 if there is no such event. */
const readOffsetAt = async (db: Db, at: Date): Promise<number> => {
  const [row] = await db<{ offset: number }[]>`
    select "offset"
    from events
    where recorded_at <= ${at} and recorded_on <= ${at}::timestamptz::date
    order by "offset" desc
    limit 1`;
  return row?.offset ?? 0;
};

const refuseField = (path: string, message: string): Fault => refuseFields([{ path, message }]);

/** Refuses an `as_of` in the future; null if it is valid or missing. */
export const refuseAhead = (as_of: string | undefined, now: Date): Fault | null =>
  as_of === undefined || Date.parse(as_of) <= now.getTime()
    ? null
    : refuseField('query.as_of', 'must not be in the future');

export const takeSnapshot = async (
  { sql, clock }: Pick<Deps, 'sql' | 'clock'>,
  query: { readonly snapshot?: string; readonly as_of?: string },
): Promise<Snapshot | Fault> => {
  const now = clock();
  const wanted = query.snapshot === undefined ? null : Date.parse(query.snapshot);
  if (wanted !== null && wanted > now.getTime() - settle_ms) {
    return refuseField('query.snapshot', `must be at least ${settle_ms / 1000} s in the past`);
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
