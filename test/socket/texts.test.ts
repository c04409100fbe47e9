import { once } from 'node:events';
import { Type } from '@sinclair/typebox';
import type { Test } from 'tap';
import type { WebSocket } from 'ws';
import { type TemplatedApp, toBytes } from '../../src/http/uws.js';
import { close_codes } from '../../src/socket/frames.js';
import { defineOp } from '../../src/socket/session.js';
import { startHub } from '../help/hub.js';
import { startBare } from '../help/native.js';
import { t } from '../help/tap.js';
import { startToyApp } from '../help/toy-app.js';
import { connect } from '../help/ws-client.js';

/**
 * Random well-formed texts through every interface: a whole answer, a cached one, server-sent
 * events, a frame of a socket, an event of the hub and the engine's own publish. `TEXTS` sets the
 * number of texts.
 */

const wanted = Number(process.env['TEXTS'] ?? 20_000);
const per_batch = 1_000;
const seed = 20_261_128;

/** mulberry32: the same numbers on every machine. */
const makeRandom = (state: number) => (): number => {
  state = (state + 0x6d2b79f5) | 0;
  let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed);
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
};

type Below = (most: number) => number;

/** Ranges of code points without surrogates, which are not characters. */
const ranges = [
  [0x00, 0x7f],
  // A range of its own, because the engine treats Latin-1 texts differently.
  [0x00, 0xff],
  [0x0300, 0x036f],
  [0x2020, 0x2030],
  [0x0000, 0xd7ff],
  [0xe000, 0xffff],
  [0x1_0000, 0x1_ffff],
  [0x2_0000, 0x10_ffff],
] as const;

const makeText = (below: Below, kinds: readonly (readonly [number, number])[]): string => {
  const length = below(50) === 0 ? below(2_000) : below(24);
  const points = Array.from({ length }, () => {
    const [from, to] = kinds[below(kinds.length)] ?? ranges[0];
    return from + below(to - from + 1);
  });
  return String.fromCodePoint(...points);
};

/** Batch n as JSON, from one range or from all of them. */
const makeBatch = (n: number): string => {
  const random = makeRandom(seed + n);
  const below: Below = (most) => Math.floor(random() * most);
  const one = ranges[n % (ranges.length + 1)];
  const kinds = one === undefined ? ranges : [one];
  return JSON.stringify(Array.from({ length: per_batch }, () => makeText(below, kinds)));
};

const batches = Array.from({ length: Math.ceil(wanted / per_batch) }, (_, n) => n);

type Receive = (text: string, n: number) => Promise<string>;

/** Sends every batch, and expects each one back without a wrong byte. */
const expectAll = async (t: Test, receive: Receive): Promise<void> => {
  let wrong = 0;
  for (const n of batches) {
    const text = makeBatch(n);
    if ((await receive(text, n)) !== text) wrong += 1;
  }
  t.equal(wrong, 0, `${batches.length * per_batch} texts of seed ${seed}`);
};

const fetchText = async (url: string): Promise<string> =>
  Buffer.from(await (await fetch(url)).arrayBuffer()).toString();

t.test('answers over HTTP, whole and cached', { timeout: 0 }, async (t) => {
  const app = await startToyApp(t);
  await expectAll(t, async (text) => {
    app.deps.text = text;
    return fetchText(`${app.url}/text`);
  });
  await expectAll(t, async (text, n) => {
    app.deps.text = text;
    const url = `${app.url}/api/text?n=${n}`;
    const made = await fetchText(url);
    app.deps.text = 'changed';
    return made === text ? fetchText(url) : made;
  });
  t.equal(app.cache.stats().hits, batches.length, 'the second answers came from the cache');
});

t.test('server-sent events', { timeout: 0 }, async (t) => {
  const app = await startToyApp(t);
  app.deps.stream = {
    produce: async function* () {
      for (const n of batches) yield `data: ${makeBatch(n)}\n\n`;
    },
  };
  const got = (await fetchText(`${app.url}/stream`)).split('\n\n');
  t.equal(got.pop(), '');
  await expectAll(t, async (_, n) => String(got[n]).replace('data: ', ''));
});

/** The next message of a client, as text. */
const nextMessage = (ws: WebSocket): Promise<string> =>
  new Promise((resolve) => {
    ws.once('message', (bytes) => resolve(String(bytes)));
  });

/** The text within the frame that arrives after `send`. */
const within = async (ws: WebSocket, text: string, send: () => void): Promise<string> => {
  const message = nextMessage(ws);
  send();
  return (await message).includes(text) ? text : 'another';
};

t.test(
  'frames of a socket, events of the hub, and the reason of a close',
  { timeout: 0 },
  async (t) => {
    let answer = '';
    const next = defineOp({ schema: Type.Object({}), is_counted: false, take: () => answer });
    // A tick would be mistaken for an answer.
    const server = await startHub(t, { tick_ms: 3_600_000 }, 0, { ops: { next } });
    const { ws, subscribe } = await connect(t, server.port);
    await subscribe(['all']);
    ws.removeAllListeners('message');
    await expectAll(t, (text) =>
      within(ws, text, () => server.publish(1, ['all'], `{"texts":${text}}`)),
    );
    await expectAll(t, (text) =>
      within(ws, text, () => {
        answer = `{"texts":${text}}`;
        ws.send('{"op":"next"}');
      }),
    );
    const closed = once(ws, 'close');
    server.hub.closeWhere({ matches: () => true, code: close_codes.FORBIDDEN, reason: 'bär' });
    t.equal(String((await closed)[1]), 'bär');
  },
);

t.test("the engine's own publish", { timeout: 0 }, async (t) => {
  let app: TemplatedApp | undefined;
  const { port } = await startBare(t, (bare) => {
    app = bare;
    bare.ws('/ws', { maxBackpressure: 16_777_216, open: (ws) => void ws.subscribe('all') });
  });
  const { ws } = await connect(t, port);
  ws.removeAllListeners('message');
  await expectAll(t, (text) => within(ws, text, () => void app?.publish('all', toBytes(text))));
});
