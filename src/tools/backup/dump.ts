import type { Sql, Tx } from '../../kit/pg/client.js';
import type { Entry } from './archive.js';
import { type Line, readTables, type Table, unboundStatements } from './tables-store.js';

/**
 * What a backup holds of the database: for each table its rows in the text form of Postgres' COPY,
 * in parts of some megabytes (`tables/NAME/N.copy`), then `manifest.json`. All of it is read in one
 * transaction, so it is the database of one moment, whatever goes on meanwhile.
 */
export interface Manifest {
  readonly format: typeof backup_format;
  readonly made_at: string;
  /** Names of the migrations that the database has had, in their order. */
  readonly migrations: readonly string[];
  /** Tells whether a SECRET_KEY is the one of this database; null where none was at hand. */
  readonly secret_key_check: string | null;
  readonly tables: readonly TableFacts[];
}

/** Tables that others refer to come before those others. */
export interface TableFacts extends Table {
  readonly rows: number;
}

export const backup_format = 'prediction-forum backup 1';
export const manifest_name = 'manifest.json';
export const partName = (table: string, part: number): string => `tables/${table}/${part}.copy`;
/** The table of a part; undefined for any other entry. */
export const tableOfPart = (name: string): string | undefined =>
  /^tables\/([a-z_0-9]+)\/\d+\.copy$/.exec(name)?.[1];

const part_bytes = 4 * 1024 * 1024;

/** The rows of a table in parts that end with a row, because every chunk does. */
async function* partsOf(tx: Tx, { name, columns }: Table): AsyncGenerator<Buffer> {
  const list = columns.map((column) => `"${column}"`).join(', ');
  const rows = tx.copyOut(`copy (select ${list} from "${name}") to stdout`);
  let held: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of rows) {
    held.push(chunk);
    bytes += chunk.length;
    if (bytes < part_bytes) continue;
    yield Buffer.concat(held);
    held = [];
    bytes = 0;
  }
  if (bytes > 0) yield Buffer.concat(held);
}

/** Line ends within a value are written `\n` as two characters. */
const countRows = (bytes: Buffer): number => {
  let rows = 0;
  for (let at = bytes.indexOf(10); at !== -1; at = bytes.indexOf(10, at + 1)) rows += 1;
  return rows;
};

async function* entriesOf(tx: Tx, options: DumpOptions): AsyncGenerator<Entry> {
  await unboundStatements(tx);
  const { tables, migrations } = await readTables(tx);
  const facts: TableFacts[] = [];
  for (const table of tables) {
    let rows = 0;
    let part = 0;
    for await (const bytes of partsOf(tx, table)) {
      part += 1;
      rows += countRows(bytes);
      yield { name: partName(table.name, part), bytes };
    }
    facts.push({ ...table, rows });
    options.say({ table: table.name, rows });
  }
  const manifest: Manifest = {
    format: backup_format,
    made_at: new Date().toISOString(),
    migrations,
    secret_key_check: options.secret_key_check,
    tables: facts,
  };
  yield { name: manifest_name, bytes: Buffer.from(`${JSON.stringify(manifest, null, 1)}\n`) };
}

export interface DumpOptions {
  readonly secret_key_check: string | null;
  readonly say: (line: Line) => void;
  /** Takes the entries to their end. */
  readonly write: (entries: AsyncIterable<Entry>) => Promise<void>;
}

export const dumpDatabase = async (sql: Sql, options: DumpOptions): Promise<void> => {
  await sql.begin('isolation level repeatable read read only', (tx) =>
    options.write(entriesOf(tx, options)),
  );
};
