import { existsSync, mkdtempSync, rmdirSync } from 'node:fs';
import path from 'node:path';
import { type Config, ConfigError, readConfig, settings } from '../config.js';
import { openSql } from '../db/client.js';
import { readStatus } from '../process/embedded/data-dir.js';
import { embeddedPostgresVersion } from '../process/embedded/postgres-home.js';
import { probePort } from '../process/embedded/processes.js';
import { findInstaller, lookUp } from '../process/embedded/redis.js';
import { lookAtRedis } from '../redis/client.js';
import { type Call, isRunning, printable, runCommand, startCommand } from './command.js';

type Check = (config: Config) => Promise<string> | string;

const oldest_postgres = 14;

const say = (line: string): void => console.log(printable(line));

const maskUrl = (text: string): string =>
  /^[a-z]+:\/\//.test(text) ? text.replace(/:[^:@/]*@/, ':***@') : '***';

const show = (name: string, value: unknown, secret: boolean): string => {
  if (value === undefined || value === '') return '-';
  if (Array.isArray(value)) return value.length === 0 ? '-' : value.join(',');
  if (!secret) return String(value);
  if (name === 'REDIS_URL' && String(value).startsWith('unix:')) return String(value);
  return name.endsWith('_URL') ? maskUrl(String(value)) : '***';
};

const not_set = 'default';

const sourceOf = (name: string): string => {
  const isSet = (key: string): boolean => (process.env[key] ?? '') !== '';
  const names = [`PF_${name}`, name, `PF_${name}_FILE`, `${name}_FILE`];
  return names.find(isSet) ?? not_set;
};

const printSettings = (config: Partial<Config>): void => {
  say('Settings');
  for (const [name, { secret }] of Object.entries(settings)) {
    const source = sourceOf(name);
    // One that is not right is in none of the values, whatever set it.
    const is_wrong = !(name in config) && source !== not_set;
    const value = is_wrong ? 'WRONG' : show(name, config[name as keyof Config], secret === true);
    say(`  ${name.padEnd(28)} ${value.padEnd(32)} ${source}`);
  }
};

const checkDataDir: Check = ({ DATA_DIR }) => {
  let folder = DATA_DIR;
  while (!existsSync(folder)) folder = path.dirname(folder);
  // Really tried: the rights of a folder do not tell of file systems that take no files.
  rmdirSync(mkdtempSync(path.join(folder, 'doctor-')));
  return folder === DATA_DIR ? `${DATA_DIR} can be written` : `${DATA_DIR} can be made`;
};

const checkPort: Check = async ({ PORT, HOST, DATA_DIR }) => {
  const { url } = readStatus(DATA_DIR);
  if (isRunning(DATA_DIR) && url !== undefined) return `the service runs at ${url}`;
  const problem = await probePort(PORT, HOST);
  if (problem !== null) throw new Error(`${PORT} on ${HOST} cannot be used (${problem})`);
  return `${PORT} on ${HOST} is free`;
};

const checkPostgres: Check = async ({ DATABASE_URL, DATABASE_PREPARE }) => {
  if (DATABASE_URL === undefined) return `embedded ${embeddedPostgresVersion()}`;
  const sql = openSql({ url: DATABASE_URL, pool: 1, prepare: DATABASE_PREPARE, name: 'doctor' });
  try {
    const [row] = await sql<{ version: string; commit: string; jit: string; may: boolean }[]>`
      select current_setting('server_version') as version,
        current_setting('synchronous_commit') as commit,
        current_setting('jit') as jit,
        has_schema_privilege('public', 'create') as may`;
    const { version = '0', commit = '', jit = '', may = false } = row ?? {};
    if (Number.parseInt(version, 10) < oldest_postgres) {
      throw new Error(`${version} is too old; ${oldest_postgres} or newer is needed`);
    }
    if (commit === 'off')
      throw new Error('synchronous_commit is off: acknowledged work can be lost');
    if (!may) throw new Error('this user may not create tables in the schema public');
    const jit_note =
      jit === 'off' ? 'is off' : 'is on: npm start turns it off, or says why it cannot';
    return `${version} answers; jit ${jit_note}`;
  } finally {
    await sql.end({ timeout: 1 });
  }
};

const checkRedis: Check = async ({ REDIS_URL }) => {
  if (REDIS_URL !== undefined) return lookAtRedis(REDIS_URL);
  const found = lookUp();
  if (found !== null) return `${found.command} ${found.version}`;
  if (findInstaller() !== null) return 'redis-tools will be installed with apt-get at the start';
  throw new Error('there is no redis-server: install Redis 7 or newer, or set REDIS_URL');
};

const checks: readonly (readonly [name: string, check: Check])[] = [
  ['DATA_DIR', checkDataDir],
  ['PORT', checkPort],
  ['Postgres', checkPostgres],
  ['Redis', checkRedis],
];

const runChecks = async (config: Config): Promise<number> => {
  let wrong = 0;
  say('\nChecks');
  for (const [name, check] of checks) {
    try {
      say(`    ok  ${name.padEnd(10)} ${await check(config)}`);
    } catch (error) {
      wrong += 1;
      say(`  FAIL  ${name.padEnd(10)} ${error instanceof Error ? error.message : error}`);
    }
  }
  return wrong;
};

const help = `Usage: npm run doctor

Prints every setting with its value and where it comes from, then checks what the service needs.

Exit code: 0 everything is in order, 1 something is wrong.`;

const runDoctor = (call: Call): Promise<number> =>
  runCommand(call, {
    ...{ help, takes_one: false, options: {} },
    async work() {
      try {
        const config = readConfig();
        printSettings(config);
        const wrong = await runChecks(config);
        say(wrong === 0 ? '\nEverything is in order.' : `\n${wrong} of ${checks.length} wrong.`);
        return wrong === 0 ? 0 : 1;
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error;
        printSettings(error.values);
        say(`\n${error.message}`);
        return 1;
      }
    },
  });

await startCommand(import.meta.filename, runDoctor);
