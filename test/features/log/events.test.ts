import { type Test, t } from 'tap';
import type { LogEntry } from '../../../src/features/events/log-entry.js';
import { events_answer } from '../../../src/features/log/schema.js';
import { compileCheck } from '../../../src/http/validation.js';
import type { Answered } from '../../help/app.js';
import { range } from '../../help/hub.js';
import { type LogServer, serveLog } from '../../help/log-server.js';
import { makeAgent, makeHuman } from '../../help/story.js';
import { until } from '../../help/until.js';

/** Pages of the log over HTTP, and calls that wait for the next event. */

const id = (n: number): string => `0190a000-0000-7000-8000-${String(n).padStart(12, '0')}`;
const checkAnswer = compileCheck(events_answer, 'answer');
const offsetsOf = ({ body }: Answered): number[] =>
  body.events.map(({ offset }: { offset: number }) => offset);

/** A log of so many events, all of them known to the process. */
const serveWith = async (t: Test, count: number, place: Partial<LogEntry> = {}) => {
  const server = await serveLog(t);
  if (count > 0) await server.log.write(count, place);
  await untilKnown(server);
  return server;
};

const untilKnown = ({ app, log }: LogServer) =>
  until('the process knows all', async () => {
    const { body } = await app.call('GET', '/api/events?limit=1');
    return body.head === log.entries.length;
  });

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
  const { app, log } = await serveWith(t, 45);
  const seen: Record<string, unknown>[] = [];
  let path: string | null = '/api/events';
  while (path !== null) {
    const answer = await app.call('GET', path);
    t.equal(checkAnswer(answer.body), null);
    t.match(answer.body, { gap: null, head: 45, oldest: 1 });
    seen.push(...answer.body.events);
    const link = /<([^>]+)>; rel="next"/.exec(answer.headers.get('link') ?? '')?.[1] ?? null;
    t.equal(link === null, answer.body.next_cursor === null);
    path = link;
  }
  t.strictSame(
    seen,
    log.entries.map((entry) => ({
      offset: entry.offset,
      id: entry.id,
      ...JSON.parse(entry.body),
    })),
  );
});

t.test('the cursor is the offset, and limits have bounds', async (t) => {
  const { app } = await serveWith(t, 130);
  const after = await app.call('GET', '/api/events?after=40&limit=100');
  t.strictSame(offsetsOf(after), range(41, 130).slice(0, 100));
  const some = await app.call('GET', '/api/events?after=10&limit=3');
  t.match(some.body, { next: 13, next_cursor: '13' });
  t.strictSame(offsetsOf(some), [11, 12, 13]);
  const more = await app.call('GET', `/api/events?cursor=${some.body.next_cursor}&limit=1`);
  t.strictSame(offsetsOf(more), [14]);
  const last = await app.call('GET', '/api/events?after=130');
  t.match(last.body, { events: [], next: 130, next_cursor: null, gap: null });
  t.equal(offsetsOf(await app.call('GET', '/api/events')).length, 20, 'twenty by default');
  for (const wrong of ['limit=0', 'limit=-1', 'after=-1', 'after=1.5', 'cursor=x', 'wait=51']) {
    const refused = await app.call('GET', `/api/events?${wrong}`);
    t.match(refused, { status: 400, body: { code: 'INVALID_REQUEST' } }, wrong);
  }
  const most = await app.call('GET', '/api/events?limit=101&after=0');
  t.strictSame(offsetsOf(most), range(1, 100));
});

t.test('topics and filters choose, the same in memory and in the record', async (t) => {
  const { app, log } = await serveLog(t);
  await log.write(3, { question_id: id(1), category: 'society' });
  await log.write(2, { question_id: id(2), category: 'industry', subcategory: 'data' });
  await log.write(1, prediction(1, 'gpt', 60));
  await log.write(1, prediction(2, 'claude', 90));
  await log.write(1, prediction(1, 'claude', 80));
  await log.write(1, { agent_id: id(9) });
  await untilKnown({ app, log } as LogServer);
  // A process that starts now has none of it in memory.
  const other = await serveLog(t, { stores: app.stores });
  const ask = async (query: string) => {
    const [here, there] = await Promise.all(
      [app, other.app].map((one) => one.call('GET', `/api/events?after=0&${query}`)),
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
    ['min_confidence=1.5', 'INVALID_REQUEST'],
    ['min_confidence=101', 'INVALID_REQUEST'],
  ] as const) {
    t.match(await app.call('GET', `/api/events?${query}`), { status: 400, body: { code } }, query);
  }
});

t.test('private events are for one key alone, and for no cache', async (t) => {
  const { app, log } = await serveLog(t);
  const [ada, ben] = [await makeAgent(app), await makeAgent(app)];
  const human = await makeHuman(app);
  await log.write(1, { audience_id: ada.id, question_id: id(1) });
  await log.write(1);
  await untilKnown({ app, log } as LogServer);
  const ask = (path: string, as = {}) => app.call('GET', path, as);
  t.same(offsetsOf(await ask('/api/events', { key: ada.key })), [2], 'all is public');
  t.same(offsetsOf(await ask(`/api/events?topic=question:${id(1)}`, { key: ada.key })), []);
  const own = await ask('/api/events?topic=me,all', { key: ada.key });
  t.same(offsetsOf(own), [1, 2]);
  t.equal(own.headers.get('cache-control'), 'no-store');
  t.equal(own.headers.get('etag'), null);
  t.same(offsetsOf(await ask('/api/events?topic=me', { key: ben.key })), []);
  t.match(await ask('/api/events?topic=me'), { status: 401, body: { code: 'MISSING_AUTH' } });
  const refused = await ask('/api/events?topic=me', { token: human.token });
  t.match(refused, { status: 403, body: { code: 'AGENTS_ONLY' } });
  t.match(await ask(`/api/events?topic=me:${ada.id}`, { key: ben.key }), { status: 400 });
});

t.test('what is no longer kept, or never was, is said plainly', async (t) => {
  const { app, log } = await serveLog(t);
  await log.record(30);
  await app.sql`delete from events where "offset" <= 10`;
  const late = await serveLog(t, { stores: app.stores });
  const ask = (query: string) => late.app.call('GET', `/api/events?${query}`);
  const old = await ask('after=4&limit=2');
  const gap = { reason: 'expired', after: 4, until: 10 };
  t.match(old.body, { gap, oldest: 11, next: 12 });
  t.same(offsetsOf(old), [11, 12]);
  const lines = await ask('after=4&limit=2&format=ndjson');
  t.same(JSON.parse(lines.body.split('\n')[0]), { gap });
  t.match((await ask('after=10&limit=1')).body, { gap: null });
  t.match((await ask('limit=1')).body, { gap: null, events: [{ offset: 11 }] });
  const ahead = await ask('after=31&wait=50');
  t.match(ahead.body, { events: [], gap: { reason: 'epoch', after: 31, until: 30 }, next: 30 });
});

t.test('an offset that this process has yet to learn of is waited for', async (t) => {
  const { app, log } = await serveLog(t);
  await log.record(5);
  // Only the record has them so far; the follower looks there once a second.
  const answer = await until('it is not taken for nonsense', async () => {
    const { body } = await app.call('GET', '/api/events?after=5');
    return body.gap === null && body;
  });
  t.match(answer, { events: [], next: 5, head: 5 });
});

t.test('lines hold one event each', async (t) => {
  const { app, log } = await serveWith(t, 3);
  for (const [path, headers] of [
    ['/api/events?limit=2', { accept: 'application/x-ndjson' }],
    ['/api/events?limit=2&format=ndjson', {}],
  ] as const) {
    const answer = await app.call('GET', path, { headers });
    t.equal(answer.headers.get('content-type'), 'application/x-ndjson');
    const lines = answer.body.trimEnd().split('\n');
    t.same(
      lines.map((line: string) => JSON.parse(line).id),
      log.entries.slice(0, 2).map((entry) => entry.id),
    );
    t.equal(answer.headers.get('x-log-next'), '2');
    t.equal(answer.headers.get('x-log-head'), '3');
    t.equal(answer.headers.get('x-log-oldest'), '1');
    t.equal(answer.headers.get('vary'), 'Accept');
    t.match(answer.headers.get('link'), /cursor=2/);
  }
  const none = await app.call('GET', '/api/events?after=3&format=ndjson');
  t.equal(none.body, '');
  const json = await app.call('GET', '/api/events?format=json', {
    headers: { accept: 'application/x-ndjson' },
  });
  t.equal(json.headers.get('content-type'), 'application/json');
});

t.test('a page that has not changed is not sent again', async (t) => {
  const { app, log } = await serveWith(t, 3);
  const first = await app.call('GET', '/api/events');
  const etag = first.headers.get('etag') ?? '';
  const again = { headers: { 'if-none-match': etag } };
  t.equal((await app.call('GET', '/api/events', again)).status, 304);
  await log.write(1);
  await until(
    'it changes',
    async () => (await app.call('GET', '/api/events', again)).status === 200,
  );
});
