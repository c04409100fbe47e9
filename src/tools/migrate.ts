import { readConfig } from '../config.js';
import { migrate, planMigrations } from '../db/migrate.js';
import { type Call, runCommand, startCommand, writeLine } from './command.js';
import { makeAccess, withSource } from './stores.js';

const help = `Usage: prediction-forum migrate [--dry-run]

Brings the database to the schema of this program: runs each pending migration once, all of them in
one transaction. If several processes migrate, the others wait. start does this too; this command is
for deployments that migrate before the new program starts. A database with migrations from before
0001_schema.sql is adopted if it has the schema of that file.

  --dry-run   only list the migrations that would run

Exit code: 0 the database has the schema of this program (--dry-run: it can get it); 1 a
migration failed, and nothing was changed; 2 the schema is newer than this program, or so old that
an older program has to upgrade it first; 3 Postgres does not answer.`;

export const runMigrate = (call: Call): Promise<number> =>
  runCommand(call, {
    help,
    options: { 'dry-run': { type: 'boolean', default: false } },
    work({ 'dry-run': dry_run }, _, own) {
      const say = (line: string): void => writeLine(own.screen, line);
      const config = readConfig();
      return withSource(config, makeAccess(own, 'migrate'), async (sql, url) => {
        const { adopts, last, pending, known } = await planMigrations(sql);
        const planned = {
          adopted: adopts,
          applied: pending.map(({ name }) => name),
          jit_stays: null,
        };
        const { adopted, applied, jit_stays } = dry_run ? planned : await migrate(url);
        if (adopted) say(`${dry_run ? 'would adopt' : 'adopted'} a database of earlier migrations`);
        for (const name of applied) say(`${dry_run ? 'would apply' : 'applied'} ${name}`);
        if (jit_stays !== null) say(`jit stays on: ${jit_stays}`);
        const count = applied.length === 0 ? 'nothing to apply' : `${applied.length} migrations`;
        say(`The database ${dry_run ? `is at ${last} of ${known}` : `is at ${known}`}: ${count}.`);
        const from = dry_run ? last : known - applied.length;
        return { code: 0, result: { dry_run, from, to: known, adopted, applied, jit_stays } };
      });
    },
  });

await startCommand(import.meta.filename, runMigrate);
