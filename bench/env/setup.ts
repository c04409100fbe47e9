import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { openSql, type Sql } from '../../src/db/client.js';
import { migrate } from '../../src/db/migrate.js';
import { makeApiKey } from '../../src/features/accounts/rules.js';
import { makeDataFolder } from '../../src/process/embedded/data-dir.js';
import { startPostgres } from '../../src/process/embedded/postgres.js';
import { removePlace } from '../../src/process/embedded/postgres-home.js';
import { startRedis } from '../../src/process/embedded/redis.js';
import type { BenchContext } from '../frame/bench.js';
import type { LoadHandlers } from '../load/load-process.js';
import { type Child, type Handlers, startChild } from './child.js';
import { commandOf, type PartPids, treeOf } from './processes.js';
import { seed } from './seed.js';

/**
 * Starts everything that a bench needs: one Postgres and one Redis for all subjects (the same ones
 * that `npm start` starts), a load generator, the service and its peers. All of them end with the
 * bench. Every commit is on disk before it is answered.
 */
export type Setup = Awaited<ReturnType<typeof startSetup>>;

/** A server under load: the service, or a peer. */
export interface Target {
  readonly name: string;
  readonly port: number;
  /** A pool on the target's database, for counting the rows that it stored. */
  readonly sql: Sql;
  /** The processes that answer requests. Their memory is measured. */
  watched(): readonly number[];
  /** All its processes. */
  all(): readonly number[];
  /** The last errors in its log, for the report of a failed round. */
  lastErrors(): string;
}

/** The timeouts leave time for an autovacuum that holds a lock. */
const openPool = (url: string): Sql => {
  const deadlines = { statement_timeout_ms: 120_000, lock_timeout_ms: 60_000 };
  return openSql({ url, pool: 2, prepare: true, name: 'bench', ...deadlines });
};

const startSetup = async (context: BenchContext) => {
  const { onClose, log } = context;
  const data_dir = path.join(context.folder, 'stores');
  makeDataFolder(data_dir);
  onClose(() => removePlace(data_dir));
  const postgres = await startPostgres({ data_dir, say: log });
  onClose(postgres.stop);
  const redis = await startRedis({ data_dir, say: log });
  onClose(redis.stop);
  const admin = openPool(postgres.admin_url);
  onClose(() => admin.end({ timeout: 5 }));
  const [row] = await admin<{ durable: string }[]>`
    select concat(current_setting('fsync'), current_setting('synchronous_commit')) as durable`;
  if (row?.durable !== 'onon') throw new Error('Postgres is not durable.');
  const urlOf = (database: string): string => {
    const url = new URL(postgres.url);
    url.pathname = `/${database}`;
    return url.href;
  };
  /** A pool that closes at the end of the bench. */
  const open = (database: string): Sql => {
    const sql = openPool(urlOf(database));
    onClose(() => sql.end({ timeout: 5 }));
    return sql;
  };
  return {
    context,
    admin,
    urlOf,
    open,
    /** All parts of a target: the processes that answer, its other processes, the stores. */
    partsOf: (target: Pick<Target, 'watched' | 'all'>): PartPids => {
      const api = target.watched();
      const background = target.all().filter((pid) => !api.includes(pid));
      return { api, background, postgres: treeOf(postgres.pid), redis: treeOf(redis.pid) };
    },
    redis_url: redis.url,
    loader: startLoader(context),
  };
};

export const startLoader = (context: BenchContext) =>
  startChild<LoadHandlers>(context, 'load/load-process');

export interface ForumOptions {
  readonly agents: number;
  readonly questions: number;
  /** Adds rows to the seeded database. */
  readonly fill?: (sql: Sql) => Promise<unknown>;
  /** Names of further databases, which are exact copies of the seeded one. */
  readonly copies?: readonly string[];
  /** Settings of the service. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts the service on a seeded database. Returns the keys of its agents too. */
export const startForum = async (context: BenchContext, options: ForumOptions) => {
  const { agents, questions, fill, copies = [], env } = options;
  const setup = await startSetup(context);
  const { admin, urlOf } = setup;
  const keys = Array.from({ length: agents }, makeApiKey);
  await admin`create database service owner forum`;
  await migrate(urlOf('service'));
  const sql = openPool(urlOf('service'));
  await seed(sql, { keys, questions });
  await fill?.(sql);
  // Without statistics the first round would use different query plans than the others.
  await sql`vacuum analyze`;
  await sql.end({ timeout: 5 });
  for (const copy of copies) {
    await admin.unsafe(`create database ${copy} owner forum template service`);
  }
  const service = await startService(setup, env);
  return { setup, keys, keys_file: writeKeys(context, keys), service };
};

/** Writes the keys to a file that the load generator reads. */
export const writeKeys = ({ folder }: BenchContext, keys: readonly string[]): string => {
  const keys_file = path.join(folder, 'keys.json');
  writeFileSync(keys_file, JSON.stringify(keys), { mode: 0o600 });
  return keys_file;
};

const freePort = async (): Promise<number> => {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as net.AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
};

/** All load comes from one machine, and rounds exceed an agent's rate limits. */
const no_limits = Object.fromEntries(
  ['IP', 'KEY', 'REGISTER', 'PREDICTIONS', 'COMMENTS', 'VOTES', 'EXPORTS'].map((name) => [
    `LIMIT_${name}`,
    '100000000',
  ]),
);

/** Starts the service as a user runs it: the supervisor with all roles, in production mode. */
export const startService = async (
  setup: Setup,
  env: Readonly<Record<string, string>> = {},
  name = 'service',
): Promise<Target> => {
  const { context } = setup;
  const folder = path.join(context.folder, name);
  mkdirSync(folder);
  const port = await freePort();
  const log_file = path.join(folder, 'service.log');
  const log = openSync(log_file, 'a');
  const child = spawn(process.execPath, [path.resolve(import.meta.dirname, '../../src/main.js')], {
    cwd: folder,
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      NODE_ENV: 'production',
      LOG_LEVEL: 'info',
      PORT: String(port),
      DATA_DIR: path.join(folder, 'data'),
      DATABASE_URL: setup.urlOf(name),
      REDIS_URL: setup.redis_url,
      ...no_limits,
      ...env,
    },
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  const gone = once(child, 'exit');
  context.onClose(async () => {
    child.kill('SIGTERM');
    const killer = setTimeout(() => child.kill('SIGKILL'), 30_000);
    await gone;
    clearTimeout(killer);
  });
  const give_up_ms = Date.now() + 60_000;
  const isHealthy = async () => (await fetch(`http://127.0.0.1:${port}/health`)).ok;
  while (!(await isHealthy().catch(() => false))) {
    if (child.exitCode !== null || Date.now() > give_up_ms) {
      const end = readFileSync(log_file, 'utf8').slice(-4_000);
      throw new Error(`The service is not healthy:\n${end}`);
    }
    await delay(50);
  }
  return {
    name,
    port,
    sql: setup.open(name),
    all: () => treeOf(child.pid!),
    watched: () => treeOf(child.pid!).filter((pid) => commandOf(pid).includes(' --role=api ')),
    lastErrors: () =>
      readFileSync(log_file, 'utf8')
        .split('\n')
        .filter((line) => /"level":(?:[4-6]0|"(?:warn|error|fatal)")|^\s*\w*Error/.test(line))
        .slice(-5)
        .join('\n'),
  };
};

export type Peer<T extends Handlers> = Target & Pick<Child<T>, 'call'>;

interface PeerOptions {
  readonly name: string;
  /** Module in `bench/peers`. Default: the name of the peer. */
  readonly module?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts a peer in its own process and database. Its handler `listen` returns the port. */
export const startPeer = async <T extends Handlers>(
  setup: Setup,
  { name, module = name, env = {} }: PeerOptions,
): Promise<Peer<T>> => {
  const { pid, call } = startChild<T>(setup.context, `peers/${module}`, {
    // ioredis treats a plain path as a unix socket.
    DATABASE_URL: setup.urlOf(name),
    REDIS_URL: setup.redis_url.replace(/^unix:/, ''),
    KIND: name,
    LOG_FILE: path.join(setup.context.folder, `${name}.log`),
    ...env,
  });
  const listen = call as unknown as (name: 'listen') => Promise<number>;
  return {
    name,
    port: await listen('listen'),
    sql: setup.open(name),
    call,
    watched: () => treeOf(pid),
    all: () => treeOf(pid),
    lastErrors: () => '',
  };
};
