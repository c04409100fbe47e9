import { existsSync, statSync } from 'node:fs';
import { readConfig } from '../config.js';
import { writeArchive } from './backup/archive.js';
import { runCommand, sayRows } from './backup/command.js';
import { dumpDatabase } from './backup/dump.js';
import { checkOfSecretKey, withSource } from './backup/places.js';

/** `npm run backup`: see `--help`. */
const help = `Usage: npm run backup [-- FILE]

Writes everything that the database holds into one file (default backup-TIME.tar.gz), as of one
moment, while the service runs or rests. FILE must not exist yet; only you may read it. It holds
password hashes, mails and digests of keys: keep it as you would keep the database.

SECRET_KEY (or the file secret-key in DATA_DIR) is not in it, because it opens the secrets that are
in it. Keep a copy of it elsewhere: without it no webhook can be signed with its old secret.

npm run restore -- FILE puts it back.`;

const backup = async (file: string): Promise<void> => {
  const config = readConfig();
  if (existsSync(file)) throw new Error(`${file} is there already: name another file.`);
  const secret_key_check = checkOfSecretKey(config);
  const write = (entries: Parameters<typeof writeArchive>[1]) => writeArchive(file, entries);
  await withSource(config, (sql) => dumpDatabase(sql, { secret_key_check, say: sayRows, write }));
  const size = (statSync(file).size / 1_000_000).toFixed(1);
  console.log(`${file} is written (${size} MB).`);
  const key = config.SECRET_KEY === undefined ? `${config.DATA_DIR}/secret-key` : 'SECRET_KEY';
  console.log(`Keep ${key} too, in another place: the secrets in the file open only with it.`);
};

const time = new Date().toISOString().slice(0, 19).replaceAll(/[-:]/g, '');
await runCommand({
  ...{ help, flags: [], file: `backup-${time}Z.tar.gz`, nothing_done: 'No backup was made.' },
  work: backup,
});
