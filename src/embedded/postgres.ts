import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
} from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { closeLog, openLog } from './logs.js';
import {
  type Access,
  accessFile,
  prepareCluster,
  readAccess,
  saveAccess,
  server_env,
  writeRules,
} from './postgres-cluster.js';
import { findPostgresHome, type PostgresHome } from './postgres-home.js';
import {
  type EmbeddedStore,
  findServer,
  keepPort,
  killAll,
  lastLines,
  readOrEmpty,
  type Say,
  type ServerName,
  startKeeper,
  stopProcess,
  type Watched,
  watchServer,
} from './processes.js';

/**
 * A private Postgres under a data folder, on a port of 127.0.0.1 that stays the same. Order: find
 * where it lies → stop what an earlier start left running → make the cluster if there is none →
 * start → wait until it takes connections. It may be killed at any point; the next start goes on
 * from whatever is there.
 */
export interface PostgresOptions {
  readonly data_dir: string;
  readonly say: Say;
  /** False gives up every safety for speed: for tests that never crash it, and nothing else. */
  readonly durable?: boolean;
  /** A server that starts again under its clients keeps its port, whatever it takes. */
  readonly must_keep_port?: boolean;
  /** Further settings of the server, by their Postgres names. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface EmbeddedPostgres extends EmbeddedStore {
  /** Connection of the superuser; `url` is that of the owner of the database. */
  readonly admin_url: string;
  /** Folder of the cluster: in the data folder, or where `postgres.place` there says. */
  readonly cluster: string;
}

export const startPostgres = async (options: PostgresOptions): Promise<EmbeddedPostgres> => {
  const data_dir = realpathSync(options.data_dir);
  const home = findPostgresHome(data_dir);
  await stopLeftovers(home);
  const access = prepareCluster(data_dir, home, options);
  for (let attempt = 1; ; attempt += 1) {
    const port = await keepPort(access.port, options.must_keep_port ?? false);
    if (port !== access.port) saveAccess(data_dir, { ...access, port });
    const outcome = await launch({ ...options, data_dir }, home, { ...access, port });
    if (typeof outcome !== 'string') return outcome;
    if (attempt === 3) throw new Error(`Postgres does not start:\n${outcome}`);
    await stopLeftovers(home);
  }
};

const serverName = ({ cluster }: PostgresHome): ServerName => ({
  pid_file: path.join(cluster, 'postmaster.pid'),
  word: cluster,
});

/** Postgres puts this into the title of each of its processes. */
const titleOf = ({ cluster }: PostgresHome): string =>
  `pf-${createHash('sha256').update(cluster).digest('hex').slice(0, 12)}`;

const stop_steps = [
  ['SIGINT', 10_000],
  ['SIGQUIT', 3_000],
  ['SIGKILL', 2_000],
] as const;

/**
 * Ends what a killed start left behind. Its pid file and the lock of its socket have to go as well:
 * Postgres looks only at the number in them, and refuses to start while any process has it, be it
 * another's by now or dead and not yet reaped.
 */
const stopLeftovers = async (home: PostgresHome): Promise<void> => {
  const name = serverName(home);
  if (!existsSync(name.pid_file)) return;
  const pid = findServer(name);
  if (pid !== 0) await stopProcess(pid, stop_steps);
  // Without their postmaster the others end by themselves, but only when they next look.
  const title = `postgres: ${titleOf(home)}: `;
  killAll((command) => command[0]?.startsWith(title) ?? false);
  if (findServer(name) !== 0) return;
  for (const file of readdirSync(home.cluster)) {
    if (file.startsWith('.s.PGSQL.')) rmSync(path.join(home.cluster, file), { force: true });
  }
  rmSync(name.pid_file, { force: true });
};

/** With a folder the socket in it is used: a third less work for both sides than TCP. */
const ownerUrl = ({ password, port }: Access, folder: string | null = null): string =>
  `postgres://forum:${password}@127.0.0.1:${port}/forum${folder === null ? '' : `?host=${folder}`}`;

/**
 * The socket lies in the cluster, which only its account may enter, where the path is not too long.
 */
const socketFolder = ({ cluster }: PostgresHome, port: number): string | null =>
  Buffer.byteLength(`${cluster}/.s.PGSQL.${port}.lock`) <= 107 && !/[,?&#%\s]/.test(cluster)
    ? cluster
    : null;

/**
 * Where the embedded Postgres of a data folder is, if there is one; whether it runs is not asked.
 */
export const embeddedPostgresUrl = (data_dir: string): string | null => {
  const access = readAccess(data_dir);
  return access === null ? null : ownerUrl(access);
};

/**
 * For a small machine. The embedded build knows no lz4, and pglz costs more CPU than it saves. Who
 * reads much reads it by itself: workers that read ahead for it take the cores from everybody else.
 */
const serverSettings = (durable: boolean): Record<string, string> => ({
  listen_addresses: '127.0.0.1',
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

/** The running server, or what it said when it did not start. */
const launch = async (
  options: PostgresOptions,
  home: PostgresHome,
  access: Access,
): Promise<EmbeddedPostgres | string> => {
  const log_file = path.join(options.data_dir, 'log', 'postgres.log');
  const log = openLog(log_file);
  const from = statSync(log_file).size;
  const settings = {
    ...serverSettings(options.durable ?? true),
    cluster_name: titleOf(home),
    port: String(access.port),
    unix_socket_directories: socketFolder(home, access.port) ?? '',
    ...options.settings,
  };
  writeRules(home.cluster);
  const args = Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`]);
  const child = spawn(path.join(home.bin, 'postgres'), ['-D', home.cluster, ...args], {
    cwd: '/',
    env: server_env,
    detached: true,
    stdio: ['ignore', log, log],
    ...(home.account ?? {}),
  });
  closeLog(log);
  const watched = watchServer(child, stop_steps);
  void watched.exited.then(startKeeper(watched.pid, home.cluster, 'SIGINT'));
  if (!(await untilReady(home, watched))) {
    await watched.stop();
    return lastLines(readFileSync(log_file).subarray(from).toString('utf8'));
  }
  return {
    url: ownerUrl(access, socketFolder(home, access.port)),
    admin_url: `postgres://postgres:${access.admin_password}@127.0.0.1:${access.port}/postgres`,
    cluster: home.cluster,
    pid: watched.pid,
    exited: watched.exited,
    stop: watched.stop,
  };
};

/** Crash recovery may take long after a kill under load; the server says so in its pid file. */
const ready_ms = 120_000;

const untilReady = async (home: PostgresHome, watched: Watched): Promise<boolean> => {
  const { pid_file } = serverName(home);
  const deadline = Date.now() + ready_ms;
  while (!watched.hasEnded() && Date.now() < deadline) {
    const lines = readOrEmpty(pid_file).split('\n');
    if (Number(lines[0]) === watched.pid && lines[7]?.trim() === 'ready') return true;
    await wait(5);
  }
  return false;
};

/** Ends what an earlier process left running under the data folder. */
export const stopPostgresLeftovers = async (data_dir: string): Promise<void> => {
  if (existsSync(accessFile(data_dir))) await stopLeftovers(findPostgresHome(data_dir));
};

/** Lets the account of Postgres pass through a data folder that was just made. */
export const makeDataFolder = (data_dir: string): void => {
  if (existsSync(data_dir)) return;
  mkdirSync(data_dir, { recursive: true });
  chmodSync(data_dir, 0o711);
};
