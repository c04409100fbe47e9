import { createHash } from 'node:crypto';
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { clusterProblem } from '../../boot/machine.mjs';
import { CannotStart } from '../../kit/service.js';
import { readOrEmpty, syncFolder } from './data-dir.js';
import {
  findCluster,
  findPostgresHome,
  notePlace,
  ownerOf,
  type PostgresHome,
  runAs,
  socketFolder,
} from './postgres-home.js';
import {
  type EmbeddedStore,
  isServerOf,
  lastLines,
  type StoreOptions,
  startServer,
  stopProcesses,
} from './processes.js';

/**
 * A private Postgres in a data folder, on a unix socket that only its account can reach. Order of a
 * start: find its folders → stop processes of an earlier start → make the cluster if it is missing
 * → start → wait until it takes connections. It may be killed at any point, and the next start
 * continues from there.
 */
export interface PostgresOptions extends StoreOptions {
  /** False trades all safety for speed. Only for tests that never crash the server. */
  readonly durable?: boolean;
}

export interface EmbeddedPostgres extends EmbeddedStore {
  /** The address for the superuser. `url` is for the user that owns the database. */
  readonly admin_url: string;
  /** Folder of the cluster: in the data folder, or where its file `postgres.place` says. */
  readonly cluster: string;
}

export const startPostgres = async (options: PostgresOptions): Promise<EmbeddedPostgres> => {
  const data_dir = realpathSync(options.data_dir);
  const home = findPostgresHome(data_dir);
  if (existsSync(home.cluster)) checkVersion(home);
  else makeCluster(data_dir, home, options);
  for (let attempt = 1; ; attempt += 1) {
    await stopLeftovers(home.cluster);
    const outcome = await launch(data_dir, home, options.durable ?? true);
    if (typeof outcome !== 'string') return outcome;
    if (attempt === 3) throw new Error(`Postgres does not start:\n${outcome}`);
  }
};

/** Postgres puts this into the title of each of its processes. */
const titleOf = (cluster: string): string =>
  `pf-${createHash('sha256').update(cluster).digest('hex').slice(0, 12)}`;

const stop_steps = [
  ['SIGINT', 10_000],
  ['SIGQUIT', 3_000],
  ['SIGKILL', 2_000],
] as const;

const pidFile = (cluster: string): string => path.join(cluster, 'postmaster.pid');

/**
 * Ends the processes of a killed service. Its pid file and the lock of its socket must go too,
 * because Postgres looks only at the pid in them. While any process has that pid, Postgres refuses
 * to start, even if that process is unrelated, or dead and not yet reaped.
 */
const stopLeftovers = async (cluster: string): Promise<void> => {
  if (!existsSync(pidFile(cluster))) return;
  await stopProcesses(isServerOf(cluster), stop_steps);
  // If the postmaster is gone, the other processes end on their own, but only at their next check.
  const title = `postgres: ${titleOf(cluster)}: `;
  await stopProcesses(([first]) => first?.startsWith(title) ?? false, [['SIGKILL', 2_000]]);
  const sockets = socketFolder(cluster, ownerOf(cluster));
  for (const file of readdirSync(sockets)) {
    if (file.startsWith('.s.PGSQL.')) rmSync(path.join(sockets, file), { force: true });
  }
  rmSync(pidFile(cluster), { force: true });
};

/** Ends the processes that an earlier start left running in the data folder. */
export const stopPostgresLeftovers = async (data_dir: string): Promise<void> => {
  const cluster = findCluster(data_dir);
  if (cluster !== null) await stopLeftovers(cluster);
};

const urlOf = (cluster: string, role: 'forum' | 'postgres'): string =>
  `postgres://${role}@localhost:5432/${role}?host=${socketFolder(cluster, ownerOf(cluster))}`;

/** Returns the address of a data folder's Postgres, running or not; null if there is no cluster. */
export const embeddedPostgresUrl = (data_dir: string): string | null => {
  const cluster = findCluster(data_dir);
  return cluster === null ? null : urlOf(cluster, 'forum');
};

/**
 * Settings for a small machine. The embedded build has no lz4, and pglz costs more CPU than it
 * saves. `io_method` is sync, because workers that read ahead for one query slow all others down.
 */
const serverSettings = (durable: boolean): Record<string, string> => ({
  listen_addresses: '',
  unix_socket_permissions: '0700',
  max_connections: '200',
  shared_buffers: '256MB',
  max_wal_size: '4GB',
  checkpoint_completion_target: '0.9',
  wal_compression: 'off',
  io_method: 'sync',
  synchronous_commit: 'on',
  jit: 'off',
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_checkpoints: 'off',
  log_line_prefix: '%m [%p] %a ',
  ...(durable ? {} : { fsync: 'off', full_page_writes: 'off', autovacuum: 'off' }),
});

/** Starts the server. Returns it, or its output if it did not start. */
const launch = async (
  data_dir: string,
  { account, bin, cluster }: PostgresHome,
  durable: boolean,
): Promise<EmbeddedPostgres | string> => {
  const settings = Object.entries({
    ...serverSettings(durable),
    cluster_name: titleOf(cluster),
    unix_socket_directories: socketFolder(cluster, account),
  });
  writeRules(cluster);
  const started = await startServer({
    command: path.join(bin, 'postgres'),
    args: ['-D', cluster, ...settings.flatMap(([name, value]) => ['-c', `${name}=${value}`])],
    options: { env: server_env, ...(account ?? {}) },
    log_file: path.join(data_dir, 'log', 'postgres.log'),
    stop_steps,
    // After a kill under load, crash recovery may take a long time.
    ready_ms: 120_000,
    isReady: (pid) => {
      const lines = readOrEmpty(pidFile(cluster)).split('\n');
      return Number(lines[0]) === pid && lines[7]?.trim() === 'ready';
    },
  });
  if (typeof started === 'string') return started;
  return {
    ...started,
    cluster,
    url: urlOf(cluster, 'forum'),
    admin_url: urlOf(cluster, 'postgres'),
  };
};

/** No password: a user who can enter the socket's folder could read the files anyway. */
const writeRules = (cluster: string): void => {
  const rules = 'local all all trust\n';
  const file = path.join(cluster, 'pg_hba.conf');
  // On a full disk, writing the file again would leave it empty.
  if (readOrEmpty(file) !== rules) writeFileSync(file, rules);
};

const checkVersion = ({ cluster, version }: PostgresHome): void => {
  const problem = clusterProblem(cluster, version);
  if (problem !== null) throw new CannotStart(problem);
};

const server_env = { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' };

const own_statements = [
  'create role forum login;',
  'grant pg_checkpoint, pg_monitor to forum;',
  'create database forum owner forum;',
];

/**
 * Makes the cluster next to its final place, and moves it there when it is complete, so that a
 * half-made cluster is never used. Postgres in single-user mode makes the role and the database.
 */
const makeCluster = (
  data_dir: string,
  { account, bin, cluster }: PostgresHome,
  { say, durable = true }: PostgresOptions,
): void => {
  say('Creating a Postgres database …');
  const parent = path.dirname(cluster);
  for (const name of readdirSync(parent)) {
    if (name.startsWith('postgres.new-')) rmSync(path.join(parent, name), { recursive: true });
  }
  const folder = path.join(parent, `postgres.new-${process.pid}`);
  const run = (program: string, words: readonly string[], lines: readonly string[] = []): void => {
    const options = { account, env: server_env, input: `${lines.join('\n')}\n` };
    const { ok, output } = runAs([path.join(bin, program), ...words], options);
    if (ok) return;
    rmSync(folder, { recursive: true, force: true });
    throw new Error(`The Postgres database could not be created:\n${lastLines(output)}`);
  };
  mkdirSync(folder, { mode: 0o700 });
  if (account !== null) chownSync(folder, account.uid, account.gid);
  run('initdb', [
    `--pgdata=${folder}`,
    '--username=postgres',
    '--encoding=UTF8',
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--data-checksums',
    '--auth=trust',
    '--no-instructions',
    ...(durable ? [] : ['--no-sync']),
  ]);
  run('postgres', ['--single', '-c', 'exit_on_error=on', '-D', folder, 'postgres'], own_statements);
  renameSync(folder, cluster);
  syncFolder(parent);
  notePlace(data_dir, cluster);
};
