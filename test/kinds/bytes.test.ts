import { createHash, createHmac } from 'node:crypto';
import http from 'node:http';
import { gunzipSync } from 'node:zlib';
import { parse } from 'csv-parse/sync';
import type { Test } from 'tap';
import { WebSocket } from 'ws';
import { fetchBytes, readLines } from '../features/exports/world.js';
import { openModern } from '../features/mcp/world.js';
import { type Answered, no_limits, startApp } from '../help/app.js';
import { range } from '../help/hub.js';
import { openTcp } from '../help/native.js';
import { openRaw, writeRequest } from '../help/raw-http.js';
import { startReceiver } from '../help/receiver.js';
import { openCalls } from '../help/socket-calls.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { connect } from '../help/ws-client.js';

/** Bytes and request lines are handled in the same way on every version of Node. */

const receiver = await startReceiver();
t.teardown(() => receiver.close());
const app = await startApp(t, {
  env: { ...no_limits, WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', WEBHOOK_CA_FILE: receiver.ca_file },
});
const human = await makeHuman(app);
/** Characters of one to four bytes, in both writing directions. */
const odd = 'Größe ñandú Привет עברית 漢字 한국어 📈 “é”';
const title = `Will ${odd} be measured before the next winter?`;
const question_id = await makeOpenQuestion(app, { question: title, description: `${odd}\n${odd}` });
const agent = await makeAgent(app, { human, name: 'Žofie 漢字 📈' });
const key = agent.key;
const content = `Because ${odd} stands in the newest bulletin of the harbour.`;
const posted = await app.call('POST', `/api/questions/${question_id}/comments`, {
  key,
  body: { content },
});
const placed = await app.call('POST', `/api/questions/${question_id}/predict`, {
  key,
  body: { probability: 62, reasoning: `${makeReasoning()} ${odd}` },
});
await until('the log has all', async () => {
  const { body } = await app.call('GET', '/api/events?after=0&limit=100');
  const names = body.events.map(({ event }: { event: string }) => event);
  return names.includes('comment.created') && names.includes('prediction.placed');
});
await until('the forecast is counted', async () => {
  const { body } = await app.call('GET', `/api/questions/${question_id}`);
  return body.consensus.total_predictions === 1;
});

await until('the agent is listed', async () => {
  const { body } = await app.call('GET', '/api/agents');
  return body.total === 1;
});

const bytesOf = (text: string): Buffer => Buffer.from(text, 'utf8');
/** Checks that the bytes contain the text unchanged, and no replacement characters. */
const checkBytes = (t: Test, bytes: Buffer, text: string, what: string): void => {
  t.ok(bytes.includes(bytesOf(text)), `${what}: has the text, byte for byte`);
  t.notOk(bytes.includes(bytesOf('\ufffd')), `${what}: nothing was replaced`);
  t.notOk(bytes.includes(bytesOf('Ã')), `${what}: nothing was encoded twice`);
  t.equal(Buffer.compare(bytesOf(bytes.toString('utf8')), bytes), 0, `${what}: it is UTF-8`);
};

/** Uses node:http, which exposes Content-Length for HEAD too. */
const ask = (method: string, path: string, headers: Record<string, string> = {}) =>
  new Promise<{ status: number; headers: http.IncomingHttpHeaders; bytes: Buffer }>(
    (resolve, reject) => {
      const request = http.request(app.url + path, { method, headers, agent: false }, (answer) => {
        const chunks: Buffer[] = [];
        answer.on('data', (chunk: Buffer) => chunks.push(chunk));
        answer.on('error', reject);
        answer.on('end', () => {
          const bytes = Buffer.concat(chunks);
          resolve({ status: answer.statusCode ?? 0, headers: answer.headers, bytes });
        });
      });
      request.on('error', reject).end();
    },
  );

t.test('JSON, its length, its HEAD, its kept answer and its 304 are of bytes', async (t) => {
  t.equal(posted.status, 201, JSON.stringify(posted.body));
  t.equal(placed.status, 201, JSON.stringify(placed.body));
  for (const [path, text] of [
    [`/api/questions/${question_id}`, title],
    [`/api/questions?q=${encodeURIComponent('漢字')}`, title],
    [`/api/questions/${question_id}/comments`, content],
    [`/api/predictions/${placed.body.prediction.id}`, odd],
    [`/api/agents/${agent.id}`, agent.name],
    [`/api/agents?q=${encodeURIComponent('Žofie')}`, agent.name],
    [`/api/questions/${question_id}/intel-brief`, odd],
  ] as const) {
    const first = await ask('GET', path);
    const second = await ask('GET', path);
    t.equal(first.status, 200, path);
    for (const [nth, one] of [first, second].entries()) {
      const what = `${path}, ${nth === 0 ? 'made' : 'kept'}`;
      const escaped = JSON.stringify(text).slice(1, -1);
      checkBytes(t, one.bytes, escaped, what);
      const length = one.headers['content-length'];
      if (length !== undefined) t.equal(Number(length), one.bytes.length, `${what}: its length`);
    }
    t.equal(Buffer.compare(first.bytes, second.bytes), 0, `${path}: twice the same bytes`);
    const head = await ask('HEAD', path);
    t.equal(head.status, 200);
    t.equal(head.bytes.length, 0);
    const length = head.headers['content-length'];
    if (length !== undefined)
      t.equal(Number(length), second.bytes.length, `HEAD ${path} counts bytes`);
    t.equal(head.headers.etag, second.headers.etag, `HEAD ${path} has the same ETag`);
    const { etag } = second.headers;
    if (etag === undefined) continue;
    const same = await ask('GET', path, { 'if-none-match': etag });
    t.equal(same.status, 304, `${path}: nothing new`);
    t.equal(same.bytes.length, 0);
  }
});

t.test('pages show every letter, also those that come back from the address', async (t) => {
  const shown = [
    [`/questions/${question_id}`, odd],
    ['/questions', odd],
    [`/agents/${agent.id}`, agent.name],
    [`/predictions/${placed.body.prediction.id}`, odd],
    [`/embed/${question_id}`, odd],
    [`/questions?q=${encodeURIComponent('漢字 Größe')}`, '漢字 Größe'],
    [`/questions?status=${encodeURIComponent('Größe漢📈')}`, 'Größe漢📈'],
  ] as const;
  for (const [path, text] of shown) {
    for (const headers of [
      { accept: 'text/html' },
      { accept: 'text/html', 'accept-encoding': 'gzip' },
    ]) {
      const { status, headers: said, bytes } = await ask('GET', path, headers);
      const plain = said['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes;
      t.equal(status, path.includes('?status=') ? 400 : 200, path);
      t.match(said['content-type'], /^text\/html; ?charset=utf-8$/i, path);
      checkBytes(t, plain, text, path);
      if (said['content-length'] !== undefined) {
        t.equal(Number(said['content-length']), bytes.length, `${path}: its length`);
      }
    }
    const head = await ask('HEAD', path, { accept: 'text/html' });
    const whole = await ask('GET', path, { accept: 'text/html' });
    if (head.headers['content-length'] !== undefined && head.headers.etag === whole.headers.etag) {
      t.equal(Number(head.headers['content-length']), whole.bytes.length, `HEAD ${path}`);
    }
  }
});

t.test('exports hold the bytes that their manifest names, in every format', async (t) => {
  for (const [subject, column, text] of [
    ['questions', 'question', title],
    ['comments', 'content', content],
  ] as const) {
    const path = `/api/export/${subject}`;
    const manifest = await until('the export has it', async () => {
      const { body } = await app.call('GET', `${path}/manifest?format=csv`);
      return body.rows > 0 && body;
    });
    const query = `snapshot=${manifest.snapshot}`;
    const csv = await fetchBytes(`${app.url}${path}?${query}&format=csv`);
    checkBytes(t, csv.bytes, odd, `${subject} as CSV`);
    const rows = parse(csv.bytes, { columns: true, record_delimiter: '\r\n' }) as {
      readonly [name: string]: string;
    }[];
    t.ok(
      rows.some((row) => row[column] === text),
      `${subject} as CSV, read by another parser`,
    );
    const lines = await fetchBytes(`${app.url}${path}?${query}&format=ndjson`);
    checkBytes(t, lines.bytes, JSON.stringify(text).slice(1, -1), `${subject} as NDJSON`);
    t.ok(readLines(lines.bytes.toString()).some((row) => row[column] === text));
    const sums = JSON.stringify(
      await Promise.all(
        ['csv', 'ndjson'].map(async (format) => {
          const at = `${path}/manifest?${query}&format=${format}`;
          return (await app.call('GET', at)).body.file;
        }),
      ),
    );
    for (const { bytes } of [csv, lines]) {
      t.match(sums, createHash('sha256').update(bytes).digest('hex'), `${subject}: its SHA-256`);
      t.match(sums, `:${bytes.length}`, `${subject}: its bytes, not characters`);
    }
    const packed = await ask('GET', `${path}?${query}&format=csv`, { 'accept-encoding': 'gzip' });
    const is_packed = packed.bytes[0] === 0x1f && packed.bytes[1] === 0x8b;
    const plain = is_packed ? gunzipSync(packed.bytes) : packed.bytes;
    t.equal(Buffer.compare(plain, csv.bytes), 0, `${subject}: packed, the same bytes`);
    const disposition = csv.answer.headers.get('content-disposition') ?? '';
    t.match(disposition, /^[\x20-\x7e]*$/, `${subject}: a header of ASCII`);
    t.match(disposition, /filename/, subject);
  }
});

t.test('feeds, pictures and oEmbed hold the text in their own escapes', async (t) => {
  const xml = (text: string): string =>
    text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  for (const [path, type, text] of [
    ['/feed.xml', /^application\/atom\+xml/, xml(odd)],
    [`/questions/${question_id}/feed.xml`, /^application\/atom\+xml/, xml(odd)],
    [`/api/questions/${question_id}/chart.svg`, /^image\/svg\+xml/, 'Größe'],
    [
      `/oembed?url=${encodeURIComponent(`${app.url}/questions/${question_id}`)}`,
      /^application\/json/,
      'Größe',
    ],
  ] as const) {
    const made = await ask('GET', path);
    t.equal(made.status, 200, path);
    t.match(made.headers['content-type'], type, path);
    if (path.endsWith('chart.svg') && !made.bytes.includes(bytesOf('<title'))) continue;
    if (path.startsWith('/oembed') || path.includes('.xml')) checkBytes(t, made.bytes, text, path);
    t.notOk(made.bytes.includes(bytesOf('\ufffd')), `${path}: nothing was replaced`);
    const { etag } = made.headers;
    const head = await ask('HEAD', path);
    if (head.headers['content-length'] !== undefined) {
      t.equal(Number(head.headers['content-length']), made.bytes.length, `HEAD ${path}`);
    }
    if (etag !== undefined) {
      t.equal((await ask('GET', path, { 'if-none-match': etag })).status, 304, path);
      const other = await ask('GET', path, { 'if-none-match': `"x", ${etag}` });
      t.equal(other.status, 304, `${path}: one of a list`);
    }
  }
  const png = await ask('GET', `/api/questions/${question_id}/chart.png`);
  t.equal(png.bytes.toString('latin1', 1, 4), 'PNG');
  t.equal(Number(png.headers['content-length'] ?? png.bytes.length), png.bytes.length);
});

t.test('many sockets, streams, waits and lines hear the same bytes', async (t) => {
  const { body: log } = await app.call('GET', '/api/events?limit=1');
  const sockets = await Promise.all(range(1, 40).map(() => openListener(t)));
  const waiting = fetchBytes(`${app.url}/api/events?after=${log.head}&wait=30&format=ndjson`);
  const stream = await openStream(t, `/api/stream?after=${log.head}`);
  const asked = `Will ${odd} be heard by all of them, before the end of the summer?`;
  const id = await makeOpenQuestion(app, { question: asked });
  const body = JSON.stringify(asked).slice(1, -1);
  const isIt = (bytes: Buffer): boolean => bytes.includes(bytesOf(id));
  await until('all have heard', () => sockets.every((one) => one.frames.some(isIt)));
  const frames = sockets.map((one) => one.frames.find(isIt)!);
  for (const [n, frame] of frames.entries()) {
    checkBytes(t, frame, body, `socket ${n}`);
    t.equal(Buffer.compare(frame, frames[0]!), 0, `socket ${n} hears what the first one hears`);
  }
  const { bytes: line } = await waiting;
  checkBytes(t, line, body, 'a waiting call');
  await until('the stream has it', () => isIt(stream.bytes()));
  checkBytes(t, stream.bytes(), body, 'server-sent events');
  const tailOf = (bytes: Buffer): string => {
    const text = bytes.toString();
    const from = text.indexOf(
      '"event":"question.created"',
      Math.max(0, text.lastIndexOf(id) - 2_000),
    );
    return text.slice(from, text.indexOf('}', text.indexOf('"timestamp"', from)) + 1);
  };
  t.equal(tailOf(line), tailOf(frames[0]!), 'word for word, as the digest needs it');
  t.equal(tailOf(stream.bytes()), tailOf(frames[0]!));
});

/** A socket that stores the raw bytes of its frames. */
const openListener = async (t: Test) => {
  const ws = new WebSocket(`ws://127.0.0.1:${app.port}/ws`);
  t.teardown(() => ws.terminate());
  const frames: Buffer[] = [];
  ws.on('message', (data) => frames.push(data as Buffer));
  ws.on('open', () => ws.send('{"op":"subscribe","id":1,"topics":["all"]}'));
  await until('it is subscribed', () =>
    frames.some((frame) => frame.includes(bytesOf('"subscribed"'))),
  );
  return { ws, frames };
};

const openStream = async (t: Test, path: string) => {
  const chunks: Buffer[] = [];
  const request = http.get(app.url + path, { agent: false }, (answer) => {
    answer.on('data', (chunk: Buffer) => chunks.push(chunk));
    answer.on('error', () => undefined);
  });
  request.on('error', () => undefined);
  t.teardown(() => {
    request.destroy();
  });
  await until('the stream is open', () => chunks.length > 0);
  return { bytes: () => Buffer.concat(chunks) };
};

t.test('a webhook is signed over the bytes that are sent', async (t) => {
  const hook = await app.call('POST', '/api/webhooks', {
    key,
    body: { url: receiver.url('/gr%C3%B6sse?of=%E6%BC%A2'), events: ['question.created'] },
  });
  t.equal(hook.status, 201, JSON.stringify(hook.body));
  const asked = `Will ${odd} be delivered with its signature before the autumn?`;
  await makeOpenQuestion(app, { question: asked });
  const all = await until('a delivery', () => {
    const found = receiver.received.filter(({ body }) =>
      body.includes(bytesOf('signature before')),
    );
    return found.length > 0 && found;
  });
  const { headers, body, path } = all[0]!;
  t.equal(path, '/gr%C3%B6sse?of=%E6%BC%A2', 'the address is left as it was given');
  checkBytes(t, body, JSON.stringify(asked).slice(1, -1), 'the body');
  t.equal(Number(headers['content-length'] ?? body.length), body.length, 'its length is of bytes');
  const digest = createHmac('sha256', hook.body.secret).update(body).digest('hex');
  t.equal(headers['x-svc-signature'], `sha256=${digest}`);
  const shown = await app.call('GET', `/api/webhooks/${hook.body.id}/deliveries`, { key });
  t.equal(shown.status, 200);
});

t.test('MCP says the same letters in tools, texts and resources', async (t) => {
  const { client, connect: open, callTool } = await openModern(t, app.url, key);
  await open();
  const read = await callTool('get_question', { question_id });
  t.equal(read.answer.question.question, title);
  for (const { text } of read.content) if (text !== undefined) t.notMatch(text, '\ufffd');
  const found = await callTool('find_questions', { q: '漢字', status: 'open' });
  t.ok(found.answer.questions.some(({ id }: { id: string }) => id === question_id));
  const said = `Because ${odd} was read aloud in the council by its speaker.`;
  const comment = await callTool('comment', { question_id, content: said });
  t.equal(comment.answer.comment.content, said);
  const resource = await client.readResource({ uri: `forum://question/${question_id}` });
  const text = JSON.stringify(resource.contents);
  t.match(text, 'Größe ñandú Привет');
  t.notMatch(text, '\ufffd');
  const raw = await fetchBytes(`${app.url}/api/questions/${question_id}/intel-brief`, {
    accept: 'text/markdown',
  });
  checkBytes(t, raw.bytes, 'Größe ñandú Привет', 'the brief as Markdown');
});

t.test('refusals that quote what was sent quote its letters, and headers stay ASCII', async (t) => {
  const word = 'Größe漢字📈';
  const escaped = encodeURIComponent(word);
  const socket = await openCalls(t, app.port);
  for (const path of [
    `/api/questions?status=${escaped}`,
    `/api/questions?category=${escaped}`,
    `/api/questions?tag=${encodeURIComponent(`#${word}`)}`,
    `/api/questions/${escaped}`,
    `/api/leaderboard?by=${escaped}`,
    `/api/events?topic=${escaped}`,
    `/api/events?after=${escaped}`,
    `/${escaped}`,
    `/api/export/questions?format=${escaped}`,
  ]) {
    const refused = await ask('GET', path);
    t.ok(refused.status >= 400 && refused.status < 500, `${path}: ${refused.status}`);
    t.match(refused.headers['content-type'], /^application\/json/, path);
    t.notOk(refused.bytes.includes(bytesOf('\ufffd')), `${path}: nothing was replaced`);
    t.notOk(refused.bytes.includes(bytesOf('Ã')), `${path}: nothing was encoded twice`);
    const body = JSON.parse(refused.bytes.toString()) as { readonly code: string };
    t.equal(
      Number(refused.headers['content-length'] ?? refused.bytes.length),
      refused.bytes.length,
    );
    for (const [name, value] of Object.entries(refused.headers)) {
      t.match(String(value), /^[\t\x20-\x7e]*$/, `${path}: the header ${name}`);
    }
    const called = await socket.call('GET', path);
    t.match(called, { status: refused.status, body: { code: body.code } }, `${path} on a socket`);
  }
  const named = await app.call('POST', '/api/webhooks', {
    key,
    body: { url: receiver.url('/'), events: [word] },
  });
  t.match(named, { status: 400, body: { code: 'INVALID_EVENT' } });
  t.notMatch(JSON.stringify(named.body), '\ufffd');
  const listener = await connect(t, app.port);
  const unknown = await listener.ask({ op: word });
  t.match(unknown, { op: 'error', code: 'UNKNOWN_OP' });
  t.notMatch(JSON.stringify(unknown), '\ufffd');
  const topic = await listener.subscribe([word]);
  t.match(topic, { op: 'error', code: 'INVALID_TOPIC' });
  t.notMatch(JSON.stringify(topic), '\ufffd');
  const raw = openRaw(app.port);
  raw.write(writeRequest('GET /livez HTTP/1.1', ['X-Request-Id: gr\u00f6\u00dfe-1']));
  const echoed = await raw.next();
  t.equal(echoed?.status, 200, 'a request id of Latin-1 is no reason to refuse');
  t.match(echoed?.headers['x-request-id'], /^[\x21-\x7e]+$/, 'and is not echoed');
  raw.reset();
  const closing = await connect(t, app.port);
  const reason = new Promise<Buffer>((resolve) =>
    closing.ws.once('close', (_code: number, why: Buffer) => resolve(why)),
  );
  closing.ws.send(bytesOf(`{"op":"${word.repeat(400)}`), { binary: false });
  closing.ws.send(bytesOf(word.repeat(2_000)), { binary: false });
  t.equal(await closing.closed(), 4000);
  const why = await reason;
  t.ok(why.length <= 123, 'a close reason fits its frame');
  t.equal(
    Buffer.compare(bytesOf(why.toString('utf8')), why),
    0,
    'and is not cut inside of a letter',
  );
});

t.test('an answer that is given again has the same bytes, over HTTP and on a socket', async (t) => {
  const body = JSON.stringify({
    content: `Because ${odd} was measured twice, and once more by the pilot.`,
  });
  const escaped = body.replace(/[^\x20-\x7e]/g, (unit) => {
    return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
  const path = `/api/questions/${question_id}/comments`;
  const send = async (idempotency: string, text: string) => {
    const answer = await fetch(app.url + path, {
      method: 'POST',
      headers: {
        'x-api-key': key,
        'content-type': 'application/json; charset=utf-8',
        'idempotency-key': idempotency,
      },
      body: text,
    });
    return { answer, bytes: Buffer.from(await answer.arrayBuffer()) };
  };
  const first = await send('bytes-of-an-answer-1', body);
  const second = await send('bytes-of-an-answer-1', body);
  t.equal(first.answer.status, 201, first.bytes.toString());
  t.equal(second.answer.status, 201);
  t.equal(second.answer.headers.get('idempotency-replayed'), 'true');
  t.equal(Buffer.compare(first.bytes, second.bytes), 0, 'the same bytes');
  checkBytes(t, second.bytes, odd, 'the answer that was kept');
  const length = second.answer.headers.get('content-length');
  if (length !== null) t.equal(Number(length), second.bytes.length);
  const mismatch = await send('bytes-of-an-answer-1', escaped);
  t.equal(mismatch.answer.status, 422, 'bodies are compared byte by byte');
  const socket = await openCalls(t, app.port, { 'x-api-key': key });
  const replayed: Answered = await socket.call('POST', path, {
    headers: { 'idempotency-key': 'bytes-of-an-answer-2' },
    body: { content: `Because ${odd} was heard again over a socket of the harbour.` },
  });
  const again = await socket.call('POST', path, {
    headers: { 'idempotency-key': 'bytes-of-an-answer-2' },
    body: { content: `Because ${odd} was heard again over a socket of the harbour.` },
  });
  t.equal(replayed.status, 201, JSON.stringify(replayed.body));
  t.same(again.body, replayed.body);
  t.match(again.body.comment.content, odd);
  t.equal(again.headers.get('idempotency-replayed'), 'true');
});

t.test(
  'a request line in two segments, and one that is long, are answered like others',
  async (t) => {
    const node = Number(process.versions.node.split('.')[0]);
    const path = `/api/questions?q=${encodeURIComponent('漢字')}&status=open&limit=1`;
    const whole = `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`;
    const expected = await ask('GET', path);
    t.equal(expected.status, 200);
    /** Sends each part after the service has certainly read the previous one. */
    const sendParts = async (...parts: readonly string[]): Promise<string> => {
      const tcp = await openTcp(t, app.port);
      for (const [n, part] of parts.entries()) {
        tcp.socket.write(part, 'latin1');
        if (n < parts.length - 1) for (const _ of range(1, 3)) await app.call('GET', '/livez');
      }
      await until('an answer', () => tcp.closed() || /\r\n\r\n[\s\S]*\}$/.test(tcp.text()));
      return tcp.text();
    };
    if (node < 22) {
      t.comment('on Node 20 the engine answers 505 to a request line in two segments');
    } else {
      const line = whole.indexOf('\r\n');
      const cuts = [
        1,
        3,
        4,
        5,
        12,
        path.indexOf('%') + 5,
        path.indexOf('%') + 6,
        line - 8,
        line - 3,
        line - 1,
      ];
      for (const at of [...cuts, line, line + 1, line + 2, whole.length - 3, whole.length - 1]) {
        const answer = await sendParts(whole.slice(0, at), whole.slice(at));
        t.match(answer, /^HTTP\/1\.1 200 /, `cut at ${at}: ${answer.slice(0, 40)}`);
        t.match(answer, question_id, `cut at ${at}`);
      }
      const bytes = await sendParts(...whole);
      t.match(bytes, /^HTTP\/1\.1 200 /, 'byte by byte');
    }
    const ids = [
      question_id,
      ...(await Promise.all(range(1, 99).map(() => makeOpenQuestion(app)))),
    ];
    const { body: api } = await app.call('GET', '/openapi.json');
    const bulk = ['/api/questions', '/api/consensus'] as const;
    for (const at of bulk) {
      const names = (api.paths[at].get.parameters as { readonly name: string }[]).map(
        ({ name }) => name,
      );
      const name = names.find((one) => /ids$/.test(one)) ?? 'ids';
      const long = await ask('GET', `${at}?${name}=${ids.join(',')}&limit=100&status=all`);
      t.equal(long.status, 200, `${at} with 100 ids in its address`);
      t.ok(
        ids.every((id) => long.bytes.includes(bytesOf(id))),
        `${at}: all of them`,
      );
      const forms = Object.entries(api.paths as Record<string, { readonly post?: unknown }>)
        .filter(([other, { post }]) => post !== undefined && other.startsWith(at))
        .map(([other]) => other)
        .filter((other) => !other.includes('{') && !/suggest|import/.test(other));
      if (forms.length === 0) t.comment(`${at} has no POST form yet`);
      for (const form of forms) {
        const body = { [name]: ids, limit: 100, ...(at === '/api/questions' && { status: 'all' }) };
        const answer = await app.call('POST', form, { body });
        t.equal(answer.status, 200, `POST ${form}: ${JSON.stringify(answer.body).slice(0, 300)}`);
        const text = JSON.stringify(answer.body);
        t.ok(
          ids.every((id) => text.includes(id)),
          `POST ${form}: all of them`,
        );
      }
    }
    const endless = await ask('GET', `/api/questions?q=${'x'.repeat(12_000)}`).catch(() => null);
    t.ok(
      endless === null || [400, 414, 431].includes(endless.status),
      'too long is said, or cut off',
    );
    t.equal((await ask('GET', '/livez')).status, 200, 'and the service goes on');
  },
);
