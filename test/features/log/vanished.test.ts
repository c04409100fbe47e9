import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Test } from 'tap';
import { createClient } from '#client/node.js';
import { range } from '../../help/hub.js';
import { openSse } from '../../help/sse-client.js';
import { makeAgent, makeHuman } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { findPort, serveLog } from './log-server.js';

/** If clients vanish without closing their connections, their key is not locked out. */

const metrics_port = await findPort();
const env = { SOCKETS_KEY: '4', METRICS_PORT: String(metrics_port) };
const { app, log } = await serveLog(t, { env });
await log.write(1);
const human = await makeHuman(app);

/** Opens a stream as soon as the key may open one more connection. */
const comeBack = (t: Test, key: string) => {
  const open = async () => {
    const stream = await openSse(t, `${app.url}/api/stream`, { 'x-api-key': key });
    return stream.status === 200 && stream;
  };
  return until('a place', open, 15_000, 250);
};

const untilOpen = (count: number) =>
  until(`${count} are open`, async () => {
    const text = await (await fetch(`http://127.0.0.1:${metrics_port}/metrics`)).text();
    return new RegExp(`log_visitors\\{[^}]*\\} ${count}\n`).test(text);
  });

t.test('a stopped client gives back its sockets, streams, subscriptions and waits', async (t) => {
  const { key } = await makeAgent(app, { human });
  await app.call('PUT', '/api/me/consumers/mine', { key, body: {} });
  const { body } = await app.call('GET', '/api/events?limit=1');
  const file = fileURLToPath(new URL('./vanishing-child.js', import.meta.url));
  const child = spawn(process.execPath, [file, app.url, key, body.head], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  await untilOpen(4);
  child.kill('SIGSTOP');

  const client = createClient({ base_url: app.url, api_key: key });
  t.teardown(() => client.close());
  const downs: { readonly code: number; readonly wait_ms: number }[] = [];
  let live = 0;
  for (const _ of range(1, 4)) {
    client.stream({
      topics: ['all'],
      onStatus: (now) => {
        if (now.status === 'waiting') downs.push(now);
        if (now.status === 'live') live += 1;
      },
    });
  }
  await until('all sockets are back', () => live === 4, 15_000);
  t.ok(downs.length > 0, 'there was no room at first');
  t.ok(downs.every(({ code, wait_ms }) => code === 4104 && wait_ms >= 4_000));

  const refused = await app.call('GET', '/api/stream', { key });
  if (refused.status !== 200) {
    const passing = { status: 429, body: { code: 'TOO_MANY_CONNECTIONS', retryable: true } };
    t.match(refused, passing);
    t.equal(refused.headers.get('retry-after'), '5');
  }
  for (const _ of range(1, 4)) await (await comeBack(t, key)).get('welcome');
  await untilOpen(4);
});

t.test('of clients that live, the oldest gives its place away', async (t) => {
  const { key } = await makeAgent(app, { human });
  const { body } = await app.call('GET', '/api/events?limit=1');
  const oldest = await comeBack(t, key);
  const wait = app.call('GET', `/api/events?after=${body.head}&wait=50`, { key });
  await app.call('PUT', '/api/me/consumers/mine', { key, body: {} });
  const taking = { key, body: { member: 'm', wait: 50 } };
  const take = app.call('POST', '/api/me/consumers/mine/take', taking);
  await comeBack(t, key);
  for (const _ of range(1, 3)) await comeBack(t, key);
  t.match((await oldest.get('bye')).data, { reason: 'replaced', reconnect_ms: 30_000 });
  t.equal(await oldest.ended, 'end');
  t.match(await wait, { status: 200, body: { events: [], next: body.head } });
  t.match(await take, { status: 200, body: { events: [] } });
});
