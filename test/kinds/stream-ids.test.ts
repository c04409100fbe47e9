import { questionId, serveConsumers } from '../features/consumers/world.js';
import { openModern } from '../features/mcp/world.js';
import { pluck } from '../help/pluck.js';
import { openRaw, writeRequest } from '../help/raw-http.js';
import { openSse } from '../help/sse-client.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { connect } from '../help/ws-client.js';

/**
 * A reader of the log continues exactly after the id that it names, over every transport. An
 * unreadable id is refused, and an id beyond the end of the log is a gap. No client goes live
 * without the events that it missed.
 */

const { app, log, as, take, key, write } = await serveConsumers(t);

/** Twelve events of question 1, and one of question 2 between the sixth and the seventh. */
const e = [0, ...(pluck(await write([1, 1, 1, 1, 1, 1]), 'offset') as number[])];
const [elsewhere = 0] = pluck(await write([2]), 'offset') as number[];
e.push(...(pluck(await write([1, 1, 1, 1, 1, 1]), 'offset') as number[]));
const head = e[12] as number;
const topic = `question:${questionId(1)}`;
const T = `topic=${topic}`;
const after = (n: number): number[] => e.slice(n + 1);

/** Sends a request that may open a stream. Aborts after five seconds. */
const ask = (path: string, headers: Record<string, string> = {}, body?: object) =>
  fetch(`${app.url}${path}`, {
    headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(5_000),
  });

t.test('a stream resumes right behind the id that it is given', async (t) => {
  const rows: readonly [string, string, Record<string, string>, readonly number[]][] = [
    ['header', T, { 'last-event-id': `${e[4]}` }, after(4)],
    ['address', `${T}&lastEventId=${e[4]}`, {}, after(4)],
    ['header before after', `${T}&after=${e[2]}`, { 'last-event-id': `${e[8]}` }, after(8)],
    ['header before address', `${T}&lastEventId=${e[2]}`, { 'last-event-id': `${e[8]}` }, after(8)],
    ['address before after', `${T}&after=${e[2]}&lastEventId=${e[8]}`, {}, after(8)],
    ['an empty header is none', `${T}&after=${e[10]}`, { 'last-event-id': '' }, after(10)],
    ['an id of another topic', T, { 'last-event-id': `${elsewhere}` }, after(6)],
    ['zeros in front', T, { 'last-event-id': `00${e[9]}` }, after(9)],
    ['the name in any case', T, { 'LAST-Event-iD': `   ${e[10]}  ` }, after(10)],
    ['the beginning', T, { 'last-event-id': '0' }, after(0)],
    [
      'the beginning of everything',
      'topic=all',
      { 'last-event-id': '0' },
      log.entries.map((one) => one.offset),
    ],
  ];
  for (const [name, query, headers, expected] of rows) {
    const one = await openSse(t, `${app.url}/api/stream?${query}`, headers);
    await until(`${name}: the last has come`, () => one.offsets().includes(head));
    t.same(one.offsets(), expected, name);
    t.notOk(
      one.messages.some((message) => message.name === 'gap'),
      name,
    );
    one.close();
  }
});

t.test('a posted stream reads the header too', async (t) => {
  const good = await ask('/api/stream/query', { 'last-event-id': `${e[9]}` }, { topic: [topic] });
  t.equal(good.status, 200);
  const reader = good.body?.getReader();
  let text = '';
  await until('the last has come', async () => {
    text += new TextDecoder().decode((await reader?.read())?.value);
    return text.includes(`id: ${head}\n`);
  });
  t.same(
    [...text.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id)),
    after(9),
  );
  await reader?.cancel();
  const bad = await ask('/api/stream/query', { 'last-event-id': 'x' }, { topic: [topic] });
  t.equal(bad.status, 400);
});

t.test('a stream at the head replays nothing, and goes live', async (t) => {
  const rows = [{ 'last-event-id': `${log.entries.length}` }, { 'last-event-id': '' }];
  for (const headers of rows as Record<string, string>[]) {
    const one = await openSse(t, `${app.url}/api/stream?topic=all`, headers);
    await one.get('welcome');
    const [fresh] = await write([3]);
    await until('it has come', () => one.offsets().length > 0);
    t.same(one.offsets(), [fresh?.offset]);
    t.notOk(one.messages.some(({ name }) => name === 'gap'));
    one.close();
  }
});

t.test('bytes outside ASCII, and two headers from a proxy', async (t) => {
  const start = `GET /api/stream?${T} HTTP/1.1`;
  // The engine trims such bytes from both ends of a header, as it trims spaces.
  for (const id of ['5\xe2\x80\x935', '1\xd9\xa52', `${e[9]},${e[9]}`, `+${e[9]}`]) {
    const raw = openRaw(app.port);
    raw.write(writeRequest(start, [`Last-Event-ID: ${id}`]));
    t.equal((await raw.next())?.status, 400, id);
    raw.reset();
  }
  const raw = openRaw(app.port);
  raw.write(writeRequest(start, [`Last-Event-ID: ${e[10]}`, `Last-Event-ID: ${e[10]}`]));
  await until(
    'an answer',
    () => raw.rest.includes('400 Bad') || raw.rest.includes(`id: ${head}\n`),
  );
  t.ok(raw.rest.includes('400 Bad') || raw.rest.includes(`id: ${e[11]}\n`), 'never live only');
  raw.reset();
});

t.test('an id above the log is a gap', async (t) => {
  const ahead = log.entries.length + 1_000;
  const client = await connect(t, app.port);
  client.send({ op: 'subscribe', id: 'ahead', topics: [topic], after: ahead });
  // Each of these requests waits for a while, because another process may be ahead.
  const [stream, page, frame] = await Promise.all([
    openSse(t, `${app.url}/api/stream?${T}`, { 'last-event-id': `${ahead}` }),
    app.call('GET', `/api/events?after=${ahead}&${T}`),
    client.get('a gap', ({ op }) => op === 'gap'),
  ]);
  t.match((await stream.get('gap')).data, { reason: 'epoch', after: ahead });
  t.match(page, { status: 200, body: { gap: { reason: 'epoch' } } });
  t.match(frame, { reason: 'epoch' });
});

t.test('numbers that no log reaches are refused or a gap', async (t) => {
  for (const text of ['99999999999999999999', '9007199254740993', '%20']) {
    const answer = await ask(`/api/stream?${T}&after=${text}`);
    if (answer.status === 400) continue;
    const one = await openSse(t, `${app.url}/api/stream?${T}&after=${text}`);
    t.match((await one.get('gap')).data, { reason: 'epoch' }, text);
  }
});

/** All other requests with a position in the log, and the name that the refusal mentions. */
const others: readonly [string, string, object | undefined, RegExp][] = [
  ['GET', '/api/events?after=1e2', undefined, /after/],
  ['GET', '/api/events?after=abc&format=ndjson', undefined, /after/],
  ['GET', '/api/events?after=abc&wait=25', undefined, /after/],
  ['GET', '/api/events?cursor=%25%25%25', undefined, /cursor/],
  ['POST', '/api/events/query', { after: 'abc' }, /after/],
  ['POST', '/api/events/query', { after: {} }, /after/],
  ['POST', '/api/events/query', { after: -1 }, /after/],
  ['POST', '/api/events/query', { after: true }, /after/],
  ['POST', '/api/stream/query', { topic: [topic], after: 'abc' }, /after/],
  ['POST', '/api/stream/query', { topic }, /topic/],
  ['GET', '/api/events/digest?at=abc', undefined, /at/],
  ['GET', '/api/events/digest?at=-1', undefined, /at/],
  ['GET', '/api/events/digest?from=abc', undefined, /from/],
];

t.test('an unreadable place is refused by its name, and no cache keeps the refusal', async (t) => {
  const questions = await app.call('GET', '/api/questions?limit=1');
  const foreign = questions.body.next_cursor ?? 'eyJhIjoxfQ';
  for (const [method, path, body, name] of [
    ...others,
    ['GET', `/api/events?cursor=${foreign}`, undefined, /cursor/] as const,
  ]) {
    const answer = await app.call(method, path, body && { body });
    t.equal(answer.status, 400, path);
    t.match(answer.body, { status: 400, code: String }, path);
    t.match(JSON.stringify(answer.body), name, path);
    t.notMatch(answer.headers.get('cache-control') ?? '', /immutable|max-age=[1-9]/, path);
  }
  const ahead = await app.call('GET', `/api/events/digest?at=${log.entries.length + 1_000}`);
  t.match(ahead, { status: 404, body: { code: 'DIGEST_UNKNOWN' } });
  const at = await app.call('GET', `/api/events/digest?at=${log.entries.length}`);
  t.equal(at.status, 200);
});

t.test('a made-up cursor of deliveries is refused', async (t) => {
  const { body } = await app.call('POST', '/api/webhooks', {
    key,
    body: { url: 'https://example.com/hook', events: ['question.created'] },
  });
  const path = `/api/webhooks/${body.webhook?.id ?? body.id}/deliveries`;
  t.equal((await app.call('GET', path, { key })).status, 200);
  for (const cursor of ['nonsense', '-1', '%00']) {
    const answer = await app.call('GET', `${path}?cursor=${cursor}`, { key });
    t.equal(answer.status, 400, cursor);
    t.match(JSON.stringify(answer.body), /cursor/);
  }
});

t.test('pages go on exactly, by cursor and by link', async (t) => {
  const first = await app.call('GET', `/api/events?${T}&after=${e[1]}&limit=3`);
  const pages = { cursor: first, link: first };
  const seen = {
    cursor: pluck(first.body.events, 'offset'),
    link: pluck(first.body.events, 'offset'),
  };
  for (const way of ['cursor', 'link'] as const) {
    while (pages[way].body.next_cursor !== null) {
      const [, link = ''] =
        /<([^>]+)>; rel="next"/.exec(pages[way].headers.get('link') ?? '') ?? [];
      const cursor = `/api/events?${T}&limit=3&cursor=${pages[way].body.next_cursor}`;
      pages[way] = await app.call('GET', way === 'cursor' ? cursor : link.replace(app.url, ''));
      seen[way].push(...pluck(pages[way].body.events, 'offset'));
    }
    t.same(seen[way], after(1), way);
  }
  const twice = await app.call('GET', `/api/events?${T}&after=${e[3]}&after=${e[9]}`);
  const offset = twice.body.events?.[0]?.offset;
  t.ok(twice.status === 400 || offset === e[4] || offset === e[10], `${twice.status} ${offset}`);
});

t.test('a subscription with an unreadable place is refused, and the socket goes on', async (t) => {
  const client = await connect(t, app.port);
  const places = [
    { after: 'abc' },
    { after: -1 },
    { after: 1.5 },
    { after: true },
    { after: {} },
    { after: [5] },
    { after: null },
    { after: `${e[8]}` },
    { after: e[2], last: 3 },
    { last: 0 },
  ];
  for (const place of places) {
    const answer = await client.subscribe([topic], place);
    t.match(answer, { op: 'error', code: 'INVALID_FRAME' }, JSON.stringify(place));
  }
  await write([4]);
  t.match(await client.ask({ op: 'ping' }), { op: 'pong' });
  t.same(client.offsets(topic), [], 'nothing is subscribed');
});

t.test('a subscription after an offset has what it missed before its answer', async (t) => {
  const client = await connect(t, app.port);
  t.match(await client.subscribe([topic], { after: e[8] }), {
    op: 'subscribed',
    result: 'recovered',
    replayed: 4,
  });
  t.same(client.offsets(topic), after(8));
});

t.test('a consumer begins where it is told, or is not created', async (t) => {
  for (const start of ['begining', '', -1, 1.5, true, '12x', {}]) {
    const { status, body } = await as('PUT', '/starts', { start });
    t.equal(status, 400, JSON.stringify(start));
    t.match(JSON.stringify(body), /start/);
  }
  const ahead = { start: log.entries.length + 1_000 };
  t.match((await as('PUT', '/starts', ahead)).body, { code: 'OFFSET_AHEAD' });
  for (const name of ['after', 'since', 'from', 'offset', 'cursor']) {
    const { status, body } = await as('PUT', '/starts', { [name]: 5 });
    t.match({ status, body }, { status: 400, body: { fields: [{ path: `body.${name}` }] } }, name);
  }
  t.equal((await as('GET', '/starts')).status, 404);
  await as('PUT', '/starts', { topics: [topic], start: e[7] });
  t.same(pluck((await take('starts', 'm', { limit: 100 })).body.events, 'offset'), after(7));
});

t.test('a seek to an unreadable place moves nothing', async (t) => {
  await as('PUT', '/seeks', { topics: [topic], start: e[5] });
  const before = (await as('GET', '/seeks')).body;
  const ahead = log.entries.length + 1_000;
  for (const body of [...['abc', -1, 1.5, null, ahead].map((start) => ({ start })), {}]) {
    t.equal((await as('POST', '/seeks/seek', body)).status, 400, JSON.stringify(body));
  }
  t.same((await as('GET', '/seeks')).body, before);
});

t.test('the tool events reads a place as a page does', async (t) => {
  const { connect: open, callTool } = await openModern(t, app.url, key);
  await open();
  for (const place of ['abc', -1]) {
    const refused = await callTool('events', { after: place });
    t.equal(refused.isError, true);
    t.match(refused.content[0]?.text, /INVALID_REQUEST/);
    t.match(refused.content[0]?.text, /after/);
  }
  const { answer } = await callTool('events', { after: `${e[8]}`, topic });
  t.same(pluck(answer.events, 'offset'), after(8));
});
