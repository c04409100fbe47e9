import { existsSync, statSync } from 'node:fs';
import path from 'node:path';
import { type Config, readConfig } from '../config.js';
import type { Sql, Tx } from '../db/client.js';
import { deriveKey } from '../kit/sealing.js';
import { readOrEmpty } from '../process/embedded/data-dir.js';
import { type Entry, writeArchive } from './backup/archive.js';
import { readTables, type Table, unboundStatements } from './backup/tables-store.js';
import { type Call, runCommand, Stopped, startCommand, writeLine } from './command.js';
import { type Access, withSource } from './stores.js';

/**
 * `prediction-forum backup`. A backup holds the rows of each table in the text form of Postgres'
 * COPY, in parts of a few megabytes (`tables/NAME/N.copy`). Its last part is `manifest.json`.
 * Everything is read in one transaction, so the backup shows the database as of one moment, even
 * while the service writes.
 */
export interface Manifest {
  readonly format: typeof backup_format;
  readonly made_at: string;
  /** Names of the migrations that have run on the database, in their order. */
  readonly migrations: readonly string[];
  /** Shows whether a SECRET_KEY belongs to this database; null if no key was available. */
  readonly secret_key_check: string | null;
  readonly tables: readonly TableFacts[];
}

/** A table comes before the tables that refer to it. */
interface TableFacts extends Table {
  readonly rows: number;
}

export const backup_format = 'prediction-forum backup 2';
export const manifest_name = 'manifest.json';
/** Returns the table to which a part belongs; undefined for any other entry. */
export const tableOfPart = (name: string): string | undefined =>
  /^tables\/([a-z_0-9]+)\/\d+\.copy$/.exec(name)?.[1];

const part_bytes = 4 * 1024 * 1024;

/** Yields the rows of a table in parts. No row is split, because every chunk ends with a row. */
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

/** Counts line ends. COPY writes a line end within a value as the two characters `\n`. */
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
      yield { name: `tables/${table.name}/${part}.copy`, bytes };
    }
    facts.push({ ...table, rows });
    options.say(table.name, rows);
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

interface DumpOptions {
  readonly file: string;
  readonly secret_key_check: string | null;
  readonly say: SayRows;
}

export const dumpDatabase = async (sql: Sql, options: DumpOptions): Promise<void> => {
  await sql.begin({ mode: 'isolation level repeatable read read only' }, (tx) =>
    writeArchive(options.file, entriesOf(tx, options)),
  );
};

/** Returns a check value that only shows whether two keys are equal; null if there is no key. */
export const checkOfSecretKey = ({ SECRET_KEY, DATA_DIR }: Config): string | null => {
  const key = SECRET_KEY ?? readOrEmpty(path.join(DATA_DIR, 'secret-key')).trim();
  return key === '' ? null : deriveKey(key, 'prediction-forum backup 1').toString('hex', 0, 8);
};

const help = `Usage: prediction-forum backup [FILE]

Writes the whole database, as of one moment, into one file (default backup-TIME.tar.gz). The service
may keep running. FILE must not exist yet. Once it is written, only you can read it. It contains
password hashes, e-mails and digests of keys, so protect it like the database.

FILE does not contain SECRET_KEY (or the file secret-key in DATA_DIR), because that key decrypts the
secrets in FILE. Keep a copy of the key elsewhere. Without it, all webhooks need new secrets.

prediction-forum restore FILE restores the backup.`;

/** Has no statement timeout, because each table is copied in one statement. */
export const accessFor = ({ screen }: Call): Access => ({
  name: 'backup',
  statement_timeout_ms: 0,
  say: (line) => writeLine(screen, line),
});

export type SayRows = (table: string, rows: number) => void;

/** Shows the number of rows of each table, and stores it for the result. */
export const countRowsOn = ({ screen }: Call) => {
  const tables: Record<string, number> = {};
  const say: SayRows = (table, rows) => {
    if (rows === 0) return;
    tables[table] = rows;
    writeLine(screen, `  ${table.padEnd(24)} ${rows.toLocaleString('en-US').padStart(12)}`);
  };
  return { tables, say };
};

export const runBackup = (call: Call): Promise<number> =>
  runCommand(call, {
    help,
    options: {},
    takes: [0, 1],
    after_error: 'No backup was made.',
    async work(_, [given = ''], call) {
      const time = new Date().toISOString().slice(0, 19).replaceAll(/[-:]/g, '');
      const file = given === '' ? `backup-${time}Z.tar.gz` : given;
      const config = readConfig();
      if (existsSync(file)) throw new Stopped(`${file} already exists. Name another file.`);
      const secret_key_check = checkOfSecretKey(config);
      const { tables, say } = countRowsOn(call);
      const options = { file, secret_key_check, say };
      await withSource(config, accessFor(call), (sql) => dumpDatabase(sql, options));
      const bytes = statSync(file).size;
      const size =
        bytes < 1_000_000
          ? `${Math.ceil(bytes / 1_000)} KB`
          : `${(bytes / 1_000_000).toFixed(1)} MB`;
      const key = config.SECRET_KEY === undefined ? `${config.DATA_DIR}/secret-key` : 'SECRET_KEY';
      writeLine(
        call.screen,
        `${file} is written (${size}).\n` +
          `Keep ${key} too, in another place. Only this key decrypts the secrets in the file.`,
      );
      return { code: 0, result: { file, bytes, tables } };
    },
  });

await startCommand(import.meta.filename, runBackup);
