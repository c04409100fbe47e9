import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { findProcesses, parentOf, startTime } from '../../src/boot/processes.mjs';
import type { RoleName } from '../../src/config.js';
import { signalProcess } from '../../src/process/embedded/processes.js';
import { project_root } from './own-stores.js';
import { until } from './until.js';

/** The processes of a service that runs on a folder: start, find, end, and what they logged. */

export type Part = RoleName | 'Redis' | 'Postgres';

export interface Launched {
  readonly child: ChildProcess;
  /** Where it listens, once it says so; empty without an api. */
  readonly url: Promise<string>;
}

export interface LogLine {
  readonly level: number;
  readonly msg: string;
  readonly [field: string]: unknown;
}

const entry = path.join(project_root, 'dist', 'src', 'main.js');
const start_ms = 60_000;
const stop_ms = 30_000;
export const prefix = 'pf';

export const launch = (folder: string, env: NodeJS.ProcessEnv): Launched => {
  const child = spawn(process.execPath, [entry], {
    cwd: project_root,
    env: {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      // With this the supervisor ends when this process is gone, however it went.
      npm_lifecycle_event: 'test',
      NODE_ENV: 'development',
      LOG_LEVEL: 'warn',
      DATA_DIR: folder,
      PORT: '0',
      REDIS_PREFIX: prefix,
      LIMIT_IP: '100000000',
      LIMIT_KEY: '100000000',
      LIMIT_PREDICTIONS: '100000000',
      LIMIT_REGISTER: '100000000',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  const url = new Promise<string>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => {
        text += chunk;
        const found = /runs (?:at (\S+)|without an api\.)\n/.exec(text);
        if (found !== null) resolve(found[1] ?? '');
      });
    }
    child.once('close', () => reject(new Error(`the service ended: ${text}`)));
    setTimeout(() => reject(new Error(`the service does not start: ${text}`)), start_ms).unref();
  });
  url.catch(() => undefined);
  return { child, url };
};

/** In the folder, or elsewhere where Postgres may not enter it. */
const clusterOf = (folder: string): string => {
  const place = path.join(folder, 'postgres.place');
  return existsSync(place) ? readFileSync(place, 'utf8').trim() : path.join(folder, 'postgres');
};

/** Everything that names the folder or the cluster. */
export const processesOf = (folder: string): readonly number[] => {
  const names = [folder, clusterOf(folder)];
  const isNamed = (word: string): boolean =>
    names.some((name) => word.endsWith(name) || word.includes(`${name}/`));
  return findProcesses((command) => command.some(isNamed));
};

/** Empty where there is no such file, or none any more. */
const readIfThere = (file: string): string => {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw error;
  }
};

const pidIn = (file: string): readonly number[] => {
  const pid = Number.parseInt(readIfThere(file), 10);
  return startTime(pid) === null ? [] : [pid];
};

export const findPids = (folder: string, part: Part): readonly number[] => {
  if (part === 'Redis') return pidIn(path.join(folder, 'redis', 'redis.pid'));
  if (part === 'Postgres') return pidIn(path.join(clusterOf(folder), 'postmaster.pid'));
  return findProcesses(
    (command) => command.includes(`--data=${folder}`) && command.includes(`--role=${part}`),
  ).sort((a, b) => Number(startTime(a)) - Number(startTime(b)));
};

export const readLog = (folder: string): readonly LogLine[] => {
  const file = path.join(folder, 'log', 'forum.log');
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line): LogLine => {
      try {
        return JSON.parse(line);
      } catch {
        // A line of the logger that was cut by the end of the disk, or what Node says when a
        // process dies of an error.
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
  await until('all its processes end', () => processesOf(folder).length === 0);
};
