import { existsSync, statSync } from 'node:fs';
import path from 'node:path';
import { type Config, readConfig } from '../config.js';
import { openSql, type Sql, type Tx } from '../db/client.js';
import { deriveKey } from '../kit/sealing.js';
import { claimDataDir, readOrEmpty } from '../process/embedded/data-dir.js';
import { embeddedPostgresUrl, startPostgres } from '../process/embedded/postgres.js';
import { type Entry, writeArchive } from './backup/archive.js';
import { readTables, type Table, unboundStatements } from './backup/tables-store.js';
import { type Call, isRunning, runCommand, Stopped, startCommand, writeLine } from './command.js';

/**
 * `npm run backup`. A backup holds for each table its rows in the text form of Postgres' COPY, in
 * parts of some megabytes (`tables/NAME/N.copy`), then `manifest.json`. All of it is read in one
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
interface TableFacts extends Table {
  readonly rows: number;
}

export const backup_format = 'prediction-forum backup 2';
export const manifest_name = 'manifest.json';
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

const withSql = async <T>(
  url: string,
  { DATABASE_PREPARE: prepare }: Config,
  use: (sql: Sql) => Promise<T>,
): Promise<T> => {
  const sql = openSql({ url, pool: 1, prepare, name: 'backup', statement_timeout_ms: 0 });
  try {
    return await use(sql);
  } finally {
    await sql.end({ timeout: 1 });
  }
};

/** The database to write into, with the folder to itself: no service may run on it. */
export const withTarget = async <T>(config: Config, use: (sql: Sql) => Promise<T>): Promise<T> => {
  const { DATA_DIR, DATABASE_URL } = config;
  const claim = await claimDataDir(DATA_DIR);
  try {
    if (DATABASE_URL !== undefined) return await withSql(DATABASE_URL, config, use);
    const postgres = await startPostgres({ data_dir: DATA_DIR, say: console.log });
    try {
      return await withSql(postgres.url, config, use);
    } finally {
      await postgres.stop();
    }
  } finally {
    claim.release();
  }
};

/** The database to read from, whether the service runs or not. */
export const withSource = async <T>(config: Config, use: (sql: Sql) => Promise<T>): Promise<T> => {
  const { DATA_DIR, DATABASE_URL } = config;
  if (DATABASE_URL !== undefined) return withSql(DATABASE_URL, config, use);
  const url = embeddedPostgresUrl(DATA_DIR);
  if (url === null) throw new Stopped(`There is no service in ${DATA_DIR}: set DATA_DIR.`);
  return isRunning(DATA_DIR) ? withSql(url, config, use) : withTarget(config, use);
};

/** Says whether two keys are the same one, and nothing else; null where there is no key. */
export const checkOfSecretKey = ({ SECRET_KEY, DATA_DIR }: Config): string | null => {
  const key = SECRET_KEY ?? readOrEmpty(path.join(DATA_DIR, 'secret-key')).trim();
  return key === '' ? null : deriveKey(key, 'prediction-forum backup 1').toString('hex', 0, 8);
};

const help = `Usage: npm run backup [-- FILE]

Writes everything that the database holds into one file (default backup-TIME.tar.gz), as of one
moment, while the service runs or rests. FILE must not exist yet; only you may read it. It holds
password hashes, mails and digests of keys: keep it as you would keep the database.

SECRET_KEY (or the file secret-key in DATA_DIR) is not in it, because it opens the secrets that are
in it. Keep a copy of it elsewhere: without it no webhook can be signed with its old secret.

npm run restore -- FILE puts it back.`;

export type SayRows = (table: string, rows: number) => void;

export const sayRowsOn =
  ({ screen }: Call): SayRows =>
  (table, rows) => {
    if (rows === 0) return;
    writeLine(screen, `  ${table.padEnd(24)} ${rows.toLocaleString('en-US').padStart(12)}`);
  };

export const runBackup = (call: Call): Promise<number> =>
  runCommand(call, {
    ...{ help, options: {}, takes_one: 'maybe', after_error: 'No backup was made.' },
    async work(_, given) {
      const time = new Date().toISOString().slice(0, 19).replaceAll(/[-:]/g, '');
      const file = given === '' ? `backup-${time}Z.tar.gz` : given;
      const config = readConfig();
      if (existsSync(file)) throw new Stopped(`${file} is there already: name another file.`);
      const secret_key_check = checkOfSecretKey(config);
      const options = { file, secret_key_check, say: sayRowsOn(call) };
      await withSource(config, (sql) => dumpDatabase(sql, options));
      const size = (statSync(file).size / 1_000_000).toFixed(1);
      const key = config.SECRET_KEY === undefined ? `${config.DATA_DIR}/secret-key` : 'SECRET_KEY';
      writeLine(
        call.screen,
        `${file} is written (${size} MB).\n` +
          `Keep ${key} too, in another place: the secrets in the file open only with it.`,
      );
      return 0;
    },
  });

await startCommand(import.meta.filename, runBackup);
