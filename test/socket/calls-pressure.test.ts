import { type Test, t } from 'tap';
import type { HubLimits } from '../../src/socket/hub.js';
import { type CallSocket, openCalls } from '../help/socket-calls.js';
import { startToyApp, type ToyApp } from '../help/toy-app.js';
import { until } from '../help/until.js';

/** Clients that do not read their replies, and services that stop. */

const length = 400_000;

const start = async (t: Test, sockets: Partial<HubLimits> = {}) => {
  const app = await startToyApp(t, { sockets });
  return { app, socket: await openCalls(t, app.port) };
};

/** Calls that are all answered at once, to a client that has stopped to read. */
const answerUnread = async (app: ToyApp, socket: CallSocket, count: number) => {
  const calls = Array.from({ length: count }, () => socket.call('GET', `/held/${length}`));
  // In an object, so that whoever waits for this does not wait for the answers.
  const unread = { ended: Promise.allSettled(calls) };
  await until('all are held', () => app.deps.waiting === count);
  socket.pause();
  app.deps.gate.open();
  await until('all are answered', () => app.logged.length === count);
  return unread;
};

t.test('answers wait for a client that does not read, and no more calls are taken', async (t) => {
  const { app, socket } = await start(t);
  const other = await openCalls(t, app.port);
  const { ended } = await answerUnread(app, socket, 40);
  t.equal(app.mounted.open.size, 0);
  const more = Array.from({ length: 20 }, () => socket.call('GET', '/api/toys'));
  t.equal((await other.call('GET', '/api/toys')).status, 200, 'nobody else notices');
  socket.resume();
  const pads = (await ended).map((end) =>
    end.status === 'fulfilled' ? end.value.body.pad.length : null,
  );
  t.strictSame(pads, Array(40).fill(length), 'every one arrives');
  const codes = (await Promise.all(more)).map(({ body }) => body.code);
  t.strictSame(codes, Array(20).fill('TOO_MANY_CALLS'));
  t.equal((await socket.call('GET', '/api/toys')).status, 200, 'and it goes on');
});

t.test('a client that leaves its replies unread is closed with 4101', async (t) => {
  const { app, socket } = await start(t, { unread_ms: 100 });
  const { ended } = await answerUnread(app, socket, 40);
  await until('it is let go of', () => app.hub?.stats().closed[4101] === 1);
  socket.resume();
  const lost = (await ended).filter(({ status }) => status === 'rejected');
  t.ok(lost.length > 0, 'not every answer has arrived');
  t.equal(app.hub?.stats().sockets, 0);
});

t.test('more replies than a socket may leave unread close it at once', async (t) => {
  const { app, socket } = await start(t, { unread_ms: 3_600_000 });
  const { ended } = await answerUnread(app, socket, 60);
  await until('it is let go of', () => app.hub?.stats().closed[4101] === 1);
  socket.resume();
  t.ok((await ended).some(({ status }) => status === 'rejected'));
});

t.test('a service that stops finishes the calls under way before it says bye', async (t) => {
  const { app, socket } = await start(t);
  const idle = await openCalls(t, app.port);
  const held = socket.call('GET', '/waits');
  await until('it is held', () => app.deps.waiting === 1);
  app.mounted.startDraining();
  const drained = app.hub?.drain();
  t.equal(await idle.closed, 4200);
  t.match(await socket.call('GET', '/api/toys'), { status: 503, body: { code: 'UNAVAILABLE' } });
  app.deps.gate.open();
  t.match(await held, { status: 200 });
  t.equal(await socket.closed, 4200);
  await drained;
  t.equal(app.hub?.stats().sockets, 0);
});

t.test('a socket whose time is over waits for the answers of its calls', async (t) => {
  const lifetime_ms = 300;
  const { app, socket } = await start(t, { lifetime_ms });
  const held = socket.call('GET', '/waits');
  await until('it is held', () => app.deps.waiting === 1);
  // One after the other they live longer than any single one may.
  for (let n = 0; n < 2; n += 1) t.equal(await (await openCalls(t, app.port)).closed, 4202);
  t.equal(app.hub?.stats().sockets, 1);
  app.deps.gate.open();
  t.match(await held, { status: 200 });
  t.equal(await socket.closed, 4202);
});
