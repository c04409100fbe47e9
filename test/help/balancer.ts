import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { pickPort } from '../../src/process/embedded/processes.js';
import { findProgram } from './debian.js';
import { makeTestFolder, project_root, removeTestFolder } from './own-stores.js';
import type { Teardown } from './stores.js';
import { until } from './until.js';

/** HAProxy with the configuration of `examples/hosts`, in front of hosts on this machine. */

export const no_haproxy = 'haproxy is neither installed nor to be had with apt-get';

export const isThereHaproxy = (): boolean => findProgram('haproxy') !== null;

/**
 * Reads the example configuration, and changes its addresses, ports and hosts. Health checks are
 * faster than in the example.
 */
const readConfiguration = (port: number, host_ports: readonly number[]): string => {
  const file = path.join(project_root, 'examples', 'hosts', 'haproxy.cfg');
  const servers = host_ports.map((one, n) => `  server host${n} 127.0.0.1:${one}`).join('\n');
  return readFileSync(file, 'utf8')
    .replace('bind :80', `bind 127.0.0.1:${port}`)
    .replace('inter 1s', 'inter 300ms')
    .replaceAll(/( {2}server \S+ 10\.0\.0\.\d:8080\n?)+/g, `${servers}\n`);
};

interface ServerState {
  readonly is_up: boolean;
  /** Requests and websockets that are open now. */
  readonly open: number;
}

/** The state of each server as HAProxy reports it, in configuration order. */
const askStates = (socket_file: string): Promise<readonly ServerState[]> =>
  new Promise((resolve, reject) => {
    const socket = connect(socket_file, () => socket.write('show stat\n'));
    let text = '';
    socket.setEncoding('utf8').on('data', (some: string) => {
      text += some;
    });
    socket.once('error', reject).once('end', () => {
      const rows = text.split('\n').map((line) => line.split(','));
      const names = rows[0] ?? [];
      const [open_at, status_at] = [names.indexOf('scur'), names.indexOf('status')];
      const servers = rows.filter(([proxy, name]) => proxy === 'forum' && name !== 'BACKEND');
      resolve(
        servers.map((row) => ({ is_up: row[status_at] === 'UP', open: Number(row[open_at]) })),
      );
    });
  });

export interface Balancer {
  readonly url: string;
  readonly port: number;
  states(): Promise<readonly ServerState[]>;
}

export const startBalancer = async (
  t: Teardown,
  host_ports: readonly number[],
): Promise<Balancer> => {
  const program = findProgram('haproxy');
  if (program === null) throw new Error(no_haproxy);
  const folder = makeTestFolder();
  const port = await pickPort();
  const file = path.join(folder, 'haproxy.cfg');
  const socket_file = path.join(folder, 'haproxy.sock');
  const own = `global\n  stats socket ${socket_file}\n`;
  writeFileSync(file, own + readConfiguration(port, host_ports));
  const child = spawn(program.command, ['-f', file, '-db'], {
    env: program.env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (some: string) => {
    said += some;
  });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  t.teardown(async () => {
    child.kill('SIGKILL');
    await ended;
    removeTestFolder(folder);
  });
  const url = `http://127.0.0.1:${port}`;
  await until('a host behind HAProxy', async () => {
    if (child.exitCode !== null) throw new Error(`HAProxy ended: ${said}`);
    return (await fetch(`${url}/livez`).catch(() => null))?.status === 200;
  });
  return { url, port, states: () => askStates(socket_file) };
};
