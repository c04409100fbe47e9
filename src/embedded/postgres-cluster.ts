import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { runAs } from './account.js';
import { makeSecret, syncFolder, writeWhole } from './files.js';
import { notePlace, type PostgresHome } from './postgres-home.js';
import { lastLines, readOrEmpty, type Say } from './processes.js';

/** The cluster of an embedded Postgres before any server runs on it, and the access to it. */
/** What of the options of a start matters to the cluster. */
export interface ClusterOptions {
  readonly say: Say;
  readonly durable?: boolean;
}

export interface Access {
  readonly port: number;
  readonly password: string;
  readonly admin_password: string;
}

/**
 * The cluster is made beside its place and moved there when it is complete, so that a half-made
 * one never counts. Its passwords are saved before; lost ones are replaced.
 */
export const prepareCluster = (
  data_dir: string,
  home: PostgresHome,
  { say, durable = true }: ClusterOptions,
): Access => {
  const found = readAccess(data_dir);
  const made = { port: 0, password: makeSecret(24), admin_password: makeSecret(24) };
  if (existsSync(home.cluster)) {
    checkVersion(home);
    if (found !== null) return found;
    runSingle(home, home.cluster, passwordStatements(made, 'alter'));
    saveAccess(data_dir, made);
    return made;
  }
  say('Making a new Postgres database …');
  const parent = path.dirname(home.cluster);
  for (const name of readdirSync(parent)) {
    if (name.startsWith('postgres.new-')) rmSync(path.join(parent, name), { recursive: true });
  }
  const fresh = path.join(parent, `postgres.new-${process.pid}`);
  initCluster(home, fresh, durable);
  runSingle(home, fresh, [
    ...passwordStatements(made, 'create'),
    'grant pg_checkpoint, pg_monitor to forum;',
    'create database forum owner forum;',
  ]);
  saveAccess(data_dir, made);
  renameSync(fresh, home.cluster);
  syncFolder(parent);
  notePlace(data_dir, home.cluster);
  return made;
};

const checkVersion = ({ cluster, version }: PostgresHome): void => {
  const found = readOrEmpty(path.join(cluster, 'PG_VERSION')).trim();
  if (found !== version.split('.')[0]) {
    throw new Error(
      `${cluster} was made by Postgres ${found} and this is ${version}: dump it with the old ` +
        'version and load it into the new one.',
    );
  }
};

const passwordStatements = (access: Access, verb: 'create' | 'alter'): readonly string[] => [
  `alter role postgres password '${access.admin_password}';`,
  `${verb} role forum ${verb === 'create' ? 'login ' : ''}password '${access.password}';`,
];

/**
 * Who may connect: whoever has a password, by the socket or over TCP from this machine. Written
 * before every start of a server.
 */
export const writeRules = (cluster: string): void => {
  const rules = 'local all all scram-sha-256\nhost all all 127.0.0.1/32 scram-sha-256\n';
  const file = path.join(cluster, 'pg_hba.conf');
  // On a full disk writing them anew would leave none.
  if (readOrEmpty(file) !== rules) writeFileSync(file, rules);
};

export const server_env = { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' };

const initCluster = (home: PostgresHome, folder: string, durable: boolean): void => {
  const { account, bin } = home;
  mkdirSync(folder, { mode: 0o700 });
  if (account !== null) chownSync(folder, account.uid, account.gid);
  const { ok, output } = runAs(
    [
      path.join(bin, 'initdb'),
      `--pgdata=${folder}`,
      '--username=postgres',
      '--encoding=UTF8',
      '--locale-provider=builtin',
      '--builtin-locale=C.UTF-8',
      '--locale=C',
      '--data-checksums',
      '--auth=trust',
      '--no-instructions',
      ...(durable ? [] : ['--no-sync']),
    ],
    { account, env: server_env },
  );
  if (!ok) {
    rmSync(folder, { recursive: true, force: true });
    throw new Error(`The Postgres database could not be made:\n${lastLines(output)}`);
  }
};

/** Runs statements, one a line, in a server without a network. */
const runSingle = (home: PostgresHome, cluster: string, lines: readonly string[]): void => {
  const { ok, output } = runAs(
    [
      path.join(home.bin, 'postgres'),
      '--single',
      '-c',
      'exit_on_error=on',
      '-D',
      cluster,
      'postgres',
    ],
    { account: home.account, env: server_env, input: `${lines.join('\n')}\n` },
  );
  if (!ok) throw new Error(`Postgres could not be set up:\n${lastLines(output)}`);
};

export const accessFile = (data_dir: string): string => path.join(data_dir, 'postgres.json');

export const saveAccess = (data_dir: string, access: Access): void =>
  writeWhole(accessFile(data_dir), `${JSON.stringify(access)}\n`);

export const readAccess = (data_dir: string): Access | null => {
  try {
    const found: Partial<Access> = JSON.parse(readFileSync(accessFile(data_dir), 'utf8'));
    const { port, password, admin_password } = found;
    return port && password && admin_password ? { port, password, admin_password } : null;
  } catch {
    return null;
  }
};
