import { spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { makeSecret, writeWhole } from './files.js';
import { closeLog, openLog } from './logs.js';
import {
  type EmbeddedStore,
  findServer,
  keepPort,
  lastLines,
  type Say,
  type ServerName,
  startKeeper,
  stopProcess,
  type Watched,
  watchServer,
} from './processes.js';
import { findRedis, type RedisBinary } from './redis-binary.js';

/**
 * A private Redis under a data folder, on a unix socket; where the path is too long for one, on a
 * port of 127.0.0.1 with a password. What it keeps can be made again from Postgres, so files that
 * it cannot read are moved aside and it starts empty.
 */
export interface RedisOptions {
  readonly data_dir: string;
  readonly say: Say;
  /** A server that starts again under its clients keeps its port, whatever it takes. */
  readonly must_keep_port?: boolean;
}

interface Address {
  /** Empty: over TCP. */
  readonly socket: string;
  readonly port: number;
  readonly password: string;
}

/** Bytes of a path that the address of a unix socket holds. */
export const socket_path_bytes = 107;

export const startRedis = async (options: RedisOptions): Promise<EmbeddedStore> => {
  const data_dir = realpathSync(options.data_dir);
  const folder = path.join(data_dir, 'redis');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const binary = findRedis(options.say);
  await stopRedisLeftover(data_dir);
  for (let attempt = 1; ; attempt += 1) {
    const address = await chooseAddress(data_dir, folder, options.must_keep_port ?? false);
    writeSettings(folder, address);
    const outcome = await launch({ data_dir, folder, binary, address });
    if (typeof outcome !== 'string') return outcome;
    if (attempt === 3) throw new Error(`Redis does not start:\n${lastLines(outcome)}`);
    // Whatever the reason is, its files are the likeliest, and none of them is the only copy.
    if (attempt === 2) {
      options.say('Redis cannot read its files; they are moved aside and made again.');
      moveAside(folder);
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

const chooseAddress = async (
  data_dir: string,
  folder: string,
  must_keep: boolean,
): Promise<Address> => {
  const socket = socketOf(folder);
  if (socket !== '') return { socket, port: 0, password: '' };
  const file = path.join(data_dir, 'redis.json');
  const found = readAddress(file);
  const port = await keepPort(found.port, must_keep);
  if (port !== found.port) writeWhole(file, `${JSON.stringify({ ...found, port })}\n`);
  return { socket: '', port, password: found.password };
};

/** Empty where the path is too long for a socket. */
const socketOf = (folder: string): string => {
  const socket = path.join(folder, 'redis.sock');
  return Buffer.byteLength(socket) <= socket_path_bytes ? socket : '';
};

const readAddress = (file: string): { port: number; password: string } => {
  try {
    const { port, password } = JSON.parse(readFileSync(file, 'utf8'));
    if (Number.isInteger(port) && typeof password === 'string') return { port, password };
  } catch {
    // There is none yet.
  }
  return { port: 0, password: makeSecret(24) };
};

/** The title stays the command line, because that is how this server is known again. */
const writeSettings = (folder: string, { socket, port, password }: Address): void => {
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
    'bind 127.0.0.1',
    `port ${port}`,
    ...(socket === '' ? [`requirepass ${password}`] : [`unixsocket ${quote(socket)}`]),
    ...(socket === '' ? [] : ['unixsocketperm 700']),
  ];
  writeWhole(settingsFile(folder), `${lines.join('\n')}\n`);
};

interface Launch {
  readonly data_dir: string;
  readonly folder: string;
  readonly binary: RedisBinary;
  readonly address: Address;
}

/** The running server, or what it said when it did not start. */
const launch = async (what: Launch): Promise<EmbeddedStore | string> => {
  const { data_dir, folder, binary, address } = what;
  const log_file = path.join(data_dir, 'log', 'redis.log');
  const log = openLog(log_file);
  const from = statSync(log_file).size;
  const child = spawn(binary.command, [settingsFile(folder)], {
    argv0: binary.argv0,
    cwd: '/',
    detached: true,
    stdio: ['ignore', log, log],
  });
  closeLog(log);
  const watched = watchServer(child, stop_steps);
  void watched.exited.then(startKeeper(watched.pid, settingsFile(folder), 'SIGTERM'));
  if (!(await untilReady(address, watched))) {
    await watched.stop();
    return readFileSync(log_file).subarray(from).toString('utf8');
  }
  return { url: urlOf(address), pid: watched.pid, exited: watched.exited, stop: watched.stop };
};

const urlOf = ({ socket, port, password }: Address): string =>
  socket === '' ? `redis://:${password}@127.0.0.1:${port}` : `unix:${socket}`;

/** Where the embedded Redis of a data folder is; whether it runs is not asked. */
export const embeddedRedisUrl = (data_dir: string): string => {
  const real = realpathSync(data_dir);
  const socket = socketOf(path.join(real, 'redis'));
  const found = readAddress(path.join(real, 'redis.json'));
  return urlOf(socket === '' ? { socket, ...found } : { socket, port: 0, password: '' });
};

const ready_ms = 60_000;

/** Waits for the answer to a PING; while Redis reads its files it answers with -LOADING. */
const untilReady = async (address: Address, watched: Watched): Promise<boolean> => {
  const deadline = Date.now() + ready_ms;
  while (!watched.hasEnded() && Date.now() < deadline) {
    if (await ping(address)) return !watched.hasEnded();
    await wait(5);
  }
  return false;
};

const ping = ({ socket, port, password }: Address): Promise<boolean> =>
  new Promise((resolve) => {
    const link = socket === '' ? net.connect(port, '127.0.0.1') : net.connect(socket);
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
      if (/\+PONG|-LOADING|-ERR|-WRONGPASS/.test(answer)) end();
    });
    link.write(`${password === '' ? '' : `AUTH ${password}\r\n`}PING\r\n`);
  });

/** Keeps the files of the last such accident only. */
const moveAside = (folder: string): void => {
  const target = path.join(folder, 'unreadable');
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target);
  for (const name of readdirSync(folder)) {
    if (name === 'appendonlydir' || name.endsWith('.rdb')) {
      renameSync(path.join(folder, name), path.join(target, name));
    }
  }
};

/** Forgets everything that a stopped Redis keeps. */
export const emptyRedis = (data_dir: string): void => {
  const folder = path.join(data_dir, 'redis', 'appendonlydir');
  if (existsSync(folder)) rmSync(folder, { recursive: true });
};
