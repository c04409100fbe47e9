import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';
import type { Test } from 'tap';
import { WebSocket, WebSocketServer } from 'ws';
import { emitAll } from '../../src/db/event.js';
import { question_closed } from '../../src/features/events/catalogue.js';
import type { Route } from '../../src/http/route.js';
import { api_routes } from '../../src/routes.js';
import { no_limits, startApp, type TestApp } from '../help/app.js';
import { startFaultyProxy } from '../help/faulty-proxy.js';
import { startLiar } from '../help/liar.js';
import { project_root } from '../help/own-stores.js';
import { python, withoutPython } from '../help/python.js';
import { startReceiver } from '../help/receiver.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';
import { trixie, withoutTrixie } from '../help/trixie.js';
import { until } from '../help/until.js';

/** The Python client's own tests against a running service, on Debian's Python. */

const run = promisify(execFile);
const folder = path.join(project_root, 'clients', 'python');

const skip = withoutPython();

const fillLog = async (app: TestApp, question_id: string, count: number): Promise<void> => {
  const closed_at = new Date().toISOString();
  const drafts = Array.from({ length: count }, (_, n) => ({
    data: { question_id, question: `Will it be ${n}, “é” or 💡?`, closed_at },
    scope: { question_id },
    at: new Date(),
  }));
  await app.sql.begin((tx) => emitAll(tx, question_closed, drafts));
};

/** Forwards everything except websockets. */
const startPlainProxy = async (t: Test, target: string): Promise<string> => {
  const server = createServer((request, response) => {
    if (request.headers.upgrade !== undefined) {
      response.writeHead(403).end();
      return;
    }
    void fetch(target + request.url).then(async (answer) => {
      response.writeHead(answer.status, { 'content-type': 'application/json' });
      response.end(await answer.text());
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
};

/** Closes the first connection as if the service were full. Then forwards everything. */
const startFull = async (t: Test, target: string): Promise<string> => {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
  let is_full = true;
  server.on('connection', (client) => {
    if (is_full) {
      is_full = false;
      client.send(JSON.stringify({ op: 'bye', code: 4104, reason: 'x', retry_after_ms: 1_500 }));
      client.close(4104);
      return;
    }
    const service = new WebSocket(`${target.replace('http', 'ws')}/ws`);
    client.on('message', (text) => {
      if (service.readyState === WebSocket.OPEN) service.send(String(text));
      else service.once('open', () => service.send(String(text)));
    });
    service.on('message', (text) => client.send(String(text)));
    service.on('error', () => undefined);
    client.on('close', () => service.terminate());
  });
  await new Promise<void>((resolve) => server.once('listening', () => resolve()));
  t.teardown(() => {
    for (const client of server.clients) client.terminate();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
};

/** Tests that follow the stream. They also run with another version of `websockets`. */
const stream_tests = [
  'a_stream_that_is_cut_at_random_has_each_event_once',
  'an_event_on_two_topics_comes_once',
  'a_topic_that_does_not_exist_is_refused',
].map((name) => `tests.test_service.Streams.test_${name}`);

t.test('the tests of the Python client pass', { skip }, async (t) => {
  const receiver = await startReceiver();
  t.teardown(() => receiver.close());
  const app = await startApp(t, {
    env: { ...no_limits, WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', WEBHOOK_CA_FILE: receiver.ca_file },
  });
  const human = await makeHuman(app);
  const agent = await makeAgent(app, { human });
  const question_id = await makeOpenQuestion(app);
  const earlier = await makeAgent(app, { human });
  const placed = await app.call('POST', `/api/questions/${question_id}/predict`, {
    key: earlier.key,
    body: { prediction: true, confidence: 60, reasoning: makeReasoning() },
  });
  await app.sql`
    update predictions set
      created_at = created_at - interval '61 s',
      revised_at = revised_at - interval '61 s'`;
  const hook = await app.call('POST', '/api/webhooks', {
    key: agent.key,
    body: { url: receiver.url('/hook'), events: ['question.created'] },
  });
  await app.call('POST', `/api/webhooks/${hook.body.id}/test`, { key: agent.key });
  const [delivery] = await receiver.waitFor('/hook', 1);
  await fillLog(app, question_id, 4_000);
  await until('the log has them', async () => {
    const { body } = await app.call('GET', '/api/events?after=0&limit=1');
    return body.head > 4_000;
  });
  const proxy = await startFaultyProxy(t, app.url);
  const cutting = setInterval(() => Math.random() < 0.3 && proxy.cut(), 50);
  t.teardown(() => clearInterval(cutting));
  let is_lost = false;
  const loseOnce = (offset: number): boolean => {
    if (is_lost || offset !== 500) return false;
    is_lost = true;
    return true;
  };
  const endless = (api_routes as readonly Route[]).filter(({ is_endless }) => is_endless);
  const given = {
    base: app.url,
    cut: proxy.url.replace(/\/$/, ''),
    full: await startFull(t, app.url),
    no_socket: await startPlainProxy(t, app.url),
    lost_once: await startLiar(t, app.url, (frame) => (loseOnce(frame.offset) ? [] : [frame])),
    // Drops every thousandth event. The `prev` of the next event hides the gap.
    lossy: await startLiar(t, app.url, (frame) => {
      if (frame.offset % 1_000 === 0) return [];
      return [
        frame.offset % 1_000 === 1 ? { ...frame, prev: Math.max(frame.offset - 2, 0) } : frame,
      ];
    }),
    token: human.token,
    agent_key: agent.key,
    question_id,
    older: { id: placed.body.prediction.id, key: earlier.key },
    reasonings: [makeReasoning(), makeReasoning()],
    endless: endless.map(({ id }) => id.replace(/[A-Z]/g, (one) => `_${one.toLowerCase()}`)),
    delivery: {
      headers: delivery?.headers,
      body: delivery?.body.toString('base64'),
      secret: hook.body.secret,
    },
  };
  const env = { ...process.env, GIVEN: JSON.stringify(given), PYTHONDONTWRITEBYTECODE: '1' };
  const words = ['-W', 'error::ResourceWarning', '-m', 'unittest', 'discover', '-t', '.', 'tests'];
  const { stderr, code } = await run(python, words, { cwd: folder, env, timeout: 240_000 }).then(
    (done) => ({ ...done, code: 0 }),
    (error: { stderr: string; code: number }) => error,
  );
  t.match(stderr, /\nRan \d+ tests in .*\n\nOK\n$/);
  t.equal(code, 0);
  const without = withoutTrixie();
  if (without !== false) return t.comment(without);
  const copy = mkdtempSync(path.join(trixie, 'tmp', 'python-'));
  t.teardown(() => rmSync(copy, { recursive: true, force: true }));
  cpSync(folder, copy, { recursive: true });
  const inside = `cd /tmp/${path.basename(copy)} && exec python3 -m unittest tests.test_retries`;
  const script = `${inside} ${stream_tests.join(' ')}`;
  const newer = await run('/usr/sbin/chroot', [trixie, '/bin/sh', '-ec', script], {
    env: { PATH: '/usr/bin:/bin', GIVEN: JSON.stringify(given), PYTHONWARNINGS: 'error' },
    timeout: 120_000,
  }).catch((error: { stderr: string }) => error);
  t.match(newer.stderr, /\nRan 15 tests in .*\n\nOK\n$/, 'with the websockets of Debian 13 too');
});

t.test('its types are complete', { skip }, async (t) => {
  const words = ['-m', 'mypy', '--strict', '--cache-dir', t.testdir()];
  const { stdout } = await run(python, [...words, 'prediction_forum', 'examples', 'tests'], {
    cwd: folder,
  }).catch((error: { stdout: string }) => error);
  t.match(stdout, /^Success: no issues found/);
});
