import { spawn } from 'node:child_process';
import { connect as connectTcp } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { Test } from 'tap';
import {
  App,
  type TemplatedApp,
  type us_listen_socket,
  us_socket_local_port,
} from '../../src/http/uws.js';
import { until } from './until.js';

/** Uses the HTTP library directly, over raw connections, and in a child process that may crash. */

export const startBare = async (t: Pick<Test, 'teardown'>, mount: (app: TemplatedApp) => void) => {
  const app = App();
  mount(app);
  const socket = await new Promise<us_listen_socket>((resolve, reject) => {
    app.listen('127.0.0.1', 0, (token) => (token ? resolve(token) : reject(new Error('taken'))));
  });
  t.teardown(() => app.close());
  return { app, port: us_socket_local_port(socket), socket };
};

export const openTcp = async (t: Pick<Test, 'teardown'>, port: number) => {
  let got = '';
  let pieces = 0;
  let closed = false;
  const socket = connectTcp(port, '127.0.0.1');
  socket.setNoDelay(true);
  socket.on('data', (bytes) => {
    got += bytes.toString('latin1');
    pieces += 1;
  });
  socket.on('error', () => undefined);
  socket.on('close', () => {
    closed = true;
  });
  t.teardown(() => {
    socket.destroy();
  });
  await new Promise((resolve) => socket.once('connect', resolve));
  return {
    socket,
    /** Text received so far, and the number of chunks. */
    text: () => got,
    pieces: () => pieces,
    closed: () => closed,
    /** Waits until the text arrives or the server closes the connection. */
    async answer(text: string) {
      await until(`"${text}"`, () => closed || got.includes(text));
      return got;
    },
  };
};

export const request = (line: string, headers = '', body = ''): string =>
  `${line} HTTP/1.1\r\nHost: a\r\n${headers}\r\n${body}`;

const child_file = fileURLToPath(new URL('./native-child.js', import.meta.url));

export const startChild = (t: Pick<Test, 'teardown'>, ...args: string[]) => {
  const said: string[] = [];
  let end: string | null = null;
  const child = spawn(process.execPath, [child_file, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (bytes) => said.push(...String(bytes).trim().split('\n')));
  }
  child.on('close', (code, signal) => {
    end = String(code ?? signal);
  });
  t.teardown(() => {
    child.kill('SIGKILL');
  });
  return {
    process: child,
    said,
    /** Exit code or signal of the process. Null while it runs. */
    ended: () => end,
    async port() {
      const line = await until('a port', () => said.find((text) => text.startsWith('port ')));
      return Number(line.slice(5));
    },
  };
};
