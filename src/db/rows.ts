import type { Db, Fragment } from './client.js';

/** Parts of queries that many stores share: one row, one number, a page of a list. */

type Rows<R> = PromiseLike<readonly R[]>;

/** Returns the first row, or undefined. */
export const firstRow = async <R>(rows: Rows<R>): Promise<R | undefined> => (await rows)[0];

/** Returns the number that a query selects as `total`, or 0 if there is no row. */
export const readTotal = async (rows: Rows<{ readonly total: number }>): Promise<number> =>
  (await rows)[0]?.total ?? 0;

interface Page {
  readonly after: readonly unknown[] | null;
  readonly limit: number;
  readonly offset: number;
}

/** A few sizes, because Postgres prepares a separate statement for each. */
const page_sizes = [11, 21, 51, 101];

/**
 * Fetches at least one row more than the page, to see whether the page is the last. The number is
 * in the text of the statement: with a parameter, Postgres would read whole tables.
 */
export const limitToPage = (db: Db, { limit, offset }: Omit<Page, 'after'>) => {
  const size = page_sizes.find((one) => one > limit);
  return db`
    limit ${size === undefined ? limit + 1 : db.unsafe(String(size))}
    ${offset === 0 ? db`` : db`offset ${offset}`}`;
};

/**
 * The end of a statement, after its conditions: rows after the page's cursor, by UUID with the
 * newest first, and at least one row more than the page.
 */
export const newestFirst = (db: Db, id: string, page: Page) => db`
  ${page.after === null ? db`` : db`and ${db(id)} < ${page.after[0] as string}::uuid`}
  order by ${db(id)} desc
  ${limitToPage(db, page)}`;

/** A time to the microsecond, for cursors. A `Date` would lose the last three digits. */
export const timeKey = (db: Db, time: Fragment) => db`
  to_char(${time} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

/** A string S followed by this character sorts after every string that starts with S. */
const last_sign = '\u{10ffff}';

/** The condition that a column starts with a string. An index with collation "C" supports it. */
export const startsWith = (db: Db, column: string, start: string) => db`
  ${db(column)} collate "C" >= ${start} and ${db(column)} collate "C" < ${start + last_sign}`;
