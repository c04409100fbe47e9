import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { pino } from 'pino';
import { agentId, questionId, seed } from '../../bench/env/seed.js';
import { childrenOf, findProcesses, parentOf, startTime } from '../../src/boot/processes.mjs';
import type { RoleName } from '../../src/config.js';
import { openSql, type Sql } from '../../src/db/client.js';
import { makeApiKey } from '../../src/features/accounts/index.js';
import { readOrEmpty } from '../../src/process/embedded/data-dir.js';
import { embeddedPostgresUrl } from '../../src/process/embedded/postgres.js';
import { placeOutside } from '../../src/process/embedded/postgres-home.js';
import { signalProcess } from '../../src/process/embedded/processes.js';
import { embeddedRedisUrl, emptyRedis } from '../../src/process/embedded/redis.js';
import { closeRedis, connectRedis, openRedis, type RedisClient } from '../../src/redis/client.js';
import { makeTestFolder, project_root, removeTestFolder } from './own-stores.js';
import { mountSmallDisk, type SmallDisk } from './small-disk.js';
import type { Stores, Teardown } from './stores.js';
import { until } from './until.js';

/**
 * The whole service as its users run it: the supervisor with all roles and its embedded, durable
 * stores, in a folder of this test. Parts of it are killed, paused and watched from outside.
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
  /** Where the stores really are that `env` names by another way. */
  readonly stores?: Partial<Pick<Stores, 'database_url' | 'redis_url'>>;
  /** Megabytes of small disks for folders in DATA_DIR, outer ones first; '' is all of it. */
  readonly small_disks?: Readonly<Record<string, number>>;
}

/** A look at all processes of the machine costs milliseconds. */
const look_ms = 100;
const start_ms = 60_000;
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

/** Starts a program with the supervisor in it: the service, unless told otherwise. */
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
      // With this the supervisor ends when this process is gone, however it went.
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
        const found = /runs (?:at (\S+)|without an api\.)\n/.exec(text);
        if (found !== null) resolve(found[1] ?? '');
      });
    }
    void code.then(() => reject(new Error(`the service ended: ${text}`)));
    setTimeout(() => reject(new Error(`the service does not start: ${text}`)), start_ms).unref();
  });
  url.catch(() => undefined);
  return {
    child,
    /** What it has said so far. */
    output: () => text,
    /** Where it listens, once it says so; empty without an api; rejects when it ends before. */
    url,
    code,
  };
};

/** In the folder, or elsewhere where Postgres may not enter it. */
export const clusterOf = (folder: string): string =>
  placeOutside(folder) || path.join(folder, 'postgres');

/** The roles, stores and watchers of a service: each names its folder or its cluster. */
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
        // A line that was cut by the end of the disk, or what Node says when a process dies.
        return { level: line.startsWith('{') ? 30 : 60, msg: line };
      }
    });
};

/**
 * A role process stands still together with its supervisor, as on a machine that is paused, until
 * the returned function is called. Alone it would be replaced after 5 s.
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

/** Ends a service and everything that it left behind. */
export const endService = async (child: ChildProcess, folder: string): Promise<void> => {
  // What was left paused could not be stopped in order.
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

/** Each fourth question has options, so that both kinds are under load. */
const withOptions = (n: number): readonly string[] =>
  n % 4 === 3 ? ['Rises', 'Stays within a tenth', 'Falls'] : [];

/** Connections of the test's own; they find a restarted store again by themselves. */
const connectStores = async (
  t: Teardown,
  { database_url, redis_url }: Pick<Stores, 'database_url' | 'redis_url'>,
): Promise<{ readonly sql: Sql; readonly redis: RedisClient }> => {
  const sql = openSql({
    ...{ url: database_url, pool: 3, prepare: true, name: 'test' },
    statement_timeout_ms: 60_000,
  });
  const log = pino({ level: 'silent' });
  const redis = openRedis({ url: redis_url, name: 'test', log, command_timeout_ms: 5_000 });
  await connectRedis(redis);
  t.teardown(async () => {
    closeRedis(redis);
    await sql.end({ timeout: 1 });
  });
  return { sql, redis };
};

interface Running {
  readonly url: string;
  readonly folder: string;
  readonly sql: Sql;
  readonly redis: RedisClient;
}

/** True when the part does what it is for. */
const isAtWork = async ({ url, redis, sql }: Running, part: Part): Promise<boolean> => {
  try {
    if (part === 'api') {
      return (await fetch(`${url}/health`, { signal: AbortSignal.timeout(2_000) })).ok;
    }
    if (part === 'Redis') return redis.status === 'ready' && (await redis.ping()) === 'PONG';
    if (part === 'Postgres') await sql`select 1`;
    return true;
  } catch {
    return false;
  }
};

interface KillOptions {
  readonly only_one?: boolean;
  /** Redis: without what it kept. */
  readonly empty?: boolean;
}

const kill = async (running: Running, part: Part, options: KillOptions): Promise<void> => {
  const { folder } = running;
  const before = findPids(folder, part);
  const victims = options.only_one ? before.slice(0, 1) : before;
  if (victims.length === 0) throw new Error(`there is no ${part} to kill`);
  // Redis goes on with the files it has open; the next one finds none.
  if (options.empty) emptyRedis(folder);
  for (const pid of victims) process.kill(pid, 'SIGKILL');
  const isReplaced = async (): Promise<boolean> => {
    const now = findPids(folder, part);
    const are_new = !victims.some((pid) => now.includes(pid));
    return are_new && now.length === before.length && (await isAtWork(running, part));
  };
  await until(`another ${part}`, isReplaced, 20_000, look_ms);
};

const pause = (folder: string, part: Part): (() => void) => {
  // Pausing only the postmaster would leave its backends at work.
  const pids = findPids(folder, part).flatMap((pid) => [pid, ...childrenOf(pid)]);
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
  const disks: Record<string, SmallDisk> = {};
  for (const [under, megabytes] of Object.entries(options.small_disks ?? {})) {
    disks[under] = mountSmallDisk({ folder: path.join(folder, under), megabytes });
  }
  const env = { ...service_env, API_PROCESSES: '1', ...options.env };
  let launched = launch(folder, env);
  let stopping: Promise<void> | undefined;
  const stop = (): Promise<void> => {
    stopping ??= endService(launched.child, folder);
    return stopping;
  };
  t.teardown(async () => {
    await stop();
    removeTestFolder(folder);
  });
  const url = await launched.url;
  const { port } = new URL(url);
  const {
    database_url = embeddedPostgresUrl(folder) ?? '',
    redis_url = options.env?.['REDIS_URL'] ?? embeddedRedisUrl(folder),
  } = options.stores ?? {};
  const stores = { database_url, redis_url };
  const { sql, redis } = await connectStores(t, stores);
  const running = { url, folder, sql, redis };
  return {
    ...{ ...running, ...stores, ...(await seedService(sql, options)) },
    ...{ port: Number(port), disks, prefix, env, stop },
    pidsOf: (part: Part): readonly number[] => findPids(folder, part),

    /** kill -9 of all processes of a part, or of one; fulfilled when others do its work. */
    kill: (part: Part, how: KillOptions = {}): Promise<void> => kill(running, part, how),

    /** kill -9 of everything at once; fulfilled when the next start has the api at work. */
    async killAll(): Promise<void> {
      launched.child.kill('SIGKILL');
      for (const pid of processesOf(folder)) signalProcess(pid, 'SIGKILL');
      await untilGone(folder);
      launched = launch(folder, { ...env, PORT: port });
      await launched.url;
      await until('the api is at work', () => isAtWork(running, 'api'));
    },

    /** It stands still, alive and without an answer, until the returned function is called. */
    pause: (part: Part): (() => void) => pause(folder, part),

    /** Lines of its log so far: warnings (40), errors (50), ends of processes (60). */
    troubles: (least_level = 40): readonly LogLine[] =>
      readLog(folder).filter(({ level }) => level >= least_level),
  };
};

/** Roles of the same service under another supervisor, as on a second machine. */
export const startMoreRoles = async (
  t: Teardown,
  service: TestService,
  roles: readonly RoleName[],
): Promise<{ pidsOf(part: RoleName): readonly number[] }> => {
  const folder = makeTestFolder();
  const { child, url } = launch(folder, {
    ...service.env,
    ROLES: roles.join(','),
    DATABASE_URL: service.database_url,
    REDIS_URL: service.redis_url,
    SECRET_KEY: readFileSync(path.join(service.folder, 'secret-key'), 'utf8').trim(),
  });
  t.teardown(async () => {
    await endService(child, folder);
    removeTestFolder(folder);
  });
  await url;
  return { pidsOf: (part) => findPids(folder, part) };
};
