/** Results of a query of which one row, or one number, is wanted. */

type Rows<R> = PromiseLike<readonly R[]>;

/** The first row; undefined where there is none. */
export const firstRow = async <R>(rows: Rows<R>): Promise<R | undefined> => (await rows)[0];

/** The number that a query selects as `total`; 0 without a row. */
export const readTotal = async (rows: Rows<{ readonly total: number }>): Promise<number> =>
  (await rows)[0]?.total ?? 0;
