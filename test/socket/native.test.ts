import type { WebSocket } from '../../src/http/uws.js';
import { startBare, startChild } from '../help/native.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { connect } from '../help/ws-client.js';

/** Traps of the HTTP library's websockets. See `test/http/native.test.ts`. */

const most = 65_536;

t.test('a pong is dropped like any other frame, and a send says so', async (t) => {
  let opened: WebSocket<unknown> | undefined;
  const dropped: string[] = [];
  const { port } = await startBare(t, (app) => {
    app.ws('/ws', {
      maxBackpressure: most,
      idleTimeout: 120,
      open: (ws) => {
        opened = ws;
      },
      message: (sender, message) => void sender.send(`size ${message.byteLength}`),
      dropped: (_: unknown, message: ArrayBuffer) => void dropped.push(String(message)),
    } as Parameters<typeof app.ws>[1]);
  });
  const got: string[] = [];
  const client = await connect(t, port);
  client.ws.removeAllListeners('message');
  client.ws.on('message', (text) => got.push(String(text)));
  const ws = await until('the server side', () => opened);
  client.pause();
  let pongs = 0;
  client.ws.on('pong', () => {
    pongs += 1;
  });
  let result = 0;
  await until('the limit', () => {
    for (let i = 0; i < 20 && result !== 2; i += 1) result = ws.send('f'.repeat(10_000));
    return result === 2;
  });
  dropped.length = 0;
  client.ws.ping();
  await until('the pong is dropped', () => dropped.length === 1);
  client.resume();
  await until('all is read', () => ws.getBufferedAmount() === 0);
  client.ws.send('x');
  await until('an answer', () => got.at(-1) === 'size 1');
  t.equal(pongs, 0);
});

t.test('an idle timeout out of bounds, or a publish too early, ends the process', async (t) => {
  for (const seconds of ['0', '8', '960']) {
    const child = startChild(t, 'idle', seconds);
    await until(`idle ${seconds}`, () => child.said.includes('fine'));
  }
  for (const args of [['idle', '7'], ['idle', '961'], ['publish']] as const) {
    const child = startChild(t, ...args);
    await until('it has ended', () => child.ended() !== null);
    t.match(child.ended(), /^SIG(ABRT|SEGV)$/, args.join(' '));
    t.notOk(child.said.includes('fine'));
  }
});

t.test('a closed socket throws, and what is kept with a socket is a copy', async (t) => {
  const kept = { inner: {} };
  let seen: { inner: unknown } | undefined;
  let ws: WebSocket<typeof kept> | undefined;
  const { port } = await startBare(t, (app) => {
    app.ws<typeof kept>('/ws', {
      upgrade(res, req, context) {
        const header = (name: string) => req.getHeader(`sec-websocket-${name}`);
        res.upgrade(kept, header('key'), header('protocol'), header('extensions'), context);
      },
      open(opened) {
        ws = opened;
        seen = opened.getUserData();
      },
    });
  });
  const client = await connect(t, port);
  await until('the server side', () => seen !== undefined);
  t.not(seen, kept);
  t.equal(seen?.inner, kept.inner);
  client.ws.close();
  await client.closed();
  await until('it throws', () => {
    try {
      ws?.send('x');
      return false;
    } catch {
      return true;
    }
  });
});

t.test(
  'what is published keeps its place among what is sent, and outlives its topic',
  async (t) => {
    let opened: WebSocket<unknown> | undefined;
    const { port, app } = await startBare(t, (app) => {
      app.ws('/ws', {
        open: (ws) => {
          for (const topic of ['one', 'two']) ws.subscribe(topic);
          opened = ws;
        },
      });
    });
    const got: string[] = [];
    const client = await connect(t, port);
    client.ws.removeAllListeners('message');
    client.ws.on('message', (text) => got.push(String(text)));
    const ws = await until('the server side', () => opened);
    const sent: string[] = [];
    const publish = (topic: string, count: number): void => {
      for (let n = 0; n < count; n += 1) {
        sent.push(`${topic} ${n}`);
        app.publish(topic, Buffer.from(`${topic} ${n}`));
      }
    };
    // More than the library buffers for a subscriber.
    publish('one', 40);
    publish('two', 1);
    publish('one', 1);
    sent.push('sent');
    ws.send(Buffer.from('sent'), false);
    publish('two', 3);
    for (const topic of ['one', 'two']) ws.unsubscribe(topic);
    app.publish('two', Buffer.from('too late'));
    sent.push('end');
    setImmediate(() => ws.send(Buffer.from('end'), false));
    await until('the last', () => got.at(-1) === 'end');
    t.same(got, sent);
  },
);
