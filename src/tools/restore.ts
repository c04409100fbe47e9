import { type Config, readConfig } from '../config.js';
import { readMigrations } from '../kit/pg/migrate.js';
import { runCommand, sayRows } from './backup/command.js';
import type { Manifest } from './backup/dump.js';
import { checkBackup, loadDatabase } from './backup/load.js';
import { checkOfSecretKey, forgetRedis, withTarget } from './backup/places.js';

/** `npm run restore`: see `--help`. */
const help = `Usage: npm run restore -- FILE [--replace] [--without-key]

Puts a backup into the database of this folder, or of DATABASE_URL. The service must not run, on no
machine. The whole file is checked before anything is changed, and then all of it comes in or
nothing. What Redis keeps is emptied; the next start makes it again.

  --replace       the database is not empty, and everything in it may be deleted
  --without-key   go on although SECRET_KEY (or secret-key in DATA_DIR) is not the one of the
                  backup: what was sealed with that one is lost, and webhooks need new secrets

Webhooks and mails that had not gone out when the backup was made go out after the next start.`;

const checkKey = (config: Config, { secret_key_check: wanted }: Manifest): void => {
  const found = checkOfSecretKey(config);
  if (wanted === null || found === wanted) return;
  const problem = found === null ? 'There is no' : 'This is another';
  throw new Error(
    `${problem} SECRET_KEY, and the secrets in the backup open only with the one they were made ` +
      `with: set it, or put the file into ${config.DATA_DIR}/secret-key. See also --without-key.`,
  );
};

await runCommand({
  ...{ help, flags: ['replace', 'without-key'], nothing_done: 'The database is as it was.' },
  async work(file, isSet) {
    const config = readConfig();
    console.log(`Checking ${file} …`);
    const manifest = await checkBackup(file);
    console.log(`It is whole, and was made at ${manifest.made_at}.`);
    if (!isSet('without-key')) checkKey(config, manifest);
    const migrations = readMigrations();
    const emptyRedis = () => forgetRedis(config);
    const options = { file, manifest, migrations, replace: isSet('replace'), emptyRedis };
    await withTarget(config, (sql) => loadDatabase(sql, { ...options, say: sayRows }));
    console.log('Everything is back. Start the service, and then look with: npm run verify');
  },
});
