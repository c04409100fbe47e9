import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { commandOf, treeOf } from './processes.js';

/** The service as a user would run it: the supervisor with all roles, in production mode. */
export interface RunningService {
  readonly port: number;
  pids(): readonly number[];
  apiPids(): readonly number[];
  lastErrors(): string;
  stop(): Promise<void>;
}

export interface ServiceOptions {
  readonly folder: string;
  readonly database_url: string;
  readonly redis_url: string;
  /** Where CPU profiles of its processes go; none are taken when absent. */
  readonly cpu_prof: string | undefined;
  readonly env?: Readonly<Record<string, string>>;
}

const root = path.resolve(import.meta.dirname, '../../..');

export const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = net.createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' ? (address?.port ?? 0) : 0));
    });
  });

const environment = (options: ServiceOptions, port: number): NodeJS.ProcessEnv => ({
  PATH: process.env.PATH,
  HOME: process.env.HOME,
  NODE_ENV: 'production',
  LOG_LEVEL: 'info',
  PORT: String(port),
  DATA_DIR: path.join(options.folder, 'data'),
  DATABASE_URL: options.database_url,
  REDIS_URL: options.redis_url,
  // One address makes all the load of a bench; the limits that count a key stay as they are.
  LIMIT_IP: '100000000',
  LIMIT_REGISTER: '100000000',
  ...options.env,
});

const isHealthy = async (port: number): Promise<boolean> => {
  try {
    const answer = await fetch(`http://127.0.0.1:${port}/health`, {
      signal: AbortSignal.timeout(2_000),
    });
    await answer.arrayBuffer();
    return answer.ok;
  } catch {
    return false;
  }
};

const waitUntilHealthy = async (
  child: ChildProcess,
  port: number,
  log_file: string,
): Promise<void> => {
  const give_up_ms = Date.now() + 60_000;
  while (!(await isHealthy(port))) {
    if (child.exitCode !== null || Date.now() > give_up_ms) {
      child.kill('SIGKILL');
      const said = readFileSync(log_file, 'utf8').slice(-4_000);
      throw new Error(`The service did not become healthy:\n${said}`);
    }
    await delay(50);
  }
};

const stopChild = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.kill('SIGTERM');
  const killer = setTimeout(() => child.kill('SIGKILL'), 30_000);
  await gone;
  clearTimeout(killer);
};

/** Log lines of level warn and above (pino: 40 and more), the last few. */
const lastErrors = (log_file: string): string =>
  readFileSync(log_file, 'utf8')
    .split('\n')
    .filter((line) => /"level":(?:[4-6]0|"(?:warn|error|fatal)")|^\s*\w*Error/.test(line))
    .slice(-5)
    .join('\n');

export const startService = async (options: ServiceOptions): Promise<RunningService> => {
  const port = await freePort();
  mkdirSync(options.folder, { recursive: true });
  const log_file = path.join(options.folder, 'service.log');
  if (options.cpu_prof !== undefined) mkdirSync(options.cpu_prof, { recursive: true });
  mkdirSync(options.folder, { recursive: true });
  const log = openSync(log_file, 'a');
  // The role processes are forked, so they take these flags over.
  const flags =
    options.cpu_prof === undefined
      ? []
      : ['--cpu-prof', `--cpu-prof-dir=${options.cpu_prof}`, '--cpu-prof-interval=500'];
  const child = spawn(process.execPath, [...flags, path.join(root, 'dist/src/main.js')], {
    cwd: options.folder,
    env: environment(options, port),
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  await waitUntilHealthy(child, port, log_file);
  const pids = (): readonly number[] => treeOf(child.pid ?? 0);
  return {
    port,
    pids,
    apiPids: () => pids().filter((pid) => commandOf(pid).includes(' --role=api ')),
    lastErrors: () => lastErrors(log_file),
    stop: () => stopChild(child),
  };
};
