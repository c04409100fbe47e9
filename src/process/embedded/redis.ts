import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, realpathSync, rmSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { type Say, writeWhole } from './data-dir.js';
import { openPlaces, socket_path_bytes } from './postgres-home.js';
import {
  type EmbeddedStore,
  findServer,
  type ServerName,
  startServer,
  stopProcess,
} from './processes.js';

/**
 * A private Redis under a data folder, on a unix socket. What it keeps can be made again from
 * Postgres, so files that it cannot read are deleted and it starts empty.
 */
export interface RedisOptions {
  readonly data_dir: string;
  readonly say: Say;
}

export const startRedis = async (options: RedisOptions): Promise<EmbeddedStore> => {
  const data_dir = realpathSync(options.data_dir);
  const folder = path.join(data_dir, 'redis');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const binary = findRedis(options.say);
  await stopRedisLeftover(data_dir);
  for (let attempt = 1; ; attempt += 1) {
    writeSettings(folder);
    const outcome = await launch(data_dir, folder, binary);
    if (typeof outcome !== 'string') return outcome;
    if (attempt === 3) throw new Error(`Redis does not start:\n${outcome}`);
    // Its files are the likeliest reason, and Postgres has all that they hold.
    if (attempt === 2) {
      options.say('Redis cannot read its files; they are deleted and made again.');
      emptyRedis(data_dir);
    }
  }
};

const settingsFile = (folder: string): string => path.join(folder, 'redis.conf');

const serverName = (folder: string): ServerName => ({
  pid_file: path.join(folder, 'redis.pid'),
  word: settingsFile(folder),
});

const stop_steps = [
  ['SIGTERM', 5_000],
  ['SIGKILL', 2_000],
] as const;

/** Ends what an earlier process left running under the data folder. */
export const stopRedisLeftover = async (data_dir: string): Promise<void> => {
  const pid = findServer(serverName(path.join(data_dir, 'redis')));
  if (pid !== 0) await stopProcess(pid, stop_steps);
};

/** Outside the folder where its path is too long for the address of a socket. */
const socketOf = (folder: string): string => {
  const socket = path.join(folder, 'redis.sock');
  if (Buffer.byteLength(socket) <= socket_path_bytes) return socket;
  const [place] = openPlaces(null);
  if (place === undefined) throw new Error(`The path ${folder} is too long for a socket.`);
  const name = createHash('sha256').update(folder).digest('hex').slice(0, 16);
  return path.join(place, `redis-${name}.sock`);
};

/** The title stays the command line, because that is how this server is known again. */
const writeSettings = (folder: string): void => {
  const quote = (text: string): string => JSON.stringify(text);
  const lines = [
    `dir ${quote(folder)}`,
    `pidfile ${quote(serverName(folder).pid_file)}`,
    'set-proc-title no',
    'daemonize no',
    'appendonly yes',
    'appendfsync everysec',
    'aof-load-truncated yes',
    'save ""',
    // A rewrite takes a core for a while: not before it saves much.
    'auto-aof-rewrite-min-size 256mb',
    'maxmemory-policy noeviction',
    'port 0',
    `unixsocket ${quote(socketOf(folder))}`,
    'unixsocketperm 700',
  ];
  writeWhole(settingsFile(folder), `${lines.join('\n')}\n`);
};

/** The running server, or what it said when it did not start. */
const launch = async (
  data_dir: string,
  folder: string,
  binary: RedisBinary,
): Promise<EmbeddedStore | string> => {
  const socket = socketOf(folder);
  const started = await startServer({
    command: binary.command,
    args: [settingsFile(folder)],
    options: { argv0: binary.argv0 },
    log_file: path.join(data_dir, 'log', 'redis.log'),
    word: settingsFile(folder),
    ...{ stop_steps, ready_ms },
    isReady: () => ping(socket),
  });
  return typeof started === 'string' ? started : { ...started, url: `unix:${socket}` };
};

/** Where the embedded Redis of a data folder is, running or not. */
export const embeddedRedisUrl = (data_dir: string): string =>
  `unix:${socketOf(path.join(realpathSync(data_dir), 'redis'))}`;

const ready_ms = 60_000;

/** Whether it answers; while Redis reads its files it says -LOADING. */
const ping = (socket: string): Promise<boolean> =>
  new Promise((resolve) => {
    const link = net.connect(socket);
    let answer = '';
    const end = (): void => {
      link.destroy();
      resolve(answer.includes('+PONG'));
    };
    link.setTimeout(1_000, end);
    link.once('error', end);
    link.once('close', end);
    link.on('data', (chunk) => {
      answer += chunk.toString('latin1');
      if (/\+PONG|-LOADING|-ERR/.test(answer)) end();
    });
    link.write('PING\r\n');
  });

/** Forgets everything that a stopped Redis keeps. */
export const emptyRedis = (data_dir: string): void =>
  rmSync(path.join(data_dir, 'redis', 'appendonlydir'), { recursive: true, force: true });

/**
 * Finds a Redis server. Debian's package redis-tools holds it under the name redis-check-rdb: one
 * program, which is the server when it is called `redis-server`, and which starts no system
 * service. Where nothing is found, that package is installed if this can be done without asking.
 */
interface RedisBinary {
  readonly command: string;
  readonly argv0: string;
  readonly version: string;
}

const oldest_major = 7;
const names: readonly (readonly [command: string, argv0: string])[] = [
  ['redis-server', 'redis-server'],
  ['valkey-server', 'valkey-server'],
  ['redis-check-rdb', 'redis-server'],
  ['valkey-check-rdb', 'valkey-server'],
];
const advice = 'Install Redis 7 or newer (Debian: apt-get install redis-tools) or set REDIS_URL.';

const findRedis = (say: Say): RedisBinary => {
  const found = lookUp();
  if (found !== null) return found;
  const installer = findInstaller();
  if (installer === null) throw new Error(`No redis-server was found. ${advice}`);
  say('Installing redis-tools with apt-get, because there is no redis-server …');
  const problem = install(installer);
  const installed = lookUp();
  if (installed === null)
    throw new Error(`redis-server could not be installed. ${advice} ${problem}`);
  return installed;
};

/** The first server on the PATH that is new enough. */
export const lookUp = (): RedisBinary | null => {
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

/** The words before apt-get, or null where it cannot run without asking for a password. */
export const findInstaller = (): readonly string[] | null => {
  if (!succeeds('apt-get', '--version')) return null;
  if (process.getuid?.() === 0) return [];
  return succeeds('sudo', '-n', 'true') ? ['sudo', '-n'] : null;
};

/** Empty when all went well, else the last line that apt-get said. */
const install = (before: readonly string[]): string => {
  const apt = (...args: string[]): string => {
    const words = [...before, 'env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', ...args];
    const result = spawnSync(words[0] as string, words.slice(1), {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 300_000,
    });
    if (result.status === 0) return '';
    const output = result.error?.message ?? `${result.stdout}${result.stderr}`;
    return `(${output.trim().split('\n').at(-1)})`;
  };
  const lock = ['-o', 'DPkg::Lock::Timeout=60'];
  const get = () => apt('install', '-y', '--no-install-recommends', ...lock, 'redis-tools');
  return get() === '' ? '' : apt('update', ...lock) || get();
};
