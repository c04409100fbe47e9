import type { Db } from '../../kit/pg/client.js';

/** How Postgres names the connections of exports, after the name of the program. */
export const connection_name = 'exports';

/** A transaction of the service that has written nothing so far is over by then. */
const longest_before_write = '60 s';

/** Age of the oldest transaction that may write; exports only read. */
export const readOldestMs = async (db: Db): Promise<number> => {
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
export const readOffsetAt = async (db: Db, at: Date): Promise<number> => {
  const [row] = await db<{ offset: number }[]>`
    select "offset"
    from events
    where recorded_at <= ${at} and recorded_on <= ${at}::timestamptz::date
    order by "offset" desc
    limit 1`;
  return row?.offset ?? 0;
};
