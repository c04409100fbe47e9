import { spawnSync } from 'node:child_process';
import { mkdirSync, realpathSync, rmSync } from 'node:fs';
import path from 'node:path';
import { Redis } from 'ioredis';
import type { Say } from './data-dir.js';
import { socketFolder } from './postgres-home.js';
import {
  type EmbeddedStore,
  isServerOf,
  type StoreOptions,
  startServer,
  stopProcesses,
} from './processes.js';

/**
 * A private Redis in a data folder, on a unix socket. If it cannot read its files, they are deleted
 * and it starts empty, because its data can be rebuilt from Postgres.
 */

const folderIn = (data_dir: string): string => path.join(realpathSync(data_dir), 'redis');

export const startRedis = async ({ data_dir, say }: StoreOptions): Promise<EmbeddedStore> => {
  const folder = folderIn(data_dir);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const binary = findRedis(say);
  await stopRedisLeftover(data_dir);
  for (let attempt = 1; ; attempt += 1) {
    const outcome = await launch(folder, binary);
    if (typeof outcome !== 'string') return outcome;
    if (attempt === 3) throw new Error(`Redis does not start:\n${outcome}`);
    // The files of Redis are the most likely reason, and Postgres has all of their data.
    if (attempt === 2) {
      say('Redis cannot read its files. They are deleted and created again.');
      emptyRedis(data_dir);
    }
  }
};

const stop_steps = [
  ['SIGTERM', 5_000],
  ['SIGKILL', 2_000],
] as const;

/** Ends the server that an earlier process left running in the data folder. */
export const stopRedisLeftover = async (data_dir: string): Promise<void> =>
  stopProcesses(isServerOf(folderIn(data_dir)), stop_steps);

const socketOf = (folder: string): string => path.join(socketFolder(folder, null), 'redis.sock');

/** `isServerOf` finds the server by its command line, so that must stay the process title. */
const settingsOf = (folder: string): Readonly<Record<string, string>> => ({
  dir: folder,
  pidfile: path.join(folder, 'redis.pid'),
  'set-proc-title': 'no',
  appendonly: 'yes',
  appendfsync: 'everysec',
  'aof-load-truncated': 'yes',
  save: '',
  // A rewrite of the file uses a core for a while, so Redis waits until it saves a lot.
  'auto-aof-rewrite-min-size': '256mb',
  'maxmemory-policy': 'noeviction',
  port: '0',
  unixsocket: socketOf(folder),
  unixsocketperm: '700',
});

/** Starts the server. Returns it, or its output if it did not start. */
const launch = async (
  folder: string,
  { command, argv0 }: RedisBinary,
): Promise<EmbeddedStore | string> => {
  const socket = socketOf(folder);
  const settings = Object.entries(settingsOf(folder));
  const started = await startServer({
    command,
    options: { argv0 },
    stop_steps,
    ready_ms: 60_000,
    args: settings.flatMap(([name, value]) => [`--${name}`, value]),
    log_file: path.join(folder, '..', 'log', 'redis.log'),
    isReady: () => answers(socket),
  });
  return typeof started === 'string' ? started : { ...started, url: `unix:${socket}` };
};

/** Returns true if Redis takes commands; it does not while it loads its files. */
const answers = async (socket: string): Promise<boolean> => {
  const client = new Redis({ path: socket, lazyConnect: true, retryStrategy: () => null });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return true;
  } catch {
    return false;
  } finally {
    client.disconnect();
  }
};

/** Returns the address of a data folder's embedded Redis, running or not. */
export const embeddedRedisUrl = (data_dir: string): string =>
  `unix:${socketOf(folderIn(data_dir))}`;

/** Deletes all data of a stopped Redis. */
export const emptyRedis = (data_dir: string): void =>
  rmSync(path.join(data_dir, 'redis', 'appendonlydir'), { recursive: true, force: true });

const oldest_major = 7;
/**
 * Debian's package redis-tools contains redis-check-rdb. It is the same program as the server, and
 * acts as the server when it is started as `redis-server`. The package starts no system service.
 */
const names: readonly (readonly [command: string, argv0: string])[] = [
  ['redis-server', 'redis-server'],
  ['valkey-server', 'valkey-server'],
  ['redis-check-rdb', 'redis-server'],
  ['valkey-check-rdb', 'valkey-server'],
];
const advice = 'Install Redis 7 or newer (Debian: apt-get install redis-tools) or set REDIS_URL.';

type RedisBinary = NonNullable<ReturnType<typeof lookUp>>;

/** Finds the server program. If it is missing and no password is needed, installs it. */
const findRedis = (say: Say): RedisBinary => {
  const found = lookUp();
  if (found !== null) return found;
  const installer = findInstaller();
  if (installer === null) throw new Error(`No redis-server was found. ${advice}`);
  say('Installing redis-tools with apt-get, because there is no redis-server …');
  const problem = install(installer);
  const installed = lookUp();
  if (installed !== null) return installed;
  throw new Error(`redis-server could not be installed. ${advice} ${problem}`);
};

/** Returns the first server on the PATH that is new enough. */
export const lookUp = () => {
  for (const [command, argv0] of names) {
    const { stdout } = spawnSync(command, ['--version'], { argv0, encoding: 'utf8' });
    const version = /server v=(\d+\.\d+\.\d+)/.exec(stdout ?? '')?.[1];
    if (version !== undefined && Number.parseInt(version, 10) >= oldest_major) {
      return { command, argv0, version };
    }
  }
  return null;
};

const succeeds = (command: string, ...args: string[]): boolean =>
  spawnSync(command, args, { stdio: 'ignore' }).status === 0;

/** Returns the words before `apt-get`, or null if apt-get is missing or needs a password. */
export const findInstaller = (): readonly string[] | null => {
  if (!succeeds('apt-get', '--version')) return null;
  if (process.getuid?.() === 0) return [];
  return succeeds('sudo', '-n', 'true') ? ['sudo', '-n'] : null;
};

/** Returns an empty text on success, otherwise the last line of apt-get's output. */
const install = (before: readonly string[]): string => {
  const apt = (...args: string[]): string => {
    const words = [...before, 'env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', ...args];
    const lock = ['-o', 'DPkg::Lock::Timeout=60'];
    const result = spawnSync(words[0] as string, [...words.slice(1), ...lock], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 300_000,
    });
    if (result.status === 0) return '';
    const output = result.error?.message ?? `${result.stdout}${result.stderr}`;
    return `(${output.trim().split('\n').at(-1)})`;
  };
  const get = () => apt('install', '-y', '--no-install-recommends', 'redis-tools');
  return get() === '' ? '' : apt('update') || get();
};
