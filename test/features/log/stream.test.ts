import { EventSource } from 'eventsource';
import { t } from 'tap';
import { range } from '../../help/hub.js';
import { serveLog } from '../../help/log-server.js';
import { openSse } from '../../help/sse-client.js';
import { makeAgent, makeHuman, suspend } from '../../help/story.js';
import { until } from '../../help/until.js';

/** The log as server-sent events. */

t.test('what was missed, then what happens, as it was recorded', async (t) => {
  const { app, log } = await serveLog(t);
  await log.write(150);
  const live = await openSse(t, `${app.url}/api/stream`);
  t.equal(live.headers['content-type'], 'text/event-stream');
  t.equal(live.headers['cache-control'], 'no-store');
  t.equal(live.headers.connection, 'close');
  const first = await live.get('welcome');
  t.match(first.data, { topics: ['all'], oldest: 1, after: first.data.head });
  await until('the process knows all', async () => {
    const { body } = await app.call('GET', '/api/events?limit=1');
    return body.head === 150;
  });
  const all = await openSse(t, `${app.url}/api/stream?after=0`);
  await until('what was missed', () => all.offsets().length === 150);
  await log.write(3, { category: 'society' });
  await until('what happens', () => all.offsets().length === 153);
  await until('on the other too', () => live.offsets().includes(153));
  t.strictSame(all.offsets(), range(1, 153));
  t.strictSame(live.offsets(), range(first.data.head + 1, 153), 'live only, from the head on');
  const entry = log.entries[9];
  const message = all.messages.find(({ data }) => data.offset === 10);
  t.strictSame(message, {
    name: '',
    id: '10',
    data: { offset: 10, id: entry?.id, ...JSON.parse(entry?.body ?? '') },
  });
  t.ok((all.retry() ?? 0) > 0);
});

t.test('topics, filters and private events are those of the socket', async (t) => {
  const { app, log } = await serveLog(t);
  const agent = await makeAgent(app);
  const human = await makeHuman(app);
  const as = { 'x-api-key': agent.key };
  const open = (query: string, headers = {}) =>
    openSse(t, `${app.url}/api/stream?after=0&${query}`, headers);
  const own = await open('topic=me', as);
  const society = await open('topic=category:society&events=question.closed');
  const both = await open('topic=me,category:society', as);
  await log.write(1, { audience_id: agent.id, category: 'society' });
  await log.write(1, { category: 'society' });
  await log.write(1, { category: 'society', event: 'question.created' });
  await log.write(1);
  await log.write(1, { audience_id: agent.id });
  await until('all', () => own.offsets().length === 2 && both.offsets().length === 4);
  t.strictSame(own.offsets(), [1, 5]);
  t.strictSame(both.offsets(), [1, 2, 3, 5]);
  t.strictSame(society.offsets(), [2]);
  const call = (query: string, options = {}) => app.call('GET', `/api/stream?${query}`, options);
  t.match(await call('topic=me'), { status: 401, body: { code: 'MISSING_AUTH' } });
  t.match(await call('topic=me', { token: human.token }), { body: { code: 'AGENTS_ONLY' } });
  t.match(await call('topic=x'), { status: 400, body: { code: 'INVALID_TOPIC' } });
  t.match(await call('after=x'), { status: 400, body: { code: 'INVALID_REQUEST' } });
});

t.test('a real EventSource resumes where it was, whatever was in between', async (t) => {
  const { app, log } = await serveLog(t);
  const other = await serveLog(t, { stores: app.stores });
  const seen: number[] = [];
  let to = app.url;
  let connections = 0;
  let cut = (): void => undefined;
  const source = new EventSource(`${app.url}/api/stream?after=0`, {
    fetch: (url, init) => {
      connections += 1;
      const cutter = new AbortController();
      // Its own way to abort would tell it not to come back.
      cut = () => cutter.abort(new TypeError('the connection is cut'));
      const { pathname, search } = new URL(String(url));
      return fetch(`${to}${pathname}${search}`, { ...init, signal: cutter.signal });
    },
  });
  t.teardown(() => source.close());
  source.onmessage = ({ data }) => seen.push(JSON.parse(data).offset);
  for (const [round, here] of [app, other.app, app].entries()) {
    await log.write(5);
    await until('it hears', () => seen.at(-1) === log.entries.length);
    to = here.url;
    cut();
    await log.write(5);
    await until('another connection', () => connections === round + 2);
    await until('it hears again', () => seen.at(-1) === log.entries.length);
  }
  t.strictSame(seen, range(1, 30), 'no hole and no repeat');
});

t.test('the last id a client has seen counts more than its address', async (t) => {
  const { app, log } = await serveLog(t);
  await log.write(5);
  const open = (path: string, last: string) =>
    openSse(t, `${app.url}${path}`, { 'last-event-id': last });
  const resumed = await open('/api/stream?after=0', '3');
  await until('the rest', () => resumed.offsets().length === 2);
  t.strictSame(resumed.offsets(), [4, 5]);
  const odd = await open('/api/stream?after=1', 'nonsense');
  await until('the rest', () => odd.offsets().length === 4);
  t.strictSame(odd.offsets(), [2, 3, 4, 5]);
});

t.test('what is no longer kept, or never was, is told before anything else', async (t) => {
  const { app, log } = await serveLog(t);
  await log.record(30);
  await app.sql`delete from events where "offset" <= 10`;
  const late = await serveLog(t, { stores: app.stores });
  const old = await openSse(t, `${late.app.url}/api/stream?after=4`);
  await until('the rest', () => old.offsets().length === 20);
  t.strictSame(
    old.messages.slice(0, 2).map(({ name }) => name),
    ['welcome', 'gap'],
  );
  t.strictSame(old.messages[1]?.data, { reason: 'expired', after: 4, until: 10 });
  t.strictSame(old.offsets(), range(11, 30));
  const ahead = await openSse(t, `${late.app.url}/api/stream?after=31`);
  t.strictSame((await ahead.get('gap')).data, { reason: 'epoch', after: 31, until: 30 });
});

t.test('a reader that stands still is cut, slows nobody, and goes on where it was', async (t) => {
  const { app, log } = await serveLog(t);
  const note = 'x'.repeat(20_000);
  const body = JSON.stringify({
    event: 'e',
    data: { note },
    timestamp: '2026-01-01T00:00:00.000Z',
  });
  const slow = await openSse(t, `${app.url}/api/stream?after=0`);
  const quick = await openSse(t, `${app.url}/api/stream?after=0`);
  await Promise.all([slow.get('welcome'), quick.get('welcome')]);
  slow.pause();
  const heap = process.memoryUsage().rss;
  // More than both ends of a local connection hold.
  for (let n = 0; n < 30; n += 1) await log.write(50, { body });
  await until('the quick one has all', () => quick.offsets().length === 1_500);
  t.strictSame(quick.offsets(), range(1, 1_500));
  const grown_mb = (process.memoryUsage().rss - heap) / 1e6;
  t.comment(`${Math.round(grown_mb)} MB more, of which both clients hold what they have read`);
  const seen = slow.offsets().length;
  t.ok(seen < 1_500);
  slow.resume();
  await until('it has gone on, or is cut', async () => {
    const end = await Promise.race([slow.ended, Promise.resolve(null)]);
    return end === 'cut' || slow.offsets().length === 1_500;
  });
  t.strictSame(slow.offsets(), range(1, slow.offsets().length), 'what it has got is whole');
  const rest = await openSse(t, `${app.url}/api/stream`, {
    'last-event-id': String(slow.offsets().length),
  });
  await until('the rest', () => slow.offsets().length + rest.offsets().length === 1_500);
  t.strictSame([...slow.offsets(), ...rest.offsets()], range(1, 1_500));
});

t.test('a key that holds no longer ends its streams and no others', async (t) => {
  const { app, log } = await serveLog(t);
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
  t.strictSame([kept.offsets(), gone.offsets()], [[2], []]);
  const again = await app.call('GET', '/api/stream?topic=me', { key: goes.key });
  t.equal(again.status, 403);
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
  const { app } = await serveLog(t);
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
