import { addAbortSignal } from 'node:stream';
import type { Db, Sql } from '../../kit/pg/client.js';

/**
 * Rows of a statement as Postgres sends them: `copy … to stdout` in one read-only transaction.
 *
 * `copy` takes no parameters: values go in as settings of the transaction, and the statement reads
 * them by `setting`. The binary format is the only one that leaves a text as it is.
 */

const setting_prefix = 'export';

export type Settings = Readonly<Record<string, string>>;

/** SQL: a setting of the transaction, read once for a statement. */
export const setting = (name: string, type: string): string =>
  `(select current_setting('${setting_prefix}.${name}')::${type})`;

const putSettings = (tx: Db, settings: Settings) => tx`
  select set_config(${`${setting_prefix}.`} || key, value, true)
  from json_each_text(${JSON.stringify(settings)}::text::json)`;

/** Lines of text, each with the separator before it but for the first of all. */
export interface Lines {
  readonly rows: number;
  readonly text: Buffer;
}

export interface Selected {
  /** Selects one text a row. */
  readonly select: string;
  readonly settings: Settings;
}

export interface CopyOptions {
  readonly separator: string;
  /** Ends the copy, whatever it waits for. */
  readonly signal: AbortSignal;
}

export const copyLines = (
  sql: Sql,
  { select, settings }: Selected,
  { separator, signal }: CopyOptions,
): AsyncGenerator<Lines> => {
  const text = `copy (${select}) to stdout (format binary)`;
  const before = (tx: Db) => putSettings(tx, settings);
  const copied = sql.copyOut(text, { mode: 'read only', before });
  return readTuples(addAbortSignal(signal, copied), Buffer.from(separator));
};

/** Longest that rows are counted. */
const count_ms = 60_000;

export const countRows = (sql: Sql, { select, settings }: Selected): Promise<number> =>
  sql.begin({ mode: 'read only', statement_ms: count_ms }, async (tx) => {
    await putSettings(tx, settings);
    const [row] = await tx.unsafe<{ count: number }[]>(
      `select count(*)::integer as count from (${select}) counted`,
    );
    return row?.count ?? 0;
  });

/** Signature, flags and the length of an extension that no version has. */
const header_bytes = 19;
/** Number of columns (int16) and length of the only one (int32). */
const tuple_head_bytes = 6;
const end_mark = -1;

/**
 * The file format of `copy … (format binary)`: a header, then the tuples, then a mark. Without the
 * mark the rows are not all there.
 */
async function* readTuples(
  chunks: AsyncIterable<Buffer>,
  separator: Buffer,
): AsyncGenerator<Lines> {
  let rest: Buffer = Buffer.alloc(0);
  let to_skip = header_bytes;
  let is_first = true;
  for await (const chunk of chunks) {
    const bytes = rest.byteLength === 0 ? chunk : Buffer.concat([rest, chunk]);
    let at = Math.min(to_skip, bytes.byteLength);
    to_skip -= at;
    let used = 0;
    let rows = 0;
    while (at + tuple_head_bytes <= bytes.byteLength) {
      const from = at + tuple_head_bytes;
      const to = from + bytes.readInt32BE(from - 4);
      if (to > bytes.byteLength) break;
      // In place: a separator is shorter than the head of a tuple.
      if (!is_first) used += separator.copy(bytes, used);
      bytes.copyWithin(used, from, to);
      used += to - from;
      is_first = false;
      rows += 1;
      at = to;
    }
    rest = bytes.subarray(at);
    if (rows > 0) yield { rows, text: bytes.subarray(0, used) };
  }
  if (rest.byteLength !== 2 || rest.readInt16BE() !== end_mark) {
    throw new Error('Postgres ended a copy before its end.');
  }
}
