import { serveLog } from '../features/log/log-server.js';
import { openSse } from '../help/sse-client.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { connect } from '../help/ws-client.js';

/** No client gets too much of the log, or starts at a wrong place, because a word was ignored. */

const { app, log } = await serveLog(t);
await log.write(5);

/** Values that clients send as the last id they have seen, although no event has that id. */
const unreadable = [
  'nonsense',
  '-1',
  '1.5',
  '0x10',
  '1e3',
  '12345678901234567890',
  '5,6',
  '5;retry',
  'evt_01',
  '01890a5d-ac96-7f3b-8bb0-0d5c3b2f6a01',
  'null',
  'NaN',
];

const stream = (query: string, headers: Record<string, string> = {}) =>
  fetch(`${app.url}/api/stream?${query}`, { headers, signal: AbortSignal.timeout(5_000) });

t.test('an id that cannot be read is refused, wherever it stands', async (t) => {
  for (const id of unreadable) {
    const text = encodeURIComponent(id);
    const answers = {
      'header.last-event-id': await stream('', { 'last-event-id': id }),
      'header.last-event-id beside after': await stream('after=1', { 'last-event-id': id }),
      'query.lastEventId': await stream(`lastEventId=${text}`),
      'query.after': await stream(`after=${text}`),
      'cursor of pages': await fetch(`${app.url}/api/events?cursor=${text}`),
      'after of pages': await fetch(`${app.url}/api/events?after=${text}`),
    };
    for (const [place, answer] of Object.entries(answers)) {
      t.equal(answer.status, 400, `${place}: ${id}`);
      const { error, fields } = (await answer.json()) as { error: string; fields?: unknown[] };
      t.ok(error.length > 10);
      if (/^\S+$/.test(place)) t.match(fields, [{ path: place }], id);
    }
  }
});

t.test('an id of later than the log is a gap, and one that is read is gone on from', async (t) => {
  const ahead = await openSse(t, `${app.url}/api/stream?lastEventId=999999`);
  t.match((await ahead.get('gap')).data, { reason: 'epoch', after: 999_999 });
  const query = await openSse(t, `${app.url}/api/stream?lastEventId=3`);
  await until('the rest has come', () => query.offsets().length === 2);
  t.same(query.offsets(), [4, 5]);
  const both = await openSse(t, `${app.url}/api/stream?lastEventId=1&after=0`, {
    'last-event-id': ' 4 ',
  });
  await until('the last one has come', () => both.offsets().length === 1);
  t.same(both.offsets(), [5], 'the header comes first');
  const empty = await openSse(t, `${app.url}/api/stream?lastEventId=&after=2`);
  await until('those after 2 have come', () => empty.offsets().length === 3);
});

/** Words that other services use for filters or for the position to continue from. */
const narrowing = [
  'question_id',
  'questionIds',
  'category',
  'pillar',
  'family',
  'model_families',
  'confidence',
  'event',
  'event_types',
  'topics',
  'filter',
  'tags',
  'only_mine',
  'where',
];
const placing = ['since', 'from', 'start', 'offset', 'last', 'last_event_id', 'resume_from', 'seq'];

t.test(
  'words that would narrow or place are refused by name where they are not known',
  async (t) => {
    for (const name of [...narrowing, ...placing]) {
      for (const path of ['/api/stream', '/api/events']) {
        const answer = await fetch(`${app.url}${path}?${name}=x`, {
          signal: AbortSignal.timeout(5_000),
        });
        const body = (await answer.json()) as { fields: unknown };
        t.equal(answer.status, 400, `${path} ${name}`);
        t.match(body.fields, [{ path: `query.${name}`, message: /is not known here/ }]);
        const posted = await app.call('POST', `${path}/query`, { body: { [name]: 'x' } });
        t.match(posted, { status: 400, body: { fields: [{ path: `body.${name}` }] } }, name);
      }
    }
    const { status } = await app.call('GET', '/api/events?cache_buster=1&utm_source=x');
    t.equal(status, 200, 'others are ignored, as everywhere');
    t.equal((await app.call('GET', '/api/events?cursor=2')).status, 200);
  },
);

t.test('the same of a subscribe frame', async (t) => {
  const client = await connect(t, app.port);
  // These names are members of a subscribe frame.
  const known = ['topics', 'filter', 'last'];
  for (const name of [...narrowing, ...placing].filter((one) => !known.includes(one))) {
    const answer = await client.ask({ op: 'subscribe', topics: ['all'], [name]: 'x' });
    t.match(answer, { op: 'error', code: 'INVALID_FILTER', fields: [{ path: name }] }, name);
  }
  t.match(await client.ask({ op: 'subscribe', topics: ['all'], note: 'x' }), { op: 'subscribed' });
});
