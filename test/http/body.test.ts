import { once } from 'node:events';
import type { StreamParts } from '../../src/http/body.js';
import { openTcp, request } from '../help/native.js';
import { t } from '../help/tap.js';
import { makeGate, startToyApp } from '../help/toy-app.js';
import { until } from '../help/until.js';

/** Answers that are sent in pieces, and answers that may take a long time. */

const app = await startToyApp(t);

interface Watched extends StreamParts {
  made: number;
  ends: number;
  is_closed: boolean;
  /** True when the generator has ended, normally or by force. */
  is_left: boolean;
}

/** A stream that reports how it ends. */
const watch = (
  pieces: (signal: AbortSignal) => AsyncIterable<string | Uint8Array>,
  more: Partial<StreamParts> = {},
): Watched => {
  const watched: Watched = {
    ...more,
    made: 0,
    ends: 0,
    is_closed: false,
    is_left: false,
    onEnd: () => {
      watched.ends += 1;
    },
    async *produce(signal) {
      signal.addEventListener('abort', () => {
        watched.is_closed = true;
      });
      try {
        for await (const piece of pieces(signal)) {
          watched.made += 1;
          yield piece;
        }
      } finally {
        watched.is_left = true;
      }
    },
  };
  return watched;
};

const untilOver = (stream: Watched) =>
  until('the stream is over', () => stream.ends === 1 && stream.is_left);

t.test('pieces arrive in order, whatever their size', async (t) => {
  const big = 'ä'.repeat(2_000_000);
  const stream = watch(async function* () {
    yield 'one ';
    yield '';
    yield Buffer.from('two ');
    yield big;
    yield ' end';
  });
  app.deps.stream = stream;
  const answer = await fetch(`${app.url}/stream`);
  t.equal(answer.status, 200);
  t.equal(answer.headers.get('content-type'), 'text/plain');
  t.ok(answer.headers.get('x-request-id'));
  t.equal(await answer.text(), `one two ${big} end`);
  await untilOver(stream);
  t.equal(app.mounted.open.size, 0);
  await until('its line', () => app.logged.some(({ path }) => path === '/stream'));
});

t.test('a piece is sent when it is made, and the deadline is not for streams', async (t) => {
  const app = await startToyApp(t, { deadline_ms: 50 });
  const gate = makeGate();
  app.deps.stream = watch(async function* () {
    yield 'first,';
    await gate.opened;
    yield 'last';
  });
  const tcp = await openTcp(t, app.port);
  tcp.socket.write(request('GET /stream'));
  await tcp.answer('first,');
  t.equal(app.mounted.open.size, 1, 'a shutdown waits for it');
  // A later request reaches its deadline in the meantime.
  t.equal((await app.call('GET', '/never')).status, 503);
  gate.open();
  t.match(await tcp.answer('last'), /Transfer-Encoding: chunked/i);
  t.notOk(tcp.closed());
});

t.test('who reads nothing is made nothing for, and cut in the end', async (t) => {
  const piece = Buffer.alloc(100_000, 'x');
  const stream = watch(
    async function* () {
      for (;;) yield piece;
    },
    { stall_ms: 300 },
  );
  app.deps.stream = stream;
  const tcp = await openTcp(t, app.port);
  tcp.socket.write(request('GET /stream'));
  tcp.socket.once('data', () => tcp.socket.pause());
  await untilOver(stream);
  t.ok(stream.is_closed);
  // The buffers at both ends of a local connection cannot hold more.
  t.ok(stream.made < 500, `${stream.made} pieces were made`);
  t.equal(app.mounted.open.size, 0);
  t.equal((await app.call('GET', '/api/toys')).status, 200);
});

t.test('who goes away ends it, also while a piece is being made', async (t) => {
  for (const pieces of [
    async function* (signal: AbortSignal) {
      yield 'first';
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
    },
    async function* (signal: AbortSignal) {
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      yield 'too late';
    },
  ]) {
    const stream = watch(pieces);
    app.deps.stream = stream;
    const tcp = await openTcp(t, app.port);
    tcp.socket.write(request('GET /stream'));
    await until('it has begun', () => app.mounted.open.size === 1);
    tcp.socket.destroy();
    await untilOver(stream);
    t.equal(app.mounted.open.size, 0);
  }
});

t.test('a failure before the first piece is refused, after it the answer is cut', async (t) => {
  const first = watch(async function* () {
    yield await Promise.reject(Object.assign(new Error('away'), { code: 'ECONNREFUSED' }));
  });
  app.deps.stream = first;
  t.match(await app.call('GET', '/stream'), { status: 503, body: { code: 'UNAVAILABLE' } });
  await untilOver(first);
  const later = watch(async function* () {
    yield 'half';
    throw new Error('broken');
  });
  app.deps.stream = later;
  await t.rejects(async () => (await fetch(`${app.url}/stream`)).text());
  await untilOver(later);
  t.ok(app.logged.some(({ msg }) => msg === 'http: cut'));
  t.equal(app.mounted.open.size, 0);
});

t.test('HEAD has the headers of the stream and makes none of it', async (t) => {
  const stream = watch(async function* () {
    yield 'body';
  });
  app.deps.stream = stream;
  const tcp = await openTcp(t, app.port);
  tcp.socket.write(request('HEAD /stream'));
  const text = await tcp.answer('\r\n\r\n');
  t.match(text, /^HTTP\/1\.1 200 [\s\S]*Content-Type: text\/plain/i);
  t.equal(stream.made, 0);
  t.equal(stream.ends, 1);
  tcp.socket.write(request('GET /api/toys'));
  await tcp.answer('toys');
});

t.test('a route may take longer than the deadline, and hears when its client goes', async (t) => {
  const app = await startToyApp(t, { deadline_ms: 50 });
  const waited = app.call('GET', '/patient');
  const gone = await openTcp(t, app.port);
  gone.socket.write(request('GET /patient'));
  await until('both wait', () => app.deps.waiting === 2);
  t.equal((await app.call('GET', '/never')).status, 503, 'the deadline of others');
  gone.socket.destroy();
  await until('one has gone', () => app.deps.waiting === 1);
  app.deps.gate.open();
  t.match(await waited, { status: 200, body: { waited: true } });
});

/** A stream whose first piece is produced when the gate opens. */
const watchLate = (gate: ReturnType<typeof makeGate>) =>
  watch(async function* (signal) {
    await Promise.race([gate.opened, once(signal, 'abort')]);
    yield 'at last';
  });

t.test('a first piece may come after the deadline if its route says so', async (t) => {
  const app = await startToyApp(t, { deadline_ms: 50 });
  const gate = makeGate();
  const stream = watchLate(gate);
  app.deps.stream = stream;
  const late = fetch(`${app.url}/late-stream/60000`);
  await until('it waits', () => app.mounted.open.size === 1);
  t.equal((await app.call('GET', '/never')).status, 503, 'the deadline of others');
  t.equal(stream.is_closed, false);
  gate.open();
  t.equal(await (await late).text(), 'at last');
  await untilOver(stream);
});

t.test('who goes away before the first piece ends the wait for it', async (t) => {
  const app = await startToyApp(t, { deadline_ms: 50 });
  const stream = watchLate(makeGate());
  app.deps.stream = stream;
  const gone = await openTcp(t, app.port);
  gone.socket.write(request('GET /late-stream/60000'));
  await until('it waits', () => app.mounted.open.size === 1);
  gone.socket.destroy();
  await untilOver(stream);
  t.ok(stream.is_closed);
});

t.test('the wait for a first piece has an end, and so has the work on it', async (t) => {
  const app = await startToyApp(t, { deadline_ms: 50 });
  const stream = watchLate(makeGate());
  app.deps.stream = stream;
  t.equal((await app.call('GET', '/late-stream/100')).status, 503);
  await untilOver(stream);
  t.ok(stream.is_closed);
});
