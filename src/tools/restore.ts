import { pino } from 'pino';
import { type Config, readConfig } from '../config.js';
import { checkComplete, isEarlier } from '../db/adopt.js';
import type { Sql, Tx } from '../db/client.js';
import { applyMigrations, type Migration, readMigrations } from '../db/migrate.js';
import { makeDay } from '../db/partition-store.js';
import { emptyRedis as emptyEmbeddedRedis, stopRedisLeftover } from '../process/embedded/redis.js';
import { closeRedis, connectRedis, deleteKeys, openRedis } from '../redis/client.js';
import { DamagedFile, readArchive } from './backup/archive.js';
import {
  dropSchema,
  emptyTables,
  findOthers,
  finishTable,
  holdsContent,
  readTables,
  type Table,
} from './backup/tables-store.js';
import {
  accessFor,
  backup_format,
  checkOfSecretKey,
  countRowsOn,
  type Manifest,
  manifest_name,
  type SayRows,
  tableOfPart,
} from './backup.js';
import { type Call, runCommand, Stopped, startCommand, writeLine } from './command.js';
import { withTarget } from './stores.js';

/**
 * `prediction-forum restore`. One transaction creates the schema of the backup, inserts the rows,
 * and then runs the later migrations on them. If there is an error, the database stays unchanged.
 */

/** Reads and checks the whole file and its manifest, and changes nothing. */
export const checkBackup = async (file: string): Promise<Manifest> => {
  let manifest: Manifest | undefined;
  for await (const { name, bytes } of readArchive(file)) {
    if (name === manifest_name) manifest = JSON.parse(bytes.toString('utf8'));
  }
  if (manifest?.format !== backup_format) {
    throw new DamagedFile(`its format is not "${backup_format}"`);
  }
  return manifest;
};

/** Returns the migrations of the backup's database. Throws if this program has different ones. */
const migrationsOf = (
  { migrations: had }: Manifest,
  known: readonly Migration[],
): readonly Migration[] => {
  if (isEarlier(had)) {
    // The rows of such a backup fit into the schema of the first migration, or the restore fails.
    checkComplete(had, 'backup');
    return known.slice(0, 1);
  }
  if (had.length > known.length) {
    throw new Stopped(
      `The backup is at migration ${had.length} and this program knows ${known.length}. ` +
        'Restore it with the newer program.',
    );
  }
  const other = had.findIndex((name, at) => known[at]?.name !== name);
  if (other !== -1) throw new Stopped(`The backup has a different migration ${had[other]}.`);
  return known.slice(0, had.length);
};

interface LoadOptions {
  readonly file: string;
  readonly manifest: Manifest;
  readonly migrations: readonly Migration[];
  readonly replace: boolean;
  readonly say: SayRows;
  /** Called before the first change, when all checks have passed. */
  readonly emptyRedis: () => Promise<void>;
}

const checkTarget = async (tx: Tx, { replace }: LoadOptions): Promise<void> => {
  const others = await findOthers(tx);
  if (others.length > 0) {
    throw new Stopped(
      `The service still uses this database (${others.join(', ')}). Stop it first.`,
    );
  }
  if (!replace && (await holdsContent(tx))) {
    throw new Stopped(
      'The database is not empty. With --replace everything in it is deleted, and the backup ' +
        'replaces it.',
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
  // Skips other tables in the backup, because they do not belong to the service.
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
    say(table.name, table.rows);
  }
  await applyMigrations(tx, migrations);
};

export const loadDatabase = async (sql: Sql, options: LoadOptions): Promise<void> => {
  await sql.begin((tx) => load(tx, options));
  // Without this, the first statements would be planned as if the tables were empty.
  await sql`analyze`;
};

const help = `Usage: prediction-forum restore FILE [--replace] [--without-key]

Restores a backup into the database of this folder, or of DATABASE_URL. The service must not be
running on any machine. The whole file is checked before anything is changed, and then either all of
it is restored or nothing is. The data in Redis is deleted; the next start rebuilds it.

  --replace       delete everything in the database, if it is not empty
  --without-key   continue even if SECRET_KEY (or secret-key in DATA_DIR) is not the key of the
                  backup: everything encrypted with that key is lost, and webhooks need new secrets

Webhooks and e-mails that were not sent when the backup was made are sent after the next start.`;

const checkKey = (config: Config, { secret_key_check: wanted }: Manifest): void => {
  const found = checkOfSecretKey(config);
  if (wanted === null || found === wanted) return;
  const problem = found === null ? 'There is no' : 'This is a different';
  throw new Stopped(
    `${problem} SECRET_KEY. The secrets in the backup can only be decrypted with their own key. ` +
      `Set it, or copy your file to ${config.DATA_DIR}/secret-key. See also --without-key.`,
  );
};

/**
 * Everything in Redis (the stream, boards, tallies) belongs to the old database. The service
 * rebuilds it from the restored data.
 */
const forgetRedis = async ({ REDIS_URL, REDIS_PREFIX, DATA_DIR }: Config): Promise<void> => {
  if (REDIS_URL === undefined) {
    await stopRedisLeftover(DATA_DIR);
    return emptyEmbeddedRedis(DATA_DIR);
  }
  const log = pino({ level: 'silent' });
  const redis = openRedis({ url: REDIS_URL, name: 'backup', log, command_timeout_ms: 10_000 });
  try {
    await connectRedis(redis);
    if (redis.status !== 'ready') {
      throw new Stopped('Redis (REDIS_URL) does not answer, and its data has to be deleted first.');
    }
    await deleteKeys(redis, REDIS_PREFIX);
  } finally {
    closeRedis(redis);
  }
};

export const runRestore = (call: Call): Promise<number> =>
  runCommand(call, {
    help,
    takes: [1, 1],
    after_error: 'The database is unchanged.',
    options: { replace: { type: 'boolean' }, 'without-key': { type: 'boolean' } },
    async work({ replace = false, 'without-key': without_key }, [file = ''], call) {
      const config = readConfig();
      const manifest = await checkBackup(file);
      writeLine(call.screen, `${file} is complete. It was made at ${manifest.made_at}.`);
      if (without_key !== true) checkKey(config, manifest);
      const migrations = readMigrations();
      const emptyRedis = () => forgetRedis(config);
      const { tables, say } = countRowsOn(call);
      const options = { file, manifest, migrations, replace, emptyRedis, say };
      await withTarget(config, accessFor(call), (sql) => loadDatabase(sql, options));
      writeLine(
        call.screen,
        'Everything is restored, with the number of rows that the backup names for each table.\n' +
          'Start the service, then run: npm run verify',
      );
      return { code: 0, result: { file, made_at: manifest.made_at, tables } };
    },
  });

await startCommand(import.meta.filename, runRestore);
