import type { Db } from '../../db/client.js';

/** Digests of the log in Postgres. A row is a function of the log, so it does not matter who writes it. */

export interface DigestPoint {
  readonly offset: number;
  readonly digest: string;
}

/** The newest that is stored at or before an offset; null before the first. */
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
