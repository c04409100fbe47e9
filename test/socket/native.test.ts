import { type Test, t } from 'tap';
import type { WebSocket } from '../../src/http/request.js';
import { type Bare, startBare, startChild } from '../help/native.js';
import { until } from '../help/until.js';
import { type Client, connect } from '../help/ws-client.js';

/** What bites in the websockets of the HTTP library; see `native.test.ts`. */

interface Pair extends Bare {
  readonly client: Client;
  readonly ws: WebSocket<unknown>;
  readonly dropped: string[];
  /** What was unread when the library last dropped something. */
  unread_at_drop(): number;
  readonly closes: number[];
  readonly got: string[];
}

const most = 65_536;

const open = async (t: Test): Promise<Pair> => {
  let ws: WebSocket<unknown> | undefined;
  const dropped: string[] = [];
  let unread_at_drop = 0;
  const closes: number[] = [];
  const bare = await startBare(t, (app) => {
    app.ws('/ws', {
      maxPayloadLength: 1_000,
      maxBackpressure: most,
      idleTimeout: 120,
      open(opened) {
        ws = opened;
        opened.subscribe('topic');
      },
      message: (sender, message) => void sender.send(`size ${message.byteLength}`),
      dropped: (_: unknown, message: ArrayBuffer) => {
        dropped.push(Buffer.from(message).toString().slice(0, 10));
        unread_at_drop = ws?.getBufferedAmount() ?? 0;
      },
      close: (_, code) => void closes.push(code),
    } as Parameters<typeof app.ws>[1]);
  });
  const got: string[] = [];
  const client = await connect(t, bare.port);
  client.ws.removeAllListeners('message');
  client.ws.on('message', (text) => got.push(String(text)));
  await until('the server side', () => ws !== undefined);
  return {
    ...bare,
    client,
    ws: ws as WebSocket<unknown>,
    dropped,
    unread_at_drop: () => unread_at_drop,
    closes,
    got,
  };
};

/** Sends to a reader that stands still, until the library holds unread bytes of its own. */
const fill = async ({ client, ws }: Pair): Promise<void> => {
  client.pause();
  const text = 'f'.repeat(10_000);
  await until('unread bytes', () => {
    for (let i = 0; i < 20 && ws.getBufferedAmount() === 0; i += 1) ws.send(text);
    return ws.getBufferedAmount() > 0;
  });
};

t.test('10: publish drops for a slow reader, and tells about a few of the losses', async (t) => {
  const pair = await open(t);
  const { app, ws, client, dropped, got } = pair;
  await fill(pair);
  for (let i = 0; i < 640; i += 1) app.publish('topic', `${i}`.padEnd(1_000));
  await until('a drop', () => dropped.length > 0);
  t.ok(pair.unread_at_drop() > most, 'the limit is soft');
  client.resume();
  await until('all is read', () => ws.getBufferedAmount() === 0);
  app.publish('topic', 'last');
  await until('the last', () => got.at(-1) === 'last');
  const numbers = got.filter((text) => /^\d/.test(text)).length;
  const lost = 640 - numbers;
  t.ok(lost > 0, `${lost} of 640 are lost`);
  t.ok(dropped.length < lost / 4, `and ${dropped.length} were told`);
});

t.test('10: a pong is dropped like any other frame, and a send says so', async (t) => {
  const pair = await open(t);
  const { ws, client, dropped } = pair;
  await fill(pair);
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
  await until('an answer', () => pair.got.at(-1) === 'size 1');
  t.equal(pongs, 0);
});

t.test('11: a payload over the limit closes without a close frame', async (t) => {
  const { client, got, closes } = await open(t);
  client.ws.send('x'.repeat(1_000));
  await until('an answer', () => got.at(-1) === 'size 1000');
  client.ws.send('x'.repeat(1_001));
  t.equal(await client.closed(), 1006);
  t.strictSame(closes, [1006]);
});

t.test('11: an idle timeout out of bounds, or a publish too early, ends the process', async (t) => {
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

t.test('12: what is sent in one turn goes out in one write', async (t) => {
  const { app, ws, client, got } = await open(t);
  let pieces = 0;
  (client.ws as unknown as { _socket: NodeJS.EventEmitter })._socket.on('data', () => {
    pieces += 1;
  });
  for (let i = 0; i < 30; i += 1) app.publish('topic', `${i}`);
  await until('all', () => got.length === 30);
  t.equal(pieces, 1);
  ws.cork(() => {
    for (let i = 0; i < 30; i += 1) ws.send(`${i}`);
  });
  await until('all', () => got.length === 60);
  t.equal(pieces, 2);
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
