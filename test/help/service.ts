import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { agentId, questionId, seed } from '../../bench/env/seed.js';
import { childrenOf, findProcesses, parentOf, startTime } from '../../src/boot/processes.mjs';
import type { RoleName } from '../../src/config.js';
import { openSql, type Sql } from '../../src/db/client.js';
import { makeApiKey } from '../../src/features/accounts/rules.js';
import { readOrEmpty } from '../../src/process/embedded/data-dir.js';
import { embeddedPostgresUrl } from '../../src/process/embedded/postgres.js';
import { placeOutside } from '../../src/process/embedded/postgres-home.js';
import { signalProcess } from '../../src/process/embedded/processes.js';
import { embeddedRedisUrl, emptyRedis } from '../../src/process/embedded/redis.js';
import { isWhole, type RedisClient } from '../../src/redis/client.js';
import { startBalancer } from './balancer.js';
import {
  makeTestFolder,
  openAdmin,
  project_root,
  removeTestFolder,
  withDatabase,
} from './own-stores.js';
import { is_pooled, type KeptPostgres, keepPostgres } from './pgbouncer.js';
import { type RedisCluster, startWantedCluster } from './redis-cluster.js';
import { mountSmallDisk, type SmallDisk } from './small-disk.js';
import { openTestRedis, type Stores, type Teardown } from './stores.js';
import { until } from './until.js';

/**
 * The whole service as its users run it: the supervisor with all roles and its embedded, durable
 * stores, in a folder of this test. Tests kill, pause and watch its parts from outside.
 */

export type Part = RoleName | 'Redis' | 'Postgres';

export interface SeededAgent {
  readonly id: string;
  readonly key: string;
}

export interface SeededQuestion {
  readonly id: string;
  /** Empty for a yes/no question. */
  readonly options: readonly string[];
}

interface LogLine {
  readonly level: number;
  readonly msg: string;
  readonly [field: string]: unknown;
}

export interface ServiceOptions {
  readonly agents?: number;
  readonly questions?: number;
  readonly env?: Readonly<Record<string, string>>;
  /** Actual URLs of the stores, if `env` reaches them through a proxy. */
  readonly stores?: Partial<Pick<Stores, 'database_url' | 'redis_url'>>;
  /** Number of hosts that share the stores. If there are several, HAProxy is in front of them. */
  readonly hosts?: number;
  /** Sizes in MB of small disks, by folder in DATA_DIR, outer folders first. '' is DATA_DIR. */
  readonly small_disks?: Readonly<Record<string, number>>;
}

/** Not more often, because listing all processes of the machine takes milliseconds. */
const look_ms = 100;
const start_ms = 120_000;
const stop_ms = 30_000;
const prefix = 'pf';

const service_env = {
  LOG_LEVEL: 'warn',
  REDIS_PREFIX: prefix,
  LIMIT_IP: '100000000',
  LIMIT_KEY: '100000000',
  LIMIT_PREDICTIONS: '100000000',
  LIMIT_REGISTER: '100000000',
};

/** Starts a program that contains the supervisor. Default: the service. */
export const launch = (
  folder: string,
  env: NodeJS.ProcessEnv = {},
  entry = path.join(project_root, 'dist', 'src', 'main.js'),
) => {
  const child = spawn(process.execPath, [entry], {
    cwd: project_root,
    env: {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      // Makes the supervisor end when this process ends, however that happens.
      npm_lifecycle_event: 'test',
      DATA_DIR: folder,
      PORT: '0',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  const code = once(child, 'close').then(([exit]) => exit as number | null);
  const url = new Promise<string>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => {
        text += chunk;
        const found = /is running (?:at (\S+)|without an api\.)\n/.exec(text);
        if (found !== null) resolve(found[1] ?? '');
      });
    }
    void code.then(() => reject(new Error(`the service ended: ${text}`)));
    setTimeout(() => reject(new Error(`the service does not start: ${text}`)), start_ms).unref();
  });
  url.catch(() => undefined);
  return {
    child,
    /** Output so far. */
    output: () => text,
    /** The URL, once it is printed. Empty without an api. Rejects if the service ends first. */
    url,
    code,
  };
};

/** The folder of Postgres: in `folder`, or elsewhere if Postgres cannot access `folder`. */
export const clusterOf = (folder: string): string =>
  placeOutside(folder) || path.join(folder, 'postgres');

/** The roles, stores and watchers of a service. Their command lines name its folder or cluster. */
export const processesOf = (folder: string): readonly number[] => {
  const names = [folder, clusterOf(folder)];
  const isNamed = (word: string): boolean =>
    names.some((name) => word.endsWith(name) || word.includes(`${name}/`));
  return findProcesses((command) => command.some(isNamed));
};

const pidIn = (file: string): readonly number[] => {
  const pid = Number.parseInt(readOrEmpty(file), 10);
  return startTime(pid) === null ? [] : [pid];
};

/** The running processes of a part, oldest first. */
export const findPids = (folder: string, part: Part): readonly number[] => {
  if (part === 'Redis') return pidIn(path.join(folder, 'redis', 'redis.pid'));
  if (part === 'Postgres') return pidIn(path.join(clusterOf(folder), 'postmaster.pid'));
  return findProcesses(
    (command) => command.includes(`--data=${folder}`) && command.includes(`--role=${part}`),
  ).sort((a, b) => Number(startTime(a)) - Number(startTime(b)));
};

const readLog = (folder: string): readonly LogLine[] => {
  const file = path.join(folder, 'log', 'forum.log');
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line): LogLine => {
      try {
        return JSON.parse(line);
      } catch {
        // A line that was cut because the disk was full, or Node's own output when a process dies.
        return { level: line.startsWith('{') ? 30 : 60, msg: line };
      }
    });
};

/**
 * Pauses a role process together with its supervisor, as on a suspended machine, until the returned
 * function is called. A process that is paused alone would be replaced after 5 s.
 */
export const putToSleep = (pid: number): (() => void) => {
  const supervisor = parentOf(pid);
  for (const one of [supervisor, pid]) signalProcess(one, 'SIGSTOP');
  return () => {
    for (const one of [pid, supervisor]) signalProcess(one, 'SIGCONT');
  };
};

const untilGone = (folder: string): Promise<boolean> =>
  until('all its processes end', () => processesOf(folder).length === 0, 30_000, look_ms);

/** Ends a service and every process that it left behind. */
export const endService = async (child: ChildProcess, folder: string): Promise<void> => {
  // Paused processes cannot be stopped cleanly.
  for (const pid of processesOf(folder)) signalProcess(pid, 'SIGCONT');
  if (child.exitCode === null && child.signalCode === null) {
    const gone = once(child, 'exit');
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), stop_ms);
    await gone;
    clearTimeout(timer);
  }
  for (const pid of processesOf(folder)) signalProcess(pid, 'SIGKILL');
  await untilGone(folder);
};

/** Every fourth question has options, so that both kinds are under load. */
const withOptions = (n: number): readonly string[] =>
  n % 4 === 3 ? ['Rises', 'Stays within a tenth', 'Falls'] : [];

/** The test's own connections. They reconnect when a store is restarted. */
const connectStores = async (
  t: Teardown,
  { database_url, redis_url }: Pick<Stores, 'database_url' | 'redis_url'>,
): Promise<{ readonly sql: Sql; readonly redis: RedisClient }> => {
  const sql = openSql({
    url: database_url,
    pool: 3,
    prepare: true,
    name: 'test',
    statement_timeout_ms: 60_000,
  });
  t.teardown(() => sql.end({ timeout: 1 }));
  const redis = await openTestRedis(t, redis_url);
  return { sql, redis };
};

/** The service on one machine: a supervisor with its processes, in its own folder. */
export type Host = Awaited<ReturnType<typeof startHost>>;

const startHost = async (
  t: Teardown,
  folder: string,
  env: NodeJS.ProcessEnv,
  postgres?: KeptPostgres,
) => {
  let launched = launch(folder, env);
  let stopping: Promise<void> | undefined;
  const close = (): Promise<void> => {
    postgres?.release();
    stopping ??= endService(launched.child, folder);
    return stopping;
  };
  t.teardown(async () => {
    await close();
    removeTestFolder(folder);
  });
  const url = await launched.url;
  const port = url === '' ? 0 : Number(new URL(url).port);
  return {
    url,
    port,
    folder,
    close,
    pidsOf: (part: Part): readonly number[] => findPids(folder, part),
    /** Lines of the host's log so far. */
    log: (): readonly LogLine[] => readLog(folder),
    /** Kills every process with SIGKILL. */
    async kill(): Promise<void> {
      postgres?.release();
      launched.child.kill('SIGKILL');
      for (const pid of processesOf(folder)) signalProcess(pid, 'SIGKILL');
      await untilGone(folder);
    },
    /** Sends SIGTERM to the supervisor and returns its exit code. */
    stop(): Promise<number | null> {
      launched.child.kill('SIGTERM');
      return launched.code;
    },
    /** Starts the host again on the same port. */
    async start(): Promise<void> {
      await postgres?.start();
      launched = launch(folder, { ...env, PORT: String(port) });
      await launched.url;
    },
    /** Pauses the host's processes, as on a suspended machine, until the returned function runs. */
    pause(): () => void {
      const pids = [launched.child.pid ?? 0, ...processesOf(folder)];
      for (const pid of pids) signalProcess(pid, 'SIGSTOP');
      return () => {
        for (const pid of pids) signalProcess(pid, 'SIGCONT');
      };
    },
  };
};

/** Settings for another host of the same service. */
const shareWith = (
  { folder }: Host,
  env: NodeJS.ProcessEnv,
  { database_url, redis_url }: Pick<Stores, 'database_url' | 'redis_url'>,
): NodeJS.ProcessEnv => ({
  SECRET_KEY: readFileSync(path.join(folder, 'secret-key'), 'utf8').trim(),
  // The service generated this key at its first start if none was set.
  ...(env['ADMIN_KEY'] === undefined
    ? { ADMIN_KEY: readFileSync(path.join(folder, 'admin-key'), 'utf8').trim() }
    : {}),
  ...env,
  DATABASE_URL: database_url,
  REDIS_URL: redis_url,
});

interface Running {
  readonly url: string;
  readonly hosts: readonly Host[];
  readonly sql: Sql;
  readonly redis: RedisClient;
  /** The Redis cluster of the service, if it uses one. */
  readonly cluster: RedisCluster | null;
}

/** True if the part does its work. */
const isAtWork = async ({ url, redis, sql }: Running, part: Part): Promise<boolean> => {
  try {
    if (part === 'api') {
      return (await fetch(`${url}/health`, { signal: AbortSignal.timeout(2_000) })).ok;
    }
    if (part === 'Redis') return isWhole(redis) && (await redis.ping()) === 'PONG';
    if (part === 'Postgres') await sql`select 1`;
    return true;
  } catch {
    return false;
  }
};

interface KillOptions {
  readonly only_one?: boolean;
  /** Also removes the data of Redis. */
  readonly empty?: boolean;
}

const kill = async (running: Running, part: Part, options: KillOptions): Promise<void> => {
  if (part === 'Redis' && running.cluster !== null) {
    await running.cluster.kill();
    await running.cluster.restart(options);
    await until('Redis is back', () => isAtWork(running, part), 20_000, look_ms);
    return;
  }
  const pidsOf = () => running.hosts.flatMap((host) => host.pidsOf(part));
  const before = pidsOf();
  const victims = options.only_one ? before.slice(0, 1) : before;
  if (victims.length === 0) throw new Error(`there is no ${part} to kill`);
  // Redis has the files open until it is killed, but the next Redis starts without them.
  if (options.empty) emptyRedis(running.hosts[0]?.folder ?? '');
  for (const pid of victims) process.kill(pid, 'SIGKILL');
  const isReplaced = async (): Promise<boolean> => {
    const now = pidsOf();
    const are_new = !victims.some((pid) => now.includes(pid));
    return are_new && now.length === before.length && (await isAtWork(running, part));
  };
  await until(`another ${part}`, isReplaced, 60_000, look_ms);
};

const pause = (all: readonly number[]): (() => void) => {
  // Pausing only the postmaster would leave its backends running.
  const pids = all.flatMap((pid) => [pid, ...childrenOf(pid)]);
  for (const pid of pids) signalProcess(pid, 'SIGSTOP');
  return () => {
    for (const pid of pids) signalProcess(pid, 'SIGCONT');
  };
};

const seedService = async (
  sql: Sql,
  { agents: agent_count = 200, questions: question_count = 20 }: ServiceOptions,
) => {
  const keys = Array.from({ length: agent_count }, makeApiKey);
  const agents: SeededAgent[] = keys.map((key, n) => ({ id: agentId(n), key }));
  const questions: SeededQuestion[] = Array.from({ length: question_count }, (_, n) => ({
    id: questionId(n),
    options: withOptions(n),
  }));
  await seed(sql, { keys, questions: question_count, optionsOf: withOptions });
  return { agents, questions };
};

export type TestService = Awaited<ReturnType<typeof startService>>;

export const startService = async (t: Teardown, options: ServiceOptions = {}) => {
  const folder = makeTestFolder();
  const cluster = options.env?.['REDIS_URL'] === undefined ? await startWantedCluster() : null;
  t.teardown(() => cluster?.stop());
  const disks: Record<string, SmallDisk> = {};
  for (const [under, megabytes] of Object.entries(options.small_disks ?? {})) {
    disks[under] = mountSmallDisk({ folder: path.join(folder, under), megabytes });
  }
  const { hosts: host_count = Number(process.env['FAULT_HOSTS'] ?? '1') } = options;
  const env: NodeJS.ProcessEnv = {
    ...service_env,
    API_PROCESSES: '1',
    ...(host_count > 1 ? { TRUSTED_PROXIES: '127.0.0.1' } : {}),
    ...(cluster === null ? {} : { REDIS_URL: cluster.url }),
    ...(is_pooled ? { DATABASE_PREPARE: 'false' } : {}),
    ...options.env,
  };
  // PgBouncer needs the address of Postgres, so the service cannot start Postgres itself.
  const is_kept = is_pooled && env['DATABASE_URL'] === undefined;
  const postgres = is_kept ? await keepPostgres(t, folder) : undefined;
  if (postgres !== undefined) env['DATABASE_URL'] = postgres.url;
  const first = await startHost(t, folder, env, postgres);
  const {
    database_url: real_database = embeddedPostgresUrl(folder) ?? '',
    redis_url: real_redis = env['REDIS_URL'] ?? embeddedRedisUrl(folder),
  } = options.stores ?? {};
  const stores = { database_url: real_database, redis_url: real_redis };
  // The service itself uses these URLs, which may go through a proxy.
  const { DATABASE_URL: database_url = '', REDIS_URL: redis_url = '' } = {
    DATABASE_URL: stores.database_url,
    REDIS_URL: stores.redis_url,
    ...env,
  };
  const others = await Promise.all(
    Array.from({ length: host_count - 1 }, () =>
      startHost(t, makeTestFolder(), shareWith(first, env, { database_url, redis_url })),
    ),
  );
  const hosts = [first, ...others];
  const balancer =
    host_count > 1
      ? await startBalancer(
          t,
          hosts.map((host) => host.port),
        )
      : null;
  const { url, port } = balancer ?? first;
  const { sql, redis } = await connectStores(t, stores);
  const running = { url, hosts, sql, redis, cluster };
  const pidsOf = (part: Part): readonly number[] =>
    part === 'Redis' && cluster !== null
      ? cluster.pids()
      : hosts.flatMap((host) => host.pidsOf(part));
  return {
    ...running,
    ...stores,
    ...(await seedService(sql, options)),
    folder,
    port,
    balancer,
    disks,
    prefix,
    env,
    pidsOf,
    stop: first.close,

    /** Kills one or all processes of a part with SIGKILL. Resolves when the part works again. */
    kill: (part: Part, how: KillOptions = {}): Promise<void> => kill(running, part, how),

    /** Kills everything with SIGKILL. Resolves when the api works again after the next start. */
    async killAll(): Promise<void> {
      await Promise.all([...hosts.map((host) => host.kill()), cluster?.kill()]);
      await cluster?.restart();
      // The first host starts before the others, because it may run the stores.
      for (const host of hosts) await host.start();
      await until('the api is at work', () => isAtWork(running, 'api'));
    },

    /** Pauses a part: it stays alive but does not answer until the returned function is called. */
    pause: (part: Part): (() => void) => pause(pidsOf(part)),

    /** Lines of the log so far: warnings (40), errors (50), crashes of processes (60). */
    troubles: (min_level = 40): readonly LogLine[] =>
      hosts.flatMap((host) => host.log()).filter(({ level }) => level >= min_level),
  };
};

/** A connection as the superuser of the service's embedded Postgres. */
export const openOwner = ({ folder }: TestService): Sql => {
  const url = new URL(embeddedPostgresUrl(folder) ?? '');
  url.username = 'postgres';
  return openAdmin(withDatabase(url.href, 'postgres'));
};

/** Makes Postgres read-only, as after a failover, while the work runs. */
export const whileReadOnly = async (
  service: TestService,
  work: () => Promise<unknown>,
): Promise<void> => {
  const owner = openOwner(service);
  await owner`alter system set default_transaction_read_only = on`;
  await owner`select pg_reload_conf()`;
  await work();
  await owner`alter system reset default_transaction_read_only`;
  await owner`select pg_reload_conf()`;
  await owner.end({ timeout: 1 });
};

/** Starts roles of the same service under another supervisor, as on a second machine. */
export const startMoreRoles = async (
  t: Teardown,
  service: TestService,
  roles: readonly RoleName[],
): Promise<Host> => {
  const [first] = service.hosts;
  if (first === undefined) throw new Error('a service without a host');
  const env = { ...shareWith(first, service.env, service), ROLES: roles.join(',') };
  return startHost(t, makeTestFolder(), env);
};
