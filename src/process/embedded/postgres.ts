import { createHash } from 'node:crypto';
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { makeSecret, readOrEmpty, type Say, syncFolder, writeWhole } from './data-dir.js';
import {
  findPostgresHome,
  notePlace,
  type PostgresHome,
  runAs,
  socket_path_bytes,
} from './postgres-home.js';
import {
  type EmbeddedStore,
  findServer,
  keepPort,
  killAll,
  lastLines,
  type ServerName,
  startServer,
  stopProcess,
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
  Buffer.byteLength(`${cluster}/.s.PGSQL.${port}.lock`) <= socket_path_bytes &&
  !/[,?&#%\s]/.test(cluster)
    ? cluster
    : null;

/**
 * Where the embedded Postgres of a data folder is, if there is one, running or not.
 */
export const embeddedPostgresUrl = (data_dir: string): string | null => {
  const access = readAccess(data_dir);
  return access === null ? null : ownerUrl(access);
};

/**
 * For a small machine. The embedded build knows no lz4, and pglz costs more CPU than it saves.
 * `io_method` is sync: workers that read ahead for one query take the cores from all others.
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
  const settings = {
    ...serverSettings(options.durable ?? true),
    cluster_name: titleOf(home),
    port: String(access.port),
    unix_socket_directories: socketFolder(home, access.port) ?? '',
    ...options.settings,
  };
  writeRules(home.cluster);
  const args = Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`]);
  const started = await startServer({
    command: path.join(home.bin, 'postgres'),
    args: ['-D', home.cluster, ...args],
    options: { env: server_env, ...(home.account ?? {}) },
    log_file: path.join(options.data_dir, 'log', 'postgres.log'),
    word: home.cluster,
    ...{ stop_steps, ready_ms },
    isReady: (pid) => {
      const lines = readOrEmpty(serverName(home).pid_file).split('\n');
      return Number(lines[0]) === pid && lines[7]?.trim() === 'ready';
    },
  });
  if (typeof started === 'string') return started;
  return {
    ...started,
    url: ownerUrl(access, socketFolder(home, access.port)),
    admin_url: `postgres://postgres:${access.admin_password}@127.0.0.1:${access.port}/postgres`,
    cluster: home.cluster,
  };
};

/** Crash recovery may take long after a kill under load; the server says so in its pid file. */
const ready_ms = 120_000;

/** Ends what an earlier process left running under the data folder. */
export const stopPostgresLeftovers = async (data_dir: string): Promise<void> => {
  if (existsSync(accessFile(data_dir))) await stopLeftovers(findPostgresHome(data_dir));
};

interface Access {
  readonly port: number;
  readonly password: string;
  readonly admin_password: string;
}

/**
 * The cluster is made beside its place and moved there when it is complete, so that a half-made
 * one never counts. Its passwords are saved before; lost ones are replaced.
 */
const prepareCluster = (
  data_dir: string,
  home: PostgresHome,
  { say, durable = true }: PostgresOptions,
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

/** Every connection needs a password, by the socket or over TCP from this machine. */
const writeRules = (cluster: string): void => {
  const rules = 'local all all scram-sha-256\nhost all all 127.0.0.1/32 scram-sha-256\n';
  const file = path.join(cluster, 'pg_hba.conf');
  // On a full disk writing them anew would leave none.
  if (readOrEmpty(file) !== rules) writeFileSync(file, rules);
};

const server_env = { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' };

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

const accessFile = (data_dir: string): string => path.join(data_dir, 'postgres.json');

const saveAccess = (data_dir: string, access: Access): void =>
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
