import type { Db } from './client.js';

/** Parts of queries that many stores share: one row, one number, a page of a list. */

type Rows<R> = PromiseLike<readonly R[]>;

/** The first row; undefined where there is none. */
export const firstRow = async <R>(rows: Rows<R>): Promise<R | undefined> => (await rows)[0];

/** The number that a query selects as `total`; 0 without a row. */
export const readTotal = async (rows: Rows<{ readonly total: number }>): Promise<number> =>
  (await rows)[0]?.total ?? 0;

interface Page {
  readonly after: readonly unknown[] | null;
  readonly limit: number;
  readonly offset: number;
}

/** Each is a statement of its own to Postgres, so there are few. */
const page_sizes = [11, 21, 51, 101];

/**
 * At least one row more than the page, to know whether it ends. The number is a part of the
 * statement: a plan that does not know it is made for a tenth of all rows, and reads whole tables.
 */
export const limitToPage = (db: Db, { limit, offset }: Omit<Page, 'after'>) => {
  const size = page_sizes.find((one) => one > limit);
  return db`
    limit ${size === undefined ? limit + 1 : db.unsafe(String(size))}
    ${offset === 0 ? db`` : db`offset ${offset}`}`;
};

/**
 * The end of a statement whose conditions stand before it: rows by a UUID, the newest first, after
 * the page's cursor, and at least one row more than the page.
 */
export const newestFirst = (db: Db, id: string, page: Page) => db`
  ${page.after === null ? db`` : db`and ${db(id)} < ${page.after[0] as string}::uuid`}
  order by ${db(id)} desc
  ${limitToPage(db, page)}`;

/** After every text that begins with the one before it. */
const last_sign = '\u{10ffff}';

/** Whether a column begins with a text; an index in the order of "C" finds it. */
export const startsWith = (db: Db, column: string, start: string) => db`
  ${db(column)} collate "C" >= ${start} and ${db(column)} collate "C" < ${start + last_sign}`;
