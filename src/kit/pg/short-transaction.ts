import type { PendingQuery, Row } from 'postgres';
import type { Sql, Tx } from './client.js';

/** Sends a statement; none may follow it. */
export type SendLast = <R extends readonly (Row | undefined)[]>(
  statement: PendingQuery<R>,
) => PromiseLike<R>;

/** Sends a statement after which others may come. */
export const sendOne: SendLast = (statement) => statement;

/** Sends a statement at once, so that nothing that is sent later comes before it. */
export const sendNow: SendLast = (statement) => statement.execute();

/** Awaited later; a connection that is lost must not end the process before that. */
const send = (statement: PendingQuery<Row[]>): Promise<unknown> => {
  const sent = statement.execute();
  sent.catch(() => undefined);
  return sent;
};

/**
 * A transaction with fewer round trips than `sql.begin` has: it begins together with its first
 * statements, and where the last one is sent by `sendLast` it ends together with that. When a
 * statement before the commit failed, Postgres rolls back instead, and `run` must reject by it.
 */
export const inShort = async <T>(
  sql: Sql,
  run: (tx: Tx, sendLast: SendLast) => Promise<T>,
): Promise<T> => {
  const held = await sql.reserve();
  let ended: Promise<unknown> | undefined;
  try {
    const begun = send(held`begin`);
    const result = await run(held as unknown as Tx, (statement) => {
      // Both at once: a statement that is only awaited would be sent after the commit.
      const sent = statement.execute();
      ended = send(held`commit`);
      return sent;
    });
    await begun;
    await (ended ?? send(held`commit`));
    return result;
  } catch (error) {
    await send(held`rollback`).catch(() => undefined);
    throw error;
  } finally {
    held.release();
  }
};

/**
 * A transaction on a connection that is alone in its pool, so that the next one is sent while this
 * one is under way: `run` sends all of its statements at once (`sendNow`), before it waits for any;
 * one that is only awaited would come after the commit. When one of them fails, Postgres makes a
 * rollback of the commit, and `run` must reject by it.
 */
export const inLine = async <T>(line: Sql, run: (tx: Tx) => Promise<T>): Promise<T> => {
  const begun = send(line`begin`);
  const work = run(line as unknown as Tx);
  const ended = send(line`commit`);
  const result = await work;
  await begun;
  await ended;
  return result;
};
