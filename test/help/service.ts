import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Redis } from 'ioredis';
import { pino } from 'pino';
import { agentId, questionId, seed } from '../../bench/env/seed.js';
import { childrenOf } from '../../src/boot/processes.mjs';
import type { RoleName } from '../../src/config.js';
import { openSql, type Sql } from '../../src/db/client.js';
import { makeApiKey } from '../../src/features/accounts/index.js';
import { embeddedPostgresUrl } from '../../src/process/embedded/postgres.js';
import { signalProcess } from '../../src/process/embedded/processes.js';
import { embeddedRedisUrl, emptyRedis } from '../../src/process/embedded/redis.js';
import { closeRedis, connectRedis, openRedis } from '../../src/redis/client.js';
import { makeTestFolder, removeTestFolder } from './own-stores.js';
import {
  endService,
  findPids,
  type LogLine,
  launch,
  type Part,
  prefix,
  processesOf,
  readLog,
} from './service-processes.js';
import { mountSmallDisk, type SmallDisk } from './small-disk.js';
import type { Stores, Teardown } from './stores.js';
import { until } from './until.js';

/**
 * The whole service as its users run it: the supervisor with all roles and its embedded, durable
 * stores, in a folder of this test. Parts of it are killed, paused and watched from outside.
 */

export interface SeededAgent {
  readonly id: string;
  readonly key: string;
}

export interface SeededQuestion {
  readonly id: string;
  /** Empty for a yes/no question. */
  readonly options: readonly string[];
}

export interface TestService {
  readonly url: string;
  readonly port: number;
  readonly folder: string;
  /** The one that was asked for. */
  readonly disk: SmallDisk | null;
  readonly database_url: string;
  readonly redis_url: string;
  readonly prefix: string;
  /** The settings that this test gave it. */
  readonly env: Readonly<Record<string, string>>;
  /** Connections of the test's own; they find a restarted store again by themselves. */
  readonly sql: Sql;
  readonly redis: Redis;
  readonly agents: readonly SeededAgent[];
  readonly questions: readonly SeededQuestion[];
  /** The running processes of a part, oldest first; none while it is down. */
  pidsOf(part: Part): readonly number[];
  /** kill -9 of one process; `back` is fulfilled when another one does its work. */
  kill(part: Part, options?: KillOptions): { readonly back: Promise<void> };
  /** kill -9 of everything at once; `back` is fulfilled when the next start has the api at work. */
  killAll(): { readonly back: Promise<void> };
  /** Stands still, alive and without an answer, until the returned function is called. */
  pause(part: Part): () => void;
  /** Warnings and errors of its log so far, as they stand there. */
  troubles(): readonly LogLine[];
  stop(): Promise<void>;
}

export interface KillOptions {
  /** Redis: without what it kept. */
  readonly empty?: boolean;
}

export interface ServiceOptions {
  readonly agents?: number;
  readonly questions?: number;
  readonly env?: Readonly<Record<string, string>>;
  /** Where the stores really are that `env` names by another way. */
  readonly stores?: Pick<Stores, 'database_url' | 'redis_url'>;
  /** Puts this folder of DATA_DIR, '' for all of it, on a small disk. */
  readonly small_disk?: { readonly under: string; readonly megabytes: number };
}

const makeDisk = (folder: string, wanted: ServiceOptions['small_disk']): SmallDisk | null =>
  wanted === undefined
    ? null
    : mountSmallDisk({ folder: path.join(folder, wanted.under), megabytes: wanted.megabytes });

/** Each fourth question has options, so that both kinds are under load. */
const withOptions = (n: number): readonly string[] =>
  n % 4 === 3 ? ['Rises', 'Stays within a tenth', 'Falls'] : [];

/** True when the part does what it is for. */
const makeIsAtWork =
  ({ url, redis, sql }: Pick<TestService, 'url' | 'redis' | 'sql'>) =>
  async (part: Part): Promise<boolean> => {
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

export const startService = async (
  t: Teardown,
  options: ServiceOptions = {},
): Promise<TestService> => {
  const folder = makeTestFolder();
  const disk = makeDisk(folder, options.small_disk);
  const env = { API_PROCESSES: '1', ...options.env };
  let running = launch(folder, env);
  let stopping: Promise<void> | undefined;
  const stop = (): Promise<void> => {
    stopping ??= endService(running.child, folder);
    return stopping;
  };
  t.teardown(async () => {
    await stop();
    removeTestFolder(folder);
  });
  const url = await running.url;
  const { port } = new URL(url);
  const { database_url, redis_url } = options.stores ?? {
    database_url: embeddedPostgresUrl(folder) ?? '',
    redis_url: embeddedRedisUrl(folder),
  };
  const sql = openSql({ url: database_url, pool: 3, prepare: true, name: 'test' });
  const log = pino({ level: 'silent' });
  const redis = openRedis({ url: redis_url, name: 'test', log, command_timeout_ms: 5_000 });
  await connectRedis(redis);
  t.teardown(async () => {
    closeRedis(redis);
    await sql.end({ timeout: 1 });
  });

  const keys = Array.from({ length: options.agents ?? 200 }, makeApiKey);
  const agents = keys.map((key, n) => ({ id: agentId(n), key }));
  const questions = Array.from({ length: options.questions ?? 20 }, (_, n) => ({
    id: questionId(n),
    options: withOptions(n),
  }));
  await seed(sql, { keys, questions: questions.length, optionsOf: withOptions });

  const pidsOf = (part: Part): readonly number[] => findPids(folder, part);
  const isAtWork = makeIsAtWork({ url, redis, sql });
  const kill = (part: Part, { empty = false }: KillOptions = {}) => {
    const before = pidsOf(part);
    const victim = before[0];
    if (victim === undefined) throw new Error(`there is no ${part} to kill`);
    // The server goes on with the files it has open; the next one finds none.
    if (empty) emptyRedis(folder);
    process.kill(victim, 'SIGKILL');
    const back = until(
      `another ${part}`,
      async () => {
        const now = pidsOf(part);
        const is_new = now.some((pid) => !before.includes(pid));
        return is_new && now.length === before.length && (await isAtWork(part));
      },
      20_000,
    );
    return { back: back.then(() => undefined) };
  };

  const startAgain = async (): Promise<void> => {
    await until('all its processes end', () => processesOf(folder).length === 0);
    running = launch(folder, { ...env, PORT: port });
    await running.url;
    await until('the api is at work', () => isAtWork('api'));
  };
  const killAll = () => {
    running.child.kill('SIGKILL');
    for (const pid of processesOf(folder)) signalProcess(pid, 'SIGKILL');
    return { back: startAgain() };
  };

  /** Pausing only the postmaster would leave its backends at work. */
  const pause = (part: Part): (() => void) => {
    const pids = pidsOf(part).flatMap((pid) => [pid, ...childrenOf(pid)]);
    for (const pid of pids) signalProcess(pid, 'SIGSTOP');
    return () => {
      for (const pid of pids) signalProcess(pid, 'SIGCONT');
    };
  };

  return {
    url,
    port: Number(port),
    folder,
    disk,
    database_url,
    redis_url,
    prefix,
    env,
    sql,
    redis,
    agents,
    questions,
    pidsOf,
    kill,
    killAll,
    pause,
    troubles: () => readLog(folder).filter(({ level }) => level >= 40),
    stop,
  };
};

/** Roles of the same service under another supervisor, as on a second machine. */
export const startMoreRoles = async (
  t: Teardown,
  service: TestService,
  roles: readonly RoleName[],
): Promise<{ readonly folder: string; pidsOf(part: RoleName): readonly number[] }> => {
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
  return { folder, pidsOf: (part) => findPids(folder, part) };
};
