import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';
import type { Test } from 'tap';
import { WebSocket } from 'ws';
import { createClient } from '#client/node.js';
import { no_limits, startApp } from '../help/app.js';
import { range } from '../help/hub.js';
import { project_root } from '../help/own-stores.js';
import { python, withoutPython } from '../help/python.js';
import { openSse } from '../help/sse-client.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { type Client, connect, type Frame } from '../help/ws-client.js';

/** Dead peers do not use up quotas for long. Each test has its own addresses and agents. */

const max_key = 3;
const max_ip = 6;
const app = await startApp(t, {
  env: {
    ...no_limits,
    SOCKETS_KEY: String(max_key),
    SOCKETS_IP: String(max_ip),
    TRUSTED_PROXIES: '127.0.0.1',
  },
});
const human = await makeHuman(app);
const no_python = withoutPython();
type Headers = Readonly<Record<string, string>>;

let addresses = 0;
/** An address that no other test uses. */
const newAddress = (): string => {
  addresses += 1;
  return `198.51.100.${addresses}`;
};
const from = (address: string, key?: string): Headers => ({
  'x-forwarded-for': address,
  ...(key !== undefined && { 'x-api-key': key }),
});
const newKey = async (): Promise<string> => (await makeAgent(app, { human })).key;

/**
 * A peer that vanished silently. `mute` still reads but answers no ping. `stopped` no longer reads.
 */
const openDead = async (
  t: Test,
  headers: Headers,
  {
    how = 'mute',
    port = app.port,
    says,
  }: { how?: 'mute' | 'stopped'; port?: number; says?: object } = {},
) => {
  const ws = new WebSocket(`ws://127.0.0.1:${port}/ws`, {
    headers,
    perMessageDeflate: false,
    autoPong: false,
  });
  const frames: Frame[] = [];
  let close_code: number | undefined;
  ws.on('message', (text) => frames.push(JSON.parse(String(text)) as Frame));
  ws.on('close', (code) => {
    close_code = code;
  });
  ws.on('error', () => undefined);
  t.teardown(() => ws.terminate());
  const entered = await until('the first frame', () => frames[0]?.op);
  if (entered !== 'welcome') throw new Error(`a place was needed: ${JSON.stringify(frames)}`);
  if (says !== undefined) {
    ws.send(JSON.stringify(says));
    await until('an answer', () => frames.length > 1);
  }
  if (how === 'stopped') (ws as unknown as { _socket: Socket })._socket.pause();
  return { ws, frames, code: () => close_code };
};

const isIn = (client: Client): boolean => client.frames[0]?.op === 'welcome';

/** Tries once to connect. Checks that a refused client gets 4104 and is told when to return. */
const tryIn = async (t: Test, headers: Headers, port = app.port) => {
  const client = await connect(t, port, { headers });
  const first = await client.get('a first frame', () => true);
  if (first.op === 'welcome') return client;
  t.match(first, { op: 'bye', code: 4104, retry_after_ms: Number });
  t.ok((first['retry_after_ms'] as number) > 0, 'it is told how long to wait');
  t.equal(await client.closed(), 4104, 'and not 4005');
  return null;
};

/** Tries until a connection is free. Returns how many times it was refused. */
const comeBack = async (t: Test, headers: Headers, port = app.port) => {
  let refusals = 0;
  const client = await until(
    'a place',
    async () => {
      const one = await tryIn(t, headers, port);
      if (one === null) refusals += 1;
      return one;
    },
    20_000,
    250,
  );
  return { client, refusals };
};

const isAlive = async (t: Test, client: Client, what: string): Promise<void> => {
  t.match(await client.ask({ op: 'ping' }), { op: 'pong' }, what);
};

const subscribe = { op: 'subscribe', id: 's', topics: ['all'] };

t.test('strangers that vanished do not keep their address out', async (t) => {
  const headers = from(newAddress());
  const dead = await Promise.all(
    range(1, max_ip).map((n) =>
      openDead(t, headers, { how: n % 2 === 0 ? 'mute' : 'stopped', says: subscribe }),
    ),
  );
  const elsewhere = await tryIn(t, from(newAddress()));
  t.ok(elsewhere, 'another address has places of its own');
  const { client, refusals } = await comeBack(t, headers);
  t.ok(refusals > 0, 'there was no place at first');
  await client.subscribe(['all']);
  await isAlive(t, client, 'the newcomer stays');
  const mute = dead.filter((_, n) => (n + 1) % 2 === 0);
  await until('those that still read have heard of it', () => mute.some(({ code }) => code()));
});

t.test('many keys of one address share its places, also with the dead', async (t) => {
  const address = newAddress();
  const keys = await Promise.all(range(1, max_ip + 1).map(newKey));
  const living = await connect(t, app.port, { headers: from(address, keys[0]) });
  await living.get('welcome', ({ op }) => op === 'welcome');
  for (const key of keys.slice(1, max_ip)) await openDead(t, from(address, key));
  const { refusals } = await comeBack(t, from(address, keys[max_ip]));
  t.ok(refusals > 0, 'a key without a single socket was sent away by its address');
  await isAlive(t, living, 'who answers pings stays');
  const moved = await tryIn(t, from(newAddress(), keys[1]));
  t.ok(moved, 'a key whose socket is dead comes in from elsewhere, for its own quota is not full');
});

t.test('a peer that reads everything and answers no ping loses its place', async (t) => {
  const address = newAddress();
  const key = await newKey();
  const dead = await Promise.all(
    range(1, max_key).map(() => openDead(t, from(address, key), { says: subscribe })),
  );
  await makeOpenQuestion(app);
  await until('they read the log', () => dead.every(({ frames }) => frames.at(-1)?.op === 'event'));
  const { client, refusals } = await comeBack(t, from(address, key));
  t.ok(refusals > 0);
  await isAlive(t, client, 'the newcomer stays');
  await until('one of them is closed', () => dead.some(({ code }) => code() !== undefined));
});

t.test(
  'a peer that stopped reading under load loses its place, and nobody waits for it',
  async (t) => {
    const key = await newKey();
    const stopped = await Promise.all(
      range(1, max_key).map(() =>
        openDead(t, from(newAddress(), key), { how: 'stopped', says: subscribe }),
      ),
    );
    await Promise.all(range(1, 20).map(() => makeOpenQuestion(app)));
    const { client, refusals } = await comeBack(t, from(newAddress(), key));
    t.ok(refusals > 0, 'the places of a key are counted over addresses');
    await client.subscribe(['all']);
    await makeOpenQuestion(app);
    await until('the newcomer hears the log', () => client.events('all').length > 0);
    for (const _ of range(2, max_key)) await comeBack(t, from(newAddress(), key));
    t.equal(stopped.length, max_key, 'all of the dead were replaced');
  },
);

t.test('the dead sockets of a key that was replaced do not keep the new key out', async (t) => {
  const key = await newKey();
  for (const how of ['mute', 'stopped', 'stopped'] as const) {
    await openDead(t, from(newAddress(), key), { how });
  }
  const { body } = await app.call('POST', '/api/me/rotate-key', { key });
  const fresh: string = body.api_key;
  const living = [];
  for (const _ of range(1, max_key)) {
    living.push((await comeBack(t, from(newAddress(), fresh))).client);
  }
  for (const client of living) await isAlive(t, client, 'all places belong to the new key');
  const old = await connect(t, app.port, { headers: from(newAddress(), key) });
  t.equal(await old.closed(), 4001, 'the old key is refused as such, not for want of a place');
});

t.test('where all are alive all stay, however often somebody knocks', async (t) => {
  const key = await newKey();
  const living: Client[] = [];
  for (const _ of range(1, max_key)) {
    const client = await tryIn(t, from(newAddress(), key));
    if (client !== null) living.push(client);
  }
  t.equal(living.length, max_key);
  const begun = Date.now();
  let knocks = 0;
  await until(
    'two rounds of pings are over',
    async () => {
      t.equal(await tryIn(t, from(newAddress(), key)), null, 'there is no place');
      knocks += 1;
      return Date.now() - begun > 8_000;
    },
    30_000,
    500,
  );
  t.ok(knocks > 5);
  for (const [n, client] of living.entries()) await isAlive(t, client, `number ${n} was not cut`);
  living[0]?.ws.close();
  await living[0]?.closed();
  const { refusals } = await comeBack(t, from(newAddress(), key));
  t.ok(refusals <= 1, 'a place that was given back is free at once');
});

t.test('a quota counts over two processes, and so do the signs of life', async (t) => {
  const other = await startApp(t, {
    stores: app.stores,
    roles: ['api'],
    env: { ...no_limits, SOCKETS_KEY: String(max_key), TRUSTED_PROXIES: '127.0.0.1' },
  });
  const key = await newKey();
  const living = await connect(t, other.port, { headers: from(newAddress(), key) });
  await living.get('welcome', ({ op }) => op === 'welcome');
  for (const _ of range(2, max_key)) {
    await openDead(t, from(newAddress(), key), { port: other.port, how: 'stopped' });
  }
  const { client, refusals } = await comeBack(t, from(newAddress(), key));
  t.ok(refusals > 0, 'the places were all at the other process');
  await isAlive(t, client, 'the newcomer of the first process stays');
  await isAlive(t, living, 'the living one of the other process was pinged and stays');
  await comeBack(t, from(newAddress(), key), other.port);
});

/** Sends a request from a client that never reads a byte and never closes. */
const sendAndVanish = async (t: Test, head: readonly string[], body = ''): Promise<void> => {
  const tcp = connectTcp(app.port, '127.0.0.1');
  t.teardown(() => tcp.destroy());
  tcp.on('error', () => undefined);
  await once(tcp, 'connect');
  tcp.pause();
  const lines = [...head, 'Host: a', `Content-Length: ${Buffer.byteLength(body)}`, '', body];
  await new Promise<void>((resolve) => tcp.write(lines.join('\r\n'), () => resolve()));
};

const listenBody = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'subscriptions/listen',
  params: {
    notifications: {
      resourceSubscriptions: ['forum://question/0190a000-0000-7000-8000-000000000001'],
    },
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1.0.0' },
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  },
});
const listenHeaders = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  'mcp-protocol-version': '2026-07-28',
  'mcp-method': 'subscriptions/listen',
};

t.test(
  'streams, waits, takes and subscriptions of the dead make room at every transport',
  async (t) => {
    const key = await newKey();
    await app.call('PUT', '/api/me/consumers/mine', { key, body: {} });
    const { body: log } = await app.call('GET', '/api/events?limit=1');
    const key_line = `X-API-Key: ${key}`;
    const vanished = [
      [['GET /api/stream HTTP/1.1', key_line]],
      [[`GET /api/events?after=${log.head}&wait=50 HTTP/1.1`, key_line]],
      [
        ['POST /api/me/consumers/mine/take HTTP/1.1', key_line, 'Content-Type: application/json'],
        '{"member":"gone","wait":50}',
      ],
    ] as const;
    for (const [head, body] of vanished) await sendAndVanish(t, head, body);
    const refusals: unknown[] = [];
    const open: (() => void)[] = [];
    /** Opens a new client on each transport. Every client keeps its connection. */
    const transports: Readonly<
      Record<string, () => Promise<{ status: number; refusal?: unknown }>>
    > = {
      'a stream': async () => {
        const stream = await openSse(t, `${app.url}/api/stream`, { 'x-api-key': key });
        open.push(stream.close);
        return { status: stream.status, refusal: stream.headers['retry-after'] };
      },
      'a subscription over MCP': async () => {
        const gone = new AbortController();
        t.teardown(() => gone.abort());
        const answer = await fetch(`${app.url}/mcp`, {
          method: 'POST',
          headers: { ...listenHeaders, authorization: `Bearer ${key}` },
          body: listenBody,
          signal: gone.signal,
        });
        if (answer.status !== 200) {
          t.match(await answer.json(), { error: { data: { code: 'TOO_MANY_CONNECTIONS' } } });
        }
        return { status: answer.status, refusal: answer.headers.get('retry-after') };
      },
      'a wait': async () => {
        const path = `/api/events?after=${log.head}&wait=1&topic=system`;
        const answer = await app.call('GET', path, { key });
        if (answer.status !== 200) {
          const passing = { code: 'TOO_MANY_CONNECTIONS', retryable: true, status: 429 };
          t.match(answer.body, passing);
        }
        return { status: answer.status, refusal: answer.headers.get('retry-after') };
      },
      'a take': async () => {
        const body = { member: 'newcomer', wait: 1 };
        const answer = await app.call('POST', '/api/me/consumers/mine/take', { key, body });
        return { status: answer.status, refusal: answer.headers.get('retry-after') };
      },
    };
    for (const [transport, knock] of Object.entries(transports)) {
      const entered = await until(
        `a place for ${transport}`,
        async () => {
          const { status, refusal } = await knock();
          if (status === 200) return true;
          t.equal(status, 429, `${transport}: sent away for now`);
          t.ok(Number(refusal) >= 1, `${transport}: with Retry-After, ${refusal}`);
          refusals.push(refusal);
          return false;
        },
        20_000,
        250,
      );
      t.ok(entered, transport);
    }
    t.comment(`${refusals.length} refusals`);
  },
);

t.test('both client libraries come back by themselves when the dead are gone', async (t) => {
  const key = await newKey();
  const question_id = await makeOpenQuestion(app);
  for (const _ of range(1, max_key)) await openDead(t, from(newAddress(), key));
  const client = createClient({ base_url: app.url, api_key: key });
  t.teardown(() => client.close());
  const waits: number[] = [];
  const offsets: number[] = [];
  let is_live = false;
  client.stream({
    topics: ['all'],
    after: 0,
    onItem: (item) => {
      if ('offset' in item) offsets.push(item.offset as number);
    },
    onStatus: (now) => {
      if (now.status === 'waiting') waits.push(now.code);
      if (now.status === 'live') is_live = true;
    },
  });
  await until('the stream is live', () => is_live, 20_000);
  t.ok(waits.length > 0 && waits.every((code) => code === 4104), `it waited for ${waits}`);
  await until('it has the log', () => offsets.length > 0);
  t.same(offsets, range(1, offsets.length), 'from its beginning, each once');
  if (no_python !== false) return t.comment(no_python);
  const other = await newKey();
  for (const _ of range(1, max_key)) await openDead(t, from(newAddress(), other));
  const program = `
import json, sys
from prediction_forum import Forum
with Forum(sys.argv[1], api_key=sys.argv[2]) as forum:
    for event in forum.follow([sys.argv[3]], after=0, transport="websocket"):
        print(json.dumps(event["event"]))
        break
`;
  const { stdout } = await promisify(execFile)(
    python,
    ['-c', program, app.url, other, `question:${question_id}`],
    {
      cwd: path.join(project_root, 'clients', 'python'),
      env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' },
      timeout: 30_000,
    },
  );
  t.equal(stdout.trim(), '"question.created"', 'the Python client waited and came in');
});

t.test('topics that a dead socket holds are given back to the living of its key', async (t) => {
  const key = await newKey();
  const topics = range(1, 1_000).map(
    (n) => `question:0190a000-0000-7000-8000-${String(n).padStart(12, '0')}`,
  );
  const dead = await openDead(t, from(newAddress(), key));
  for (const part of range(0, 4)) {
    dead.ws.send(
      JSON.stringify({
        op: 'subscribe',
        id: part,
        topics: topics.slice(part * 200, part * 200 + 200),
      }),
    );
    const answer = await until('it is subscribed', () => dead.frames.find(({ id }) => id === part));
    t.match(answer, { op: 'subscribed' }, `part ${part}`);
  }
  (dead.ws as unknown as { _socket: Socket })._socket.pause();
  const living = await connect(t, app.port, { headers: from(newAddress(), key) });
  await living.get('welcome', ({ op }) => op === 'welcome');
  const refusals: Frame[] = [];
  await until(
    'there is room for one more topic',
    async () => {
      const answer = await living.subscribe(['all']);
      if (answer.op === 'subscribed') return true;
      refusals.push(answer);
      return false;
    },
    20_000,
    500,
  );
  t.ok(refusals.length > 0, 'there was no room at first');
  for (const refusal of refusals) {
    t.match(refusal, { op: 'error', code: 'TOO_MANY_TOPICS', retryable: true });
  }
  const agent = await makeAgent(app, { human });
  const id = await makeOpenQuestion(app);
  await app.call('POST', `/api/questions/${id}/predict`, {
    key: agent.key,
    body: { probability: 61, reasoning: makeReasoning() },
  });
  await until('the living one hears the log', () => living.events('all').length > 0);
  t.ok(isIn(living));
  await isAlive(t, living, 'and was never cut');
});
