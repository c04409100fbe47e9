import type { Route } from '../../src/http/route.js';
import { makeId } from '../../src/kit/ids.js';
import { api_routes } from '../../src/routes.js';
import { no_limits, startApp } from '../help/app.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

/** Reads with many ids: GET and its POST form give the same answer. */

const app = await startApp(t, { roles: ['api', 'relay', 'timer'], env: no_limits });
const known = await Promise.all([1, 2, 3].map(() => makeOpenQuestion(app)));
const agent = await makeAgent(app, { human: await makeHuman(app) });
const ids = [...known, agent.id, ...Array.from({ length: 96 }, () => makeId())];
const topic = ['all', ...ids.slice(0, 49).map((id) => `question:${id}`)];

await until('the agent is in the directory', async () => {
  const { body } = await app.call('GET', '/api/agents');
  return body.total === 1;
});
await until('the log has the questions', async () => {
  const { body } = await app.call('GET', '/api/events?events=question.created');
  return body.events.length === known.length;
});

/** Queries with the maximum number of ids, keyed by the path of the GET. */
const long_queries: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  '/api/questions': { ids, include: ['consensus'], limit: 2 },
  '/api/admin/questions': { ids, status: 'all', limit: 1_000 },
  '/api/agents': { ids },
  '/api/consensus': { ids },
  '/api/events': { after: 0, topic, question_ids: ids, limit: 2 },
  '/api/stream': { after: 0, topic, question_ids: ids },
};

const toUrl = (path: string, query: Readonly<Record<string, unknown>>): string =>
  `${path}?${new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]))}`;

t.test('every read with a list of ids has a POST form', async (t) => {
  const lists = ['ids', 'question_ids', 'topic'];
  const bulk = (api_routes as readonly Route[]).filter(
    ({ method, query }) =>
      method === 'GET' && lists.some((name) => name in (query?.properties ?? {})),
  );
  t.strictSame(bulk.map(({ path }) => path).sort(), Object.keys(long_queries).sort());
  const posts = (api_routes as readonly Route[]).filter(
    ({ stores_answer }) => stores_answer === 'never',
  );
  t.strictSame(
    posts.map(({ path }) => path).sort(),
    bulk.map(({ path }) => `${path}/query`).sort(),
  );
});

t.test('with 100 ids both give the same answer', async (t) => {
  for (const [path, query] of Object.entries(long_queries)) {
    if (path === '/api/stream') continue;
    const url = toUrl(path, query);
    t.ok(url.length > 3_500, `${path} has a URL of ${url.length} characters`);
    const read = await app.call('GET', url, { admin: true });
    const posted = await app.call('POST', `${path}/query`, { admin: true, body: query });
    t.equal(read.status, 200, path);
    t.equal(posted.status, 200, path);
    t.strictSame(posted.body, read.body, path);
    const text = JSON.stringify(read.body);
    t.ok(
      [agent.id, ...known].some((id) => text.includes(id)),
      'it holds something',
    );
    t.equal(posted.headers.get('cache-control'), 'no-store');
    t.equal(posted.headers.get('link'), null, 'a link would be a long URL');
  }
});

t.test('pages go on by the cursor, and defaults are those of the GET', async (t) => {
  const seen: string[] = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const body = { ids, limit: 1, ...(cursor === undefined ? {} : { cursor }) };
    const page = (await app.call('POST', '/api/questions/query', { body })).body;
    seen.push(...page.questions.map(({ id }: { id: string }) => id));
    cursor = page.next_cursor;
  }
  t.strictSame(seen.sort(), [...known].sort());
  const [read, posted] = await Promise.all([
    app.call('GET', '/api/events'),
    app.call('POST', '/api/events/query', { body: {} }),
  ]);
  t.strictSame(posted.body, read.body);
});

t.test('a stream begins with the topics of the body', async (t) => {
  const response = await fetch(`${app.url}/api/stream/query`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(long_queries['/api/stream']),
  });
  t.equal(response.headers.get('content-type'), 'text/event-stream');
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  let text = '';
  while (!text.includes('"question.created"')) {
    const { value, done } = await reader.read();
    if (done) break;
    text += Buffer.from(value).toString();
  }
  await reader.cancel();
  t.match(text, /event: welcome\ndata: \{"topics":\["all","question:/);
  t.match(text, /"event":"question.created"/);
});

t.test('a refusal names the member of the body, and a key changes nothing', async (t) => {
  const path = '/api/events/query';
  const refused = await app.call('POST', path, { body: { events: ['no.such'] } });
  t.equal(refused.status, 400);
  t.match(refused.body.error, /^body\.events: /);
  t.strictSame(refused.body.fields[0].path, 'body.events');
  const many = [...ids, makeId()];
  const over = await app.call('POST', '/api/consensus/query', { body: { ids: many } });
  t.match(over.body, { status: 400, code: 'INVALID_REQUEST', fields: [{ path: 'body.ids' }] });
  const headers = { 'idempotency-key': 'the-same-twice' };
  for (const limit of [1, 2]) {
    const body = { ids, limit };
    const answer = await app.call('POST', '/api/questions/query', { body, headers });
    t.equal(answer.body.questions.length, limit);
    t.equal(answer.headers.get('idempotency-replayed'), null);
  }
});
