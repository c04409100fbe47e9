import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Sql } from '../../src/db/client.js';
import type { Bed } from './bed.js';
import { type Child, type Handlers, startChild } from './child.js';
import { commandOf, type Groups, treeOf } from './processes.js';

/** A server under load: the service, or a peer. */
export interface Target {
  readonly name: string;
  readonly port: number;
  readonly groups: Groups;
  /** The processes whose memory is reported. */
  watched(): readonly number[];
  /** The last errors of its log, for the report of a round that failed. */
  lastErrors?(): string;
}

/** A target with a database of its name, and a pool for counting what it stored. */
export interface StoredTarget extends Target {
  readonly sql: Sql;
}

const root = path.resolve(import.meta.dirname, '../../..');

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = net.createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as net.AddressInfo;
      server.close(() => resolve(port));
    });
  });

/** One machine makes all the load, and rounds come faster than an agent may write. */
const no_limits = Object.fromEntries(
  ['IP', 'KEY', 'REGISTER', 'PREDICTIONS', 'COMMENTS', 'VOTES', 'EXPORTS'].map((name) => [
    `LIMIT_${name}`,
    '100000000',
  ]),
);

const waitUntilHealthy = async (child: ChildProcess, port: number): Promise<boolean> => {
  const give_up_ms = Date.now() + 60_000;
  while (child.exitCode === null && Date.now() < give_up_ms) {
    const response = await fetch(`http://127.0.0.1:${port}/health`).catch(() => undefined);
    await response?.arrayBuffer();
    if (response?.ok) return true;
    await delay(50);
  }
  return false;
};

const stopChild = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  const killer = setTimeout(() => child.kill('SIGKILL'), 30_000);
  await gone;
  clearTimeout(killer);
};

/** The service as a user runs it: the supervisor with all roles, in production mode. */
export const startService = async (
  bed: Bed,
  env: Readonly<Record<string, string>> = {},
  name = 'service',
): Promise<StoredTarget> => {
  const folder = path.join(bed.context.folder, name);
  mkdirSync(folder);
  const port = await freePort();
  const log_file = path.join(folder, 'service.log');
  const log = openSync(log_file, 'a');
  const profiles = path.resolve('.data/prof');
  // The role processes are forked and inherit these flags.
  const flags = ['--cpu-prof', `--cpu-prof-dir=${profiles}`, '--cpu-prof-interval=500'];
  const child = spawn(
    process.execPath,
    [...(bed.context.cpu_prof ? flags : []), path.join(root, 'dist/src/main.js')],
    {
      cwd: folder,
      env: {
        ...{ PATH: process.env.PATH, HOME: process.env.HOME, NODE_ENV: 'production' },
        ...{ LOG_LEVEL: 'info', PORT: String(port), DATA_DIR: path.join(folder, 'data') },
        ...{ DATABASE_URL: bed.urlOf(name), REDIS_URL: bed.redis_url },
        ...no_limits,
        ...env,
      },
      stdio: ['ignore', log, log],
    },
  );
  closeSync(log);
  bed.onClose(() => stopChild(child));
  if (!(await waitUntilHealthy(child, port))) {
    const end = readFileSync(log_file, 'utf8').slice(-4_000);
    throw new Error(`The service did not become healthy:\n${end}`);
  }
  const pids = (is_api: boolean): readonly number[] =>
    treeOf(child.pid ?? 0).filter((pid) => commandOf(pid).includes(' --role=api ') === is_api);
  if (pids(true).length === 0) throw new Error('No api process was found.');
  return {
    ...{ name, port, sql: bed.open(name) },
    groups: { api: () => pids(true), other: () => pids(false) },
    watched: () => pids(true),
    lastErrors: () =>
      readFileSync(log_file, 'utf8')
        .split('\n')
        .filter((line) => /"level":(?:[4-6]0|"(?:warn|error|fatal)")|^\s*\w*Error/.test(line))
        .slice(-5)
        .join('\n'),
  };
};

export interface Peer<T extends Handlers> extends Target {
  readonly call: Child<T>['call'];
}

/** A peer of `bench/peers` in a process of its own; its handler `listen` returns the port. */
export const startPeer = async <T extends Handlers>(
  bed: Bed,
  { name, module, env = {} }: { name: string; module: string; env?: Record<string, string> },
): Promise<Peer<T>> => {
  const { pid, call, stop } = startChild<T>(new URL(`../peers/${module}.js`, import.meta.url), {
    REDIS_URL: bed.redis_url,
    LOG_FILE: path.join(bed.context.folder, `${name}.log`),
    ...env,
  });
  bed.onClose(stop);
  const listen = call as unknown as (name: 'listen') => Promise<number>;
  const port = await listen('listen');
  const pids = (): readonly number[] => treeOf(pid);
  return { name, port, groups: { peer: pids }, watched: pids, call };
};

/** The conventional design, on a database of its name. */
export const startConventional = async (bed: Bed, pool: number): Promise<StoredTarget> => {
  const name = 'conventional';
  const env = { DATABASE_URL: bed.urlOf(name), POOL: String(pool) };
  return { ...(await startPeer(bed, { name, module: name, env })), sql: bed.open(name) };
};
