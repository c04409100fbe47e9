import type { Db } from '../../db/client.js';

/**
 * Digests of the log in Postgres. A row depends on the log alone, so it does not matter which
 * process writes it.
 */

export interface DigestPoint {
  readonly offset: number;
  readonly digest: string;
}

/** Returns the newest digest stored at or before an offset; null if there is no such digest. */
export const readPoint = async (db: Db, up_to: number): Promise<DigestPoint | null> => {
  const [point] = await db<DigestPoint[]>`
    select "offset", digest
    from event_digests
    where "offset" <= ${up_to}
    order by "offset" desc
    limit 1`;
  return point ?? null;
};

export const listPoints = (db: Db, from: number, most: number) => db<DigestPoint[]>`
  select "offset", digest
  from event_digests
  where "offset" >= ${from}
  order by "offset"
  limit ${most}`;

export const addPoint = async (db: Db, { offset, digest }: DigestPoint): Promise<void> => {
  await db`
    insert into event_digests ("offset", digest)
    values (${offset}, ${digest})
    on conflict ("offset") do nothing`;
};
