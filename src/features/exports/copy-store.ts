import { openSql, type Sql } from '../../kit/pg/client.js';

/**
 * Rows of a statement as Postgres sends them: `copy … to stdout`, in one read-only transaction of a
 * connection that serves one export and is thrown away after it, because what a reader has not
 * taken cannot be skipped.
 *
 * `copy` takes no parameters: values go in as settings of the transaction, and the statement reads
 * them by `setting`. The binary format is the only one that leaves a text as it is.
 */

/** Longest that one statement, and with it one reader, may take. */
export const longest_ms = 3_600_000;

const setting_prefix = 'export';

export type Settings = Readonly<Record<string, string>>;

/** SQL: a setting of the transaction, read once for a statement. */
export const setting = (name: string, type: string): string =>
  `(select current_setting('${setting_prefix}.${name}')::${type})`;

export interface StoreOptions {
  readonly url: string;
  readonly prepare: boolean;
}

/** The name under which Postgres lists the connections of exports, which never write. */
const connection_name = 'exports';
export const application_name = `prediction-forum ${connection_name}`;

export const openExportSql = ({ url, prepare }: StoreOptions): Sql =>
  openSql({ url, pool: 1, prepare, name: connection_name, statement_timeout_ms: longest_ms });

const begin = async (sql: Sql, settings: Settings): Promise<void> => {
  await sql.unsafe('begin isolation level repeatable read read only');
  await sql`
    select set_config(${`${setting_prefix}.`} || key, value, true)
    from json_each_text(${JSON.stringify(settings)}::text::json)`;
};

/** Lines of text, each with the separator before it but for the first of all. */
export interface Lines {
  readonly rows: number;
  readonly text: Buffer;
}

export interface CopyAsk {
  /** Selects one text a row. */
  readonly select: string;
  readonly settings: Settings;
  readonly separator: string;
}

export async function* copyLines(sql: Sql, ask: CopyAsk): AsyncGenerator<Lines> {
  await begin(sql, ask.settings);
  const copying = sql.unsafe(`copy (${ask.select}) to stdout (format binary)`);
  yield* readTuples(await copying.readable(), Buffer.from(ask.separator));
}

export const countRows = async (sql: Sql, ask: Omit<CopyAsk, 'separator'>): Promise<number> => {
  await begin(sql, ask.settings);
  const [row] = await sql.unsafe<{ count: number }[]>(
    `select count(*)::integer as count from (${ask.select}) counted`,
  );
  return row?.count ?? 0;
};

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
    const text = Buffer.allocUnsafe(bytes.byteLength);
    let at = Math.min(to_skip, bytes.byteLength);
    to_skip -= at;
    let used = 0;
    let rows = 0;
    while (at + tuple_head_bytes <= bytes.byteLength) {
      const from = at + tuple_head_bytes;
      const to = from + bytes.readInt32BE(from - 4);
      if (to > bytes.byteLength) break;
      if (!is_first) used += separator.copy(text, used);
      used += bytes.copy(text, used, from, to);
      is_first = false;
      rows += 1;
      at = to;
    }
    rest = bytes.subarray(at);
    if (rows > 0) yield { rows, text: text.subarray(0, used) };
  }
  if (rest.byteLength !== 2 || rest.readInt16BE() !== end_mark) {
    throw new Error('Postgres ended a copy before its end.');
  }
}
