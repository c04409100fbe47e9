import { EventSource } from 'eventsource';
import type { LogEntry } from '../../../src/features/events/log-entry.js';
import { events_answer } from '../../../src/features/log/schema.js';
import { compileCheck } from '../../../src/http/validation.js';
import type { Answered } from '../../help/app.js';
import { range } from '../../help/hub.js';
import { pluck } from '../../help/pluck.js';
import { openSse } from '../../help/sse-client.js';
import { makeAgent, makeHuman, suspend } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { serveLog } from './log-server.js';

/** Pages of the log over HTTP, and then the same events as a stream of server-sent events. */

const id = (n: number): string => `0190a000-0000-7000-8000-${String(n).padStart(12, '0')}`;
const checkAnswer = compileCheck(events_answer, 'answer');
const { app, log } = await serveLog(t);

const untilKnown = () =>
  until('the process knows all', async () => {
    const { body } = await app.call('GET', '/api/events?limit=1');
    return body.head === log.entries.length;
  });

/** The events of a test come after this offset, and are numbered from 1 within the test. */
let base = 0;
t.beforeEach(async () => {
  await untilKnown();
  base = log.entries.length;
});
const at = (n: number): number => base + n;
const numbersOf = (offsets: readonly number[]): number[] => offsets.map((one) => one - base);
const offsetsOf = ({ body }: Answered): number[] => numbersOf(pluck(body.events, 'offset'));
const heardBy = (client: Awaited<ReturnType<typeof openSse>>) => numbersOf(client.offsets());

const prediction = (n: number, family: string, confidence: number): Partial<LogEntry> => ({
  event: 'prediction.placed',
  question_id: id(n),
  body: JSON.stringify({
    event: 'prediction.placed',
    data: { question_id: id(n), model_family: family, confidence },
    timestamp: new Date().toISOString(),
  }),
});

t.test('pages lead through the whole log, and every event is as it was recorded', async (t) => {
  await log.write(45);
  await untilKnown();
  const seen: Record<string, unknown>[] = [];
  let path: string | null = `/api/events?after=${base}`;
  while (path !== null) {
    const answer = await app.call('GET', path);
    t.equal(checkAnswer(answer.body), null);
    t.match(answer.body, { gap: null, head: at(45), oldest: 1 });
    seen.push(...answer.body.events);
    const link = /<([^>]+)>; rel="next"/.exec(answer.headers.get('link') ?? '')?.[1] ?? null;
    t.equal(link === null, answer.body.next_cursor === null);
    path = link;
  }
  const recorded = log.entries.slice(base);
  t.strictSame(
    seen,
    recorded.map(({ offset, id, body }) => ({ offset, id, ...JSON.parse(body) })),
  );
});

t.test('the cursor is the offset, and limits have bounds', async (t) => {
  await log.write(130);
  await untilKnown();
  const after = await app.call('GET', `/api/events?after=${at(40)}&limit=100`);
  t.strictSame(offsetsOf(after), range(41, 130).slice(0, 100));
  const some = await app.call('GET', `/api/events?after=${at(10)}&limit=3`);
  t.match(some.body, { next: at(13), next_cursor: String(at(13)) });
  t.strictSame(offsetsOf(some), [11, 12, 13]);
  const more = await app.call('GET', `/api/events?cursor=${some.body.next_cursor}&limit=1`);
  t.strictSame(offsetsOf(more), [14]);
  const last = await app.call('GET', `/api/events?after=${at(130)}`);
  t.match(last.body, { events: [], next: at(130), next_cursor: null, gap: null });
  t.equal(offsetsOf(await app.call('GET', '/api/events')).length, 20, 'twenty by default');
  for (const wrong of ['limit=0', 'limit=-1', 'after=-1', 'after=1.5', 'cursor=x', 'wait=51']) {
    const refused = await app.call('GET', `/api/events?${wrong}`);
    t.match(refused, { status: 400, body: { code: 'INVALID_REQUEST' } }, wrong);
  }
  const most = await app.call('GET', `/api/events?limit=101&after=${base}`);
  t.strictSame(offsetsOf(most), range(1, 100));
});

t.test('a full page before the head is immutable, and no other', async (t) => {
  await log.write(25);
  await log.write(1, { audience_id: id(1) });
  await untilKnown();
  const path = `/api/events?after=${base}&limit=10`;
  const immutable = 'public, immutable, max-age=31536000';
  const first = await app.call('GET', path);
  t.equal(first.headers.get('cache-control'), immutable);
  const etag = first.headers.get('etag') ?? '';
  t.equal(first.headers.get('ratelimit'), null, 'the limits of one caller are in no cache');
  await log.write(5);
  await untilKnown();
  const later = await app.call('GET', path);
  t.same(later.body.events, first.body.events);
  t.not(later.body.head, first.body.head);
  t.equal(later.headers.get('etag'), etag, 'the tag is that of the events');
  t.equal((await app.call('GET', path, { headers: { 'if-none-match': etag } })).status, 304);
  const lines = await app.call('GET', `${path}&format=ndjson`);
  t.equal(lines.headers.get('cache-control'), immutable);
  const agent = await makeAgent(app);
  const cacheOf = async (query: string, key = agent.key) =>
    (await app.call('GET', `/api/events?${query}`, { key })).headers.get('cache-control');
  t.equal(await cacheOf(`after=${base}&limit=10`), immutable, 'with a key too');
  t.equal(await cacheOf(`cursor=${base}&limit=10`), immutable);
  await untilKnown();
  const usual = 'private, no-cache';
  t.equal(await cacheOf('limit=10'), usual, 'where it begins is not said');
  t.equal(await cacheOf(`after=${at(20)}&limit=100`), usual, 'more may come');
  t.equal(await cacheOf(`after=${log.entries.length - 1}&limit=1`), usual, 'it ends with the head');
  t.equal(await cacheOf(`after=${base}&limit=10&topic=me,all`), 'no-store');
});

t.test('topics and filters choose, the same in memory and in the record', async (t) => {
  await log.write(3, { question_id: id(1), category: 'society' });
  await log.write(2, { question_id: id(2), category: 'industry', subcategory: 'data' });
  await log.write(1, prediction(1, 'gpt', 60));
  await log.write(1, prediction(2, 'claude', 90));
  await log.write(1, prediction(1, 'claude', 80));
  await log.write(1, { agent_id: id(9) });
  await untilKnown();
  // A new process has no events in memory.
  const other = await serveLog(t, { stores: app.stores });
  const ask = async (query: string) => {
    const [here, there] = await Promise.all(
      [app, other.app].map((one) => one.call('GET', `/api/events?after=${base}&${query}`)),
    );
    t.same(there?.body, here?.body, query);
    return offsetsOf(here as Answered);
  };
  t.same(await ask(`topic=question:${id(1)}`), [1, 2, 3, 6, 8]);
  t.same(await ask('topic=category:industry'), [4, 5]);
  t.same(await ask('topic=subcategory:data'), [4, 5]);
  t.same(await ask(`topic=agent:${id(9)}`), [9]);
  t.same(await ask(`topic=agent:${id(9)},category:industry`), [4, 5, 9]);
  t.same(await ask(`topic=agent:${id(9)}&topic=category:industry`), [4, 5, 9]);
  t.same(await ask('events=prediction.placed'), [6, 7, 8]);
  t.same(await ask('events=prediction.placed,question.closed'), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
  t.same(await ask('model_family=claude'), [7, 8]);
  t.same(await ask('model_family=claude,gpt&min_confidence=80'), [7, 8]);
  t.same(await ask(`min_confidence=80&topic=question:${id(1)}`), [8]);
  t.same(await ask('min_confidence=81&events=prediction.placed'), [7]);
  t.same(await ask(`question_ids=${id(1)}&categories=society`), [1, 2, 3]);
  t.same(await ask(`question_ids=${id(2)},${id(1)}&model_family=claude`), [7, 8]);
  t.same(await ask('topic=system'), []);
  for (const [query, code] of [
    ['topic=nothing', 'INVALID_TOPIC'],
    ['topic=question:1', 'INVALID_TOPIC'],
    ['topic=,', 'INVALID_REQUEST'],
    ['events=nothing', 'INVALID_FILTER'],
    ['model_family=GPT', 'INVALID_REQUEST'],
    ['question_ids=1', 'INVALID_REQUEST'],
    ['categories=sports', 'INVALID_FILTER'],
    ['topic=category:sports', 'INVALID_TOPIC'],
    ['topic=subcategory:sports', 'INVALID_TOPIC'],
    ['min_confidence=-0.01', 'INVALID_REQUEST'],
    ['min_confidence=100.01', 'INVALID_REQUEST'],
  ] as const) {
    t.match(await app.call('GET', `/api/events?${query}`), { status: 400, body: { code } }, query);
  }
});

t.test('private events are for one key alone, and for no cache', async (t) => {
  const [ada, ben] = [await makeAgent(app), await makeAgent(app)];
  const human = await makeHuman(app);
  await log.write(1, { audience_id: ada.id, question_id: id(1) });
  await log.write(1);
  await untilKnown();
  const ask = (query: string, as = {}) => app.call('GET', `/api/events?after=${base}${query}`, as);
  t.same(offsetsOf(await ask('', { key: ada.key })), [2], 'all is public');
  t.same(offsetsOf(await ask(`&topic=question:${id(1)}`, { key: ada.key })), []);
  const own = await ask('&topic=me,all', { key: ada.key });
  t.same(offsetsOf(own), [1, 2]);
  t.equal(own.headers.get('cache-control'), 'no-store');
  t.equal(own.headers.get('etag'), null);
  t.same(offsetsOf(await ask('&topic=me', { key: ben.key })), []);
  t.match(await ask('&topic=me'), { status: 401, body: { code: 'MISSING_AUTH' } });
  const refused = await ask('&topic=me', { token: human.token });
  t.match(refused, { status: 403, body: { code: 'AGENTS_ONLY' } });
  t.match(await ask(`&topic=me:${ada.id}`, { key: ben.key }), { status: 400 });
});

t.test('what is no longer kept, or never was, is named plainly', async (t) => {
  const early = await serveLog(t);
  await early.log.record(30);
  await early.app.sql`delete from events where "offset" <= 10`;
  await early.app.sql`update log_head set oldest = 11`;
  const late = await serveLog(t, { stores: early.app.stores });
  const ask = (query: string) => late.app.call('GET', `/api/events?${query}`);
  const old = await ask('after=4&limit=2');
  const gap = { reason: 'expired', after: 4, until: 10 };
  t.match(old.body, { gap, oldest: 11, next: 12 });
  t.same(pluck(old.body.events, 'offset'), [11, 12]);
  const lines = await ask('after=4&limit=2&format=ndjson');
  t.same(JSON.parse(lines.body.split('\n')[0]), { gap });
  t.match((await ask('after=10&limit=1')).body, { gap: null });
  t.match((await ask('limit=1')).body, { gap: null, events: [{ offset: 11 }] });
  const ahead = await ask('after=31&wait=50');
  const beyond = { reason: 'epoch', after: 31, until: 30 };
  t.match(ahead.body, { events: [], gap: beyond, next: 30 });

  const stream = await openSse(t, `${late.app.url}/api/stream?after=4`);
  await until('the rest', () => stream.offsets().length === 20);
  t.strictSame(pluck(stream.messages.slice(0, 2), 'name'), ['welcome', 'gap'], 'before all else');
  t.strictSame(stream.messages[1]?.data, gap);
  t.strictSame(stream.offsets(), range(11, 30));
  const far = await openSse(t, `${late.app.url}/api/stream?after=31`);
  t.strictSame((await far.get('gap')).data, beyond);
});

t.test('an offset that this process has yet to learn of is waited for', async (t) => {
  await log.record(5);
  // So far only Postgres has these events. The follower reads Postgres once a second.
  const answer = await until('it is not taken for nonsense', async () => {
    const { body } = await app.call('GET', `/api/events?after=${at(5)}`);
    return body.gap === null && body;
  });
  t.match(answer, { events: [], next: at(5), head: at(5) });
});

t.test('lines hold one event each', async (t) => {
  await log.write(3);
  await untilKnown();
  for (const [query, headers] of [
    ['', { accept: 'application/x-ndjson' }],
    ['&format=ndjson', {}],
  ] as const) {
    const path = `/api/events?after=${base}&limit=2${query}`;
    const answer = await app.call('GET', path, { headers });
    t.equal(answer.headers.get('content-type'), 'application/x-ndjson');
    const lines = answer.body.trimEnd().split('\n');
    const ids = lines.map((line: string) => JSON.parse(line).id);
    t.same(ids, pluck(log.entries.slice(base, at(2)), 'id'));
    t.match(Object.fromEntries(answer.headers), {
      'x-log-next': String(at(2)),
      'x-log-head': String(at(3)),
      'x-log-oldest': '1',
      vary: 'Accept',
      link: new RegExp(`cursor=${at(2)}`),
    });
  }
  t.equal((await app.call('GET', `/api/events?after=${at(3)}&format=ndjson`)).body, '');
  const json = await app.call('GET', '/api/events?format=json', {
    headers: { accept: 'application/x-ndjson' },
  });
  t.equal(json.headers.get('content-type'), 'application/json');
});

t.test('a page that has not changed is not sent again', async (t) => {
  await log.write(3);
  await untilKnown();
  const path = `/api/events?after=${base}`;
  const first = await app.call('GET', path);
  const etag = first.headers.get('etag') ?? '';
  const again = { headers: { 'if-none-match': etag } };
  t.equal((await app.call('GET', path, again)).status, 304);
  await log.write(1);
  await until('it changes', async () => (await app.call('GET', path, again)).status === 200);
});

t.test('what was missed, then what happens, as it was recorded', async (t) => {
  await log.write(150);
  const live = await openSse(t, `${app.url}/api/stream`);
  t.equal(live.headers['content-type'], 'text/event-stream');
  t.equal(live.headers['cache-control'], 'no-store');
  t.equal(live.headers.connection, 'close');
  const first = await live.get('welcome');
  t.match(first.data, { topics: ['all'], oldest: 1, after: first.data.head });
  await untilKnown();
  const all = await openSse(t, `${app.url}/api/stream?after=${base}`);
  await until('what was missed', () => all.offsets().length === 150);
  await log.write(3, { category: 'society' });
  await until('what happens', () => all.offsets().length === 153);
  await until('on the other too', () => heardBy(live).includes(153));
  t.strictSame(heardBy(all), range(1, 153));
  t.strictSame(live.offsets(), range(first.data.head + 1, at(153)), 'live only, from the head on');
  const entry = log.entries[at(9)];
  t.strictSame(
    all.messages.find(({ data }) => data.offset === at(10)),
    {
      name: '',
      id: String(at(10)),
      data: { offset: at(10), id: entry?.id, ...JSON.parse(entry?.body ?? '') },
    },
  );
  t.ok((all.retry() ?? 0) > 0);
});

t.test('topics, filters and private events are those of the socket', async (t) => {
  const agent = await makeAgent(app);
  const human = await makeHuman(app);
  const as = { 'x-api-key': agent.key };
  const open = (query: string, headers = {}) =>
    openSse(t, `${app.url}/api/stream?after=${base}&${query}`, headers);
  const own = await open('topic=me', as);
  const society = await open('topic=category:society&events=question.closed');
  const both = await open('topic=me,category:society', as);
  await log.write(1, { audience_id: agent.id, category: 'society' });
  await log.write(1, { category: 'society' });
  await log.write(1, { category: 'society', event: 'question.created' });
  await log.write(1);
  await log.write(1, { audience_id: agent.id });
  await until('all', () => own.offsets().length === 2 && both.offsets().length === 4);
  t.strictSame([own, both, society].map(heardBy), [[1, 5], [1, 2, 3, 5], [2]]);
  const call = (query: string, options = {}) => app.call('GET', `/api/stream?${query}`, options);
  t.match(await call('topic=me'), { status: 401, body: { code: 'MISSING_AUTH' } });
  t.match(await call('topic=me', { token: human.token }), { body: { code: 'AGENTS_ONLY' } });
  t.match(await call('topic=x'), { status: 400, body: { code: 'INVALID_TOPIC' } });
  t.match(await call('after=x'), { status: 400, body: { code: 'INVALID_REQUEST' } });
});

t.test('a real EventSource resumes where it was, whatever was in between', async (t) => {
  const other = await serveLog(t, { stores: app.stores });
  const seen: number[] = [];
  let to = app.url;
  let connections = 0;
  let cut = (): void => undefined;
  const source = new EventSource(`${app.url}/api/stream?after=${base}`, {
    fetch: (url, init) => {
      connections += 1;
      const cutter = new AbortController();
      // Closing the EventSource itself would prevent it from reconnecting.
      cut = () => cutter.abort(new TypeError('the connection is cut'));
      const { pathname, search } = new URL(String(url));
      return fetch(`${to}${pathname}${search}`, { ...init, signal: cutter.signal });
    },
  });
  t.teardown(() => source.close());
  source.onmessage = ({ data }) => seen.push(JSON.parse(data).offset);
  for (const [round, here] of [other.app, app].entries()) {
    await log.write(5);
    await until('it hears', () => seen.at(-1) === log.entries.length);
    to = here.url;
    cut();
    await log.write(5);
    await until('another connection', () => connections === round + 2);
    await until('it hears again', () => seen.at(-1) === log.entries.length);
  }
  t.strictSame(numbersOf(seen), range(1, 20), 'no hole and no repeat');
});

t.test('the last id a client has seen counts more than its address', async (t) => {
  await log.write(5);
  for (const [after, last_id, rest] of [
    [base, String(at(3)), [4, 5]],
    [at(1), '', [2, 3, 4, 5]],
  ] as const) {
    const headers = { 'last-event-id': last_id };
    const stream = await openSse(t, `${app.url}/api/stream?after=${after}`, headers);
    await until('the rest', () => stream.offsets().length === rest.length);
    t.strictSame(heardBy(stream), rest);
  }
});

t.test('a reader that stands still is cut, slows nobody, and goes on where it was', async (t) => {
  // A separate log, because the events of this test are large.
  const { app, log } = await serveLog(t);
  const note = 'x'.repeat(20_000);
  const body = JSON.stringify({ event: 'e', data: { note }, timestamp: '2026-01-01T00:00:00Z' });
  const slow = await openSse(t, `${app.url}/api/stream?after=0`);
  const quick = await openSse(t, `${app.url}/api/stream?after=0`);
  await Promise.all([slow.get('welcome'), quick.get('welcome')]);
  slow.pause();
  const heap = process.memoryUsage().rss;
  // Writes more than the buffers at both ends of a local connection can hold.
  for (let n = 0; n < 18; n += 1) await log.write(50, { body });
  await until('the quick one has all', () => quick.offsets().length === 900);
  t.strictSame(quick.offsets(), range(1, 900));
  const grown_mb = (process.memoryUsage().rss - heap) / 1e6;
  t.comment(`${Math.round(grown_mb)} MB more, of which both clients hold what they have read`);
  const seen = slow.offsets().length;
  t.ok(seen < 900);
  slow.resume();
  await until('it has gone on, or is cut', async () => {
    const end = await Promise.race([slow.ended, Promise.resolve(null)]);
    return end === 'cut' || slow.offsets().length === 900;
  });
  t.strictSame(slow.offsets(), range(1, slow.offsets().length), 'what it has got is whole');
  const rest = await openSse(t, `${app.url}/api/stream`, {
    'last-event-id': String(slow.offsets().length),
  });
  await until('the rest', () => slow.offsets().length + rest.offsets().length === 900);
  t.strictSame([...slow.offsets(), ...rest.offsets()], range(1, 900));
});

t.test('a key that holds no longer ends its streams and no others', async (t) => {
  const human = await makeHuman(app);
  const [stays, goes] = [await makeAgent(app, { human }), await makeAgent(app, { human })];
  const open = (key: string) => openSse(t, `${app.url}/api/stream?topic=me`, { 'x-api-key': key });
  const [kept, gone] = [await open(stays.key), await open(goes.key)];
  await Promise.all([kept.get('welcome'), gone.get('welcome')]);
  await suspend(app, goes.id);
  t.equal(await gone.ended, 'end');
  t.match((await gone.get('bye')).data, { reason: 'credential' });
  await log.write(1, { audience_id: goes.id });
  await log.write(1, { audience_id: stays.id });
  await until('the other one', () => kept.offsets().length === 1);
  t.strictSame([heardBy(kept), heardBy(gone)], [[2], []]);
  t.equal((await app.call('GET', '/api/stream?topic=me', { key: goes.key })).status, 403);
});

t.test('a shutdown ends every stream in order, with a time to come back', async (t) => {
  const { app, log } = await serveLog(t);
  const streams = await Promise.all(
    range(1, 20).map(() => openSse(t, `${app.url}/api/stream?after=0`)),
  );
  await log.write(5);
  await until('all hear', () => streams.every((one) => one.offsets().length === 5));
  await app.stop();
  for (const one of streams) {
    t.equal(await one.ended, 'end');
    const { data } = await one.get('bye');
    t.match(data, { reason: 'draining' });
    t.ok(data.reconnect_ms <= 5_000 && one.retry() === data.reconnect_ms);
  }
});

t.test('one address may have so many streams, and one that ends makes room', async (t) => {
  const agent = await makeAgent(app);
  const open = () => openSse(t, `${app.url}/api/stream`, { 'x-api-key': agent.key });
  const streams = await Promise.all(range(1, 20).map(open));
  await Promise.all(streams.map((one) => one.get('welcome')));
  const refused = await app.call('GET', '/api/stream', { key: agent.key });
  t.match(refused, { status: 429, body: { code: 'TOO_MANY_CONNECTIONS' } });
  t.ok(Number(refused.headers.get('retry-after')) >= 1);
  streams[0]?.close();
  await until('there is room', async () => {
    const answer = await app.call('GET', '/api/stream', { key: agent.key });
    return answer.status === 200;
  });
  const head = await app.call('HEAD', '/api/stream', { key: agent.key });
  t.equal(head.headers.get('content-type'), 'text/event-stream');
});
