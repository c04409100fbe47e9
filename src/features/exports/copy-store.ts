import { addAbortSignal } from 'node:stream';
import type { Db, Sql, Tx } from '../../db/client.js';

/**
 * Reads the rows of a statement as Postgres sends them, with `copy … to stdout` in one read-only
 * transaction.
 *
 * `copy` takes no parameters. So values become settings of the transaction, and the statement reads
 * them with `setting`. The format is CSV, because the text format doubles backslashes. The
 * delimiter and the quote are bytes that JSON never contains, so the lines arrive unchanged.
 */

export interface Selected {
  readonly select: string;
  readonly settings: Readonly<Record<string, string>>;
}

const setting_prefix = 'export';
const json_lines = `(format csv, delimiter e'\\x01', quote e'\\x02')`;

/** SQL: a setting of the transaction. It is read once per statement. */
export const setting = (name: string, type: string): string =>
  `(select current_setting('${setting_prefix}.${name}')::${type})`;

const putSettings = (tx: Db, settings: Selected['settings']) => tx`
  select set_config(${`${setting_prefix}.`} || key, value, true)
  from json_each_text(${JSON.stringify(settings)}::text::json)`;

/** Whole lines of JSON. Each one ends with a line feed. */
export interface Lines {
  readonly rows: number;
  readonly text: Buffer;
}

const line_feed = 0x0a;

const countLines = (text: Buffer): number => {
  let count = 0;
  for (let at = text.indexOf(line_feed); at !== -1; at = text.indexOf(line_feed, at + 1))
    count += 1;
  return count;
};

/** Reads a statement that selects one JSON text per row. Stops if `signal` is aborted. */
export async function* copyLines(
  sql: Sql,
  { select, settings }: Selected,
  signal: AbortSignal,
): AsyncGenerator<Lines> {
  const copied = sql.copyOut(`copy (${select}) to stdout ${json_lines}`, {
    mode: 'read only',
    before: (tx) => putSettings(tx, settings),
  });
  yield* linesOf(addAbortSignal(signal, copied));
}

/** Does the same as `copyLines`, inside a transaction that continues afterwards. */
export async function* copyLinesIn(tx: Tx, { select, settings }: Selected): AsyncGenerator<Lines> {
  await putSettings(tx, settings);
  yield* linesOf(tx.copyOut(`copy (${select}) to stdout ${json_lines}`));
}

async function* linesOf(copied: AsyncIterable<unknown>): AsyncGenerator<Lines> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of copied) {
    const bytes = Buffer.concat([rest, chunk as Buffer]);
    const end = bytes.lastIndexOf(line_feed) + 1;
    const text = bytes.subarray(0, end);
    rest = bytes.subarray(end);
    if (end > 0) yield { rows: countLines(text), text };
  }
}

/** Time limit for reading or counting the rows of a statement. */
const sum_ms = 60_000;

/** Returns all rows at once. Only for statements with few rows. */
export const readSelected = <R>(sql: Sql, { select, settings }: Selected): Promise<R[]> =>
  sql.begin({ mode: 'read only', statement_ms: sum_ms }, async (tx) => {
    await putSettings(tx, settings);
    return tx.unsafe<R[] & object[]>(select);
  });

export const countRows = async (sql: Sql, { select, settings }: Selected): Promise<number> => {
  const counting = `select count(*)::integer as count from (${select}) counted`;
  const [row] = await readSelected<{ count: number }>(sql, { select: counting, settings });
  return row?.count ?? 0;
};
