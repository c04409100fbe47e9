import type { Sql, Tx } from '../../kit/pg/client.js';
import { applyMigrations, type Migration } from '../../kit/pg/migrate.js';
import { makeDay } from '../../kit/pg/partition-store.js';
import { DamagedFile, readArchive } from './archive.js';
import { backup_format, type Manifest, manifest_name, tableOfPart } from './dump.js';
import {
  dropSchema,
  emptyTables,
  findOthers,
  finishTable,
  holdsContent,
  type Line,
  readTables,
  type Table,
} from './tables-store.js';

/**
 * Puts a backup into a database, in one transaction: the schema is made anew as it was, the rows
 * come in, then the migrations since then run on them. Any error leaves the database as it was.
 */

/** Reads the whole file and what it says of itself, and changes nothing. */
export const checkBackup = async (file: string): Promise<Manifest> => {
  let manifest: Manifest | undefined;
  for await (const { name, bytes } of readArchive(file)) {
    if (name === manifest_name) manifest = JSON.parse(bytes.toString('utf8'));
  }
  if (manifest?.format !== backup_format) {
    throw new DamagedFile(`it is no "${backup_format}"`);
  }
  return manifest;
};

/** The migrations that the database of the backup has had; throws where this program's differ. */
const migrationsOf = (
  { migrations: had }: Manifest,
  known: readonly Migration[],
): readonly Migration[] => {
  if (had.length > known.length) {
    throw new Error(
      `The backup is at migration ${had.length} and this program knows ${known.length}: ` +
        'restore it with the newer program.',
    );
  }
  const other = had.findIndex((name, at) => known[at]?.name !== name);
  if (other !== -1) throw new Error(`The backup has another migration ${had[other]}.`);
  return known.slice(0, had.length);
};

export interface LoadOptions {
  readonly file: string;
  readonly manifest: Manifest;
  /** All that this program knows. */
  readonly migrations: readonly Migration[];
  /** Whether what the database holds may be lost. */
  readonly replace: boolean;
  readonly say: (line: Line) => void;
  /** Called when nothing speaks against the restore, before the first change. */
  readonly emptyRedis: () => Promise<void>;
}

const checkTarget = async (tx: Tx, { replace }: LoadOptions): Promise<void> => {
  const others = await findOthers(tx);
  if (others.length > 0) {
    throw new Error(
      `The service still works with this database (${others.join(', ')}): stop it first.`,
    );
  }
  if (!replace && (await holdsContent(tx))) {
    throw new Error(
      'The database is not empty. With --replace everything in it is deleted and the backup takes ' +
        'its place.',
    );
  }
};

const copyIn = async (tx: Tx, { name, columns }: Table, bytes: Buffer): Promise<void> => {
  const list = columns.map((column) => `"${column}"`).join(', ');
  await tx.copyIn(`copy "${name}" (${list}) from stdin`, [bytes]);
};

const load = async (tx: Tx, options: LoadOptions): Promise<void> => {
  const { file, manifest, migrations, say } = options;
  const had = migrationsOf(manifest, migrations);
  await checkTarget(tx, options);
  await options.emptyRedis();
  await dropSchema(tx, migrations);
  await applyMigrations(tx, had);
  const made = new Set((await readTables(tx)).tables.map(({ name }) => name));
  // What else lay in the schema of the backup is not the service's.
  const tables = new Map(
    manifest.tables.filter(({ name }) => made.has(name)).map((table) => [table.name, table]),
  );
  await emptyTables(tx, [...tables.values()]);
  for (const { name, days } of tables.values()) {
    for (const day of days) await makeDay(tx, name, day);
  }
  for await (const { name, bytes } of readArchive(file)) {
    const table = tables.get(tableOfPart(name) ?? '');
    if (table !== undefined) await copyIn(tx, table, bytes);
  }
  for (const table of tables.values()) {
    await finishTable(tx, table, table.rows);
    say({ table: table.name, rows: table.rows });
  }
  await applyMigrations(tx, migrations);
};

export const loadDatabase = async (sql: Sql, options: LoadOptions): Promise<void> => {
  await sql.begin((tx) => load(tx, options));
  // Without it the first statements are planned as if the tables were empty.
  await sql`analyze`;
};
