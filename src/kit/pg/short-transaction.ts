import type { Query, Sql, Tx } from './client.js';

/** Sends a statement; none may follow it. */
export type SendLast = <R extends readonly (object | undefined)[]>(statement: Query<R>) => Query<R>;

/** Sends a statement after which others may come. */
export const sendOne: SendLast = (statement) => statement;

/** Sends a statement at once, so that nothing that is sent later comes before it. */
export const sendNow: SendLast = (statement) => statement.execute();

/** A transaction that ends together with what is sent by `sendLast`, where there is such. */
export const inShort = <T>(sql: Sql, run: (tx: Tx, sendLast: SendLast) => Promise<T>): Promise<T> =>
  sql.begin((tx) => run(tx, (statement) => tx.commitAfter(statement)));

/** A transaction on a connection that is alone in its pool. */
export const inLine = <T>(line: Sql, run: (tx: Tx) => Promise<T>): Promise<T> => line.begin(run);
