import { t } from 'tap';
import { exchange_counters } from '../../src/http/request.js';
import { openRaw, writeRequest } from '../help/raw-http.js';
import { startToyApp } from '../help/toy-app.js';
import { until } from '../help/until.js';

/** Requests that take long, clients that go away, and answers that come too late. */

const waits = writeRequest('GET /waits HTTP/1.1');
const slow_lines = ['Content-Type: application/json', 'Content-Length: 100'];

t.test('a handler that never answers is 503 at the deadline', async (t) => {
  const app = await startToyApp(t, { deadline_ms: 200 });
  const before = exchange_counters.expired;
  const { status, body, headers } = await app.call('GET', '/never');
  t.equal(status, 503);
  t.match(body, { code: 'UNAVAILABLE', retryable: true });
  t.equal(headers.get('retry-after'), '1');
  t.equal(exchange_counters.expired, before + 1);
  t.equal(app.mounted.open.size, 0);
  t.equal((await app.call('GET', '/api/toys')).status, 200, 'the server goes on');
});

t.test('what a handler answers after the deadline is dropped and counted', async (t) => {
  const app = await startToyApp(t, { deadline_ms: 200 });
  t.equal((await app.call('GET', '/waits')).status, 503);
  const before = exchange_counters.late;
  app.deps.gate.open();
  await until('the late answer', () => exchange_counters.late === before + 1);
  t.equal((await app.call('GET', '/waits')).status, 200, 'in time it is sent');
});

t.test('a body that does not arrive in time is 408, for the client is late', async (t) => {
  const app = await startToyApp(t, { deadline_ms: 200 });
  const connection = openRaw(app.port);
  connection.write(writeRequest('POST /api/toys HTTP/1.1', slow_lines, '{"name":"x'));
  const answer = await connection.next();
  t.equal(answer?.status, 408);
  t.match(JSON.parse(answer?.text ?? ''), { code: 'REQUEST_TIMEOUT', retryable: true });
  await connection.closed;
  t.equal(app.mounted.open.size, 0);
});

t.test('a client that goes away while its handler works harms nobody', async (t) => {
  const app = await startToyApp(t);
  const { aborted, late } = exchange_counters;
  const connection = openRaw(app.port);
  connection.write(waits);
  await until('the handler waits', () => app.deps.waiting === 1);
  t.equal(app.mounted.open.size, 1);
  connection.reset();
  await until('the abort is seen', () => exchange_counters.aborted === aborted + 1);
  t.equal(app.mounted.open.size, 0);
  app.deps.gate.open();
  await until('the answer for nobody', () => exchange_counters.late === late + 1);
  t.equal((await app.call('GET', '/api/toys')).status, 200);
  t.match(app.logged.at(-2), { path: '/waits', aborted: true });
});

t.test('a client that goes away in the middle of its body harms nobody', async (t) => {
  const app = await startToyApp(t);
  const { aborted } = exchange_counters;
  const connection = openRaw(app.port);
  connection.write(writeRequest('POST /api/toys HTTP/1.1', slow_lines, '{"name":"x'));
  await until('the request is open', () => app.mounted.open.size === 1);
  connection.reset();
  await until('the abort is seen', () => exchange_counters.aborted === aborted + 1);
  t.equal(app.mounted.open.size, 0);
  t.equal((await app.call('GET', '/api/toys')).status, 200);
});

t.test('many that go away at once leave nothing behind', async (t) => {
  const app = await startToyApp(t);
  const { aborted, late } = exchange_counters;
  const connections = Array.from({ length: 100 }, () => openRaw(app.port));
  for (const connection of connections) connection.write(waits);
  await until('all handlers wait', () => app.deps.waiting === 100);
  for (const connection of connections) connection.reset();
  await until('all aborts are seen', () => exchange_counters.aborted === aborted + 100);
  app.deps.gate.open();
  await until('all answers for nobody', () => exchange_counters.late === late + 100);
  t.equal(app.mounted.open.size, 0);
});

t.test('one slow handler does not hold up the others', async (t) => {
  const app = await startToyApp(t);
  const slow = app.call('GET', '/waits');
  await until('the handler waits', () => app.deps.waiting === 1);
  for (let n = 0; n < 20; n += 1) t.equal((await app.call('GET', '/api/toys')).status, 200);
  app.deps.gate.open();
  t.match((await slow).body, { waited: true });
});

t.test('requests on one connection, each after the answer to the one before', async (t) => {
  const app = await startToyApp(t);
  const connection = openRaw(app.port);
  for (let n = 0; n < 50; n += 1) {
    connection.write(writeRequest(`GET /api/toys/${n} HTTP/1.1`));
    t.match(await connection.next(), { status: 200, text: new RegExp(`"id":"${n}"`) });
  }
  connection.reset();
});

t.test('of requests sent ahead the first is answered, and nothing breaks', async (t) => {
  const app = await startToyApp(t);
  const connection = openRaw(app.port);
  const ahead = Array.from({ length: 5 }, (_, n) => writeRequest(`GET /api/toys/${n} HTTP/1.1`));
  connection.write(Buffer.concat(ahead));
  const answers: (string | undefined)[] = [];
  for (let answer = await connection.next(); answer !== null; answer = await connection.next()) {
    answers.push(/"id":"(\d)"/.exec(answer.text)?.[1]);
    if (answers.length === ahead.length) connection.reset();
  }
  // uWS closes a connection that has a request without an answer and sends another one.
  t.same(answers, ['0', '1', '2', '3', '4'].slice(0, answers.length));
  t.equal((await app.call('GET', '/api/toys')).status, 200);
});

t.test('while it drains, what is open is finished and what is new is refused', async (t) => {
  const app = await startToyApp(t);
  const slow = app.call('GET', '/waits');
  await until('the handler waits', () => app.deps.waiting === 1);
  app.mounted.startDraining();
  const refused = await app.call('GET', '/api/toys');
  t.match(refused, { status: 503, body: { code: 'UNAVAILABLE' } });
  t.equal(app.mounted.open.size, 1);
  app.deps.gate.open();
  t.equal((await slow).status, 200);
  t.equal(app.mounted.open.size, 0);
});
