import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Test } from 'tap';
import { Agent, fetch as fetchBy } from 'undici';
import { pickPort } from '../../src/process/embedded/processes.js';
import { startApp, type TestApp } from '../help/app.js';
import { findProgram } from '../help/debian.js';
import { makeTestFolder, project_root, removeTestFolder } from '../help/own-stores.js';
import { openRaw } from '../help/raw-http.js';
import { openSse } from '../help/sse-client.js';
import { makeOpenQuestion } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { connect } from '../help/ws-client.js';

/** The configurations of `examples/proxy`, unchanged except for addresses and ports. */

interface Proxy {
  readonly name: 'nginx' | 'haproxy' | 'caddy';
  readonly file: string;
  /** The line of the example that makes the proxy listen. */
  readonly listens: string;
  /** The whole configuration around the example, and the arguments that name its file. */
  readonly wrap: (text: string, folder: string) => string;
  readonly args: (file: string, folder: string) => readonly string[];
  /** The status that an HTTP/1.0 client gets. */
  readonly old_client: 200 | 505;
}

const proxies: readonly Proxy[] = [
  {
    name: 'nginx',
    file: 'nginx.conf',
    listens: 'listen 80;',
    wrap: (text, folder) => `
      daemon off; master_process off; pid ${folder}/pid; events {}
      http {
        access_log off;
        ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
          .map((name) => `${name}_temp_path ${folder}/${name};`)
          .join('\n')}
        ${text}
      }`,
    args: (file, folder) => ['-p', folder, '-c', file, '-e', 'stderr'],
    old_client: 200,
  },
  {
    name: 'haproxy',
    file: 'haproxy.cfg',
    listens: 'bind :80',
    wrap: (text) => text,
    args: (file) => ['-f', file, '-db'],
    old_client: 505,
  },
  {
    name: 'caddy',
    file: 'Caddyfile',
    listens: 'forum.example.org {',
    wrap: (text) => `{\nadmin off\n}\n${text}`,
    args: (file) => ['run', '--adapter', 'caddyfile', '--config', file],
    old_client: 200,
  },
];

const listenAt = (listens: string, port: number): string =>
  listens.startsWith('forum')
    ? `http://127.0.0.1:${port} {`
    : listens.replace(/:?80/, `127.0.0.1:${port}`);

/** Starts the proxy in front of the service and returns its port. */
const startProxy = async (
  t: Test,
  proxy: Proxy,
  app: TestApp,
  change = (text: string): string => text,
): Promise<number> => {
  const program = findProgram(proxy.name);
  if (program === null) throw new Error(`${proxy.name} has gone`);
  const folder = makeTestFolder();
  t.teardown(() => removeTestFolder(folder));
  const port = await pickPort();
  const example = readFileSync(path.join(project_root, 'examples', 'proxy', proxy.file), 'utf8');
  const text = change(example)
    .replaceAll('127.0.0.1:8080', `127.0.0.1:${app.port}`)
    .replace(proxy.listens, listenAt(proxy.listens, port));
  const file = path.join(folder, proxy.file);
  writeFileSync(file, proxy.wrap(text, folder));
  const home = path.join(folder, 'home');
  mkdirSync(home);
  const child = spawn(program.command, proxy.args(file, folder), {
    env: { ...program.env, HOME: home },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (some: string) => {
      said += some;
    });
  }
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  t.teardown(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  await until('the service behind the proxy', async () => {
    if (child.exitCode !== null) throw new Error(`${proxy.name} ended: ${said}`);
    const answer = await fetch(`http://127.0.0.1:${port}/health`).catch(() => null);
    return answer?.status === 200 || answer?.status === 505;
  });
  return port;
};

interface From {
  readonly port: number;
  /** The client's address, one of this machine's own. */
  readonly address: string;
  readonly forwarded_for?: string;
}

const register = async ({ port, address, forwarded_for }: From): Promise<number> => {
  const dispatcher = new Agent({ localAddress: address });
  const answer = await fetchBy(`http://127.0.0.1:${port}/api/register`, {
    method: 'POST',
    dispatcher,
    headers: {
      'content-type': 'application/json',
      ...(forwarded_for === undefined ? {} : { 'x-forwarded-for': forwarded_for }),
    },
    body: JSON.stringify({ name: `Behind ${Math.random()}`, model: 'gpt-4o' }),
  });
  await dispatcher.destroy();
  return answer.status;
};

/** The status that an HTTP/1.0 client gets. */
const askOld = async (port: number): Promise<number> => {
  const connection = openRaw(port);
  connection.write('GET /api/questions HTTP/1.0\r\nHost: forum.example.org\r\n\r\n');
  await connection.closed;
  return Number(/^HTTP\/1\.[01] (\d{3})/.exec(connection.rest)?.[1]);
};

const open = (t: Test): Promise<TestApp> =>
  startApp(t, {
    roles: ['api', 'relay'],
    env: { TRUSTED_PROXIES: '127.0.0.1', LIMIT_REGISTER: '1' },
  });

for (const proxy of proxies) {
  const is_there = findProgram(proxy.name) !== null;
  const skip = is_there ? false : `${proxy.name} is neither installed nor to be had with apt-get`;
  t.test(`${proxy.name} passes on all that the service does`, { skip }, async (t) => {
    const app = await open(t);
    const port = await startProxy(t, proxy, app);
    const url = `http://127.0.0.1:${port}`;
    const socket = await connect(t, port);
    socket.send({ op: 'subscribe', id: 1, topics: ['all'] });
    await socket.answer(1);
    const stream = await openSse(t, `${url}/api/stream?topic=all`);
    await stream.get('welcome');
    const question_id = await makeOpenQuestion(app);
    const event = await socket.get('the event', ({ op }) => op === 'event');
    t.match(event, { event: 'question.created', data: { question_id } });
    // Long before the stream ends or its next tick is due.
    await until('the event in the stream', () => stream.offsets().length === 1, 10_000);

    const read = await fetch(`${url}/api/questions/${question_id}`);
    t.equal(read.status, 200);
    const lines = await fetch(`${url}/api/export/predictions?format=csv`);
    t.equal(lines.status, 200);
    t.match(await lines.text(), /^prediction_id,/);

    t.equal(await askOld(port), proxy.old_client);

    // Each address may register once per minute. With the proxy's address, all would count as one.
    t.equal(await register({ port, address: '127.0.0.2' }), 201);
    t.equal(await register({ port, address: '127.0.0.2' }), 429);
    t.equal(await register({ port, address: '127.0.0.3' }), 201);
    const lie = { port, address: '127.0.0.3', forwarded_for: '192.0.2.1' };
    t.equal(await register(lie), 429, 'what the client says of itself is not believed');
  });
}

const [nginx] = proxies;
if (nginx !== undefined && findProgram('nginx') !== null) {
  t.test('without its line about the version nginx is answered 505', async (t) => {
    const app = await open(t);
    const port = await startProxy(t, nginx, app, (text) =>
      text.replace('proxy_http_version 1.1;', ''),
    );
    t.equal((await fetch(`http://127.0.0.1:${port}/api/questions`)).status, 505);
  });
}
