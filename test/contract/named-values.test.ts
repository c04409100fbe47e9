import type { Route } from '../../src/http/route.js';
import { api_routes } from '../../src/routes.js';
import { startApp } from '../help/app.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../help/story.js';
import { t } from '../help/tap.js';
import { connect } from '../help/ws-client.js';

/**
 * Refusals must name the cause. If a category, subcategory, tag, model family or topic is unknown,
 * the refusal lists the known values or says where to find them. The routes come from the registry,
 * so that a new route cannot be forgotten.
 */

interface Case {
  readonly good: string;
  readonly bad: string;
  /** The sentence of the refusal. */
  readonly says: RegExp;
}

const category: Case = { good: 'technology', bad: 'sports', says: /technology, industry, society/ };
const family: Case = { good: 'claude', bad: 'abacus', says: /must be one of gpt, claude/ };
const cases: Readonly<Record<string, readonly Case[]>> = {
  category: [category],
  categories: [category, { ...category, good: 'society,technology', bad: 'society,sports' }],
  subcategory: [{ good: 'data', bad: 'football', says: /GET \/api\/taxonomy/ }],
  tag: [{ good: 'LLM', bad: 'nothing', says: /GET \/api\/taxonomy/ }],
  family: [family],
  model_family: [family],
  topic: [
    { good: 'category:technology', bad: 'category:sports', says: category.says },
    { good: 'subcategory:data', bad: 'subcategory:football', says: /GET \/api\/taxonomy/ },
    { good: 'all', bad: 'everything', says: /all, question:\{id\}, category:\{slug\}/ },
    { good: 'all', bad: 'questions', says: /all, question:\{id\}, category:\{slug\}/ },
    { good: 'all', bad: 'question:1', says: /question:{id} with a UUID/ },
  ],
};
const is_about_names = /categor|tag|famil|topic/;

const app = await startApp(t, { env: { LIMIT_EXPORTS: '1000000' } });
const question_id = await makeOpenQuestion(app, { category: 'technology', subcategory: 'data' });

const reading = (api_routes as readonly Route[]).flatMap((route) =>
  Object.keys(route.query?.properties ?? {})
    .filter((name) => is_about_names.test(name))
    .map((name) => ({ route, name })),
);

t.test('unknown names in a query are refused on every route that takes them', async (t) => {
  t.ok(reading.length >= 30, `${reading.length} parameters`);
  for (const { route, name } of reading) {
    const known = cases[name];
    if (known === undefined) {
      t.fail(`${route.path}?${name}: say here what it takes`);
      continue;
    }
    const path = route.path.replace('{id}', question_id);
    const ask = (value: string) =>
      app.call(route.method, `${path}?${name}=${value}`, { admin: route.auth === 'admin' });
    for (const { good, bad, says } of known) {
      const where = `${path}?${name}=${bad}`;
      const refused = await ask(bad);
      t.equal(refused.status, 400, where);
      t.match(refused.body.error, says, where);
      t.ok(refused.body.error.includes(bad.split(/[:,]/).at(-1)) || says === family.says, where);
      const answer = await ask(good);
      // A 503 is no refusal: the thread of an export may start too late on a busy machine.
      t.ok([200, 503].includes(answer.status), `${path}?${name}=${good}: ${answer.status}`);
    }
  }
});

t.test('a subcategory of another category is refused too', async (t) => {
  for (const path of ['/api/questions', '/api/export/predictions']) {
    const refused = await app.call('GET', `${path}?category=society&subcategory=data`);
    t.match(refused, { status: 400, body: { code: 'INVALID_SUBCATEGORY' } });
    t.match(refused.body.error, /not a subcategory of society. Use one of jobs_future_work/);
  }
});

t.test('on a socket, in topics and in filters', async (t) => {
  const socket = await connect(t, app.port);
  let id = 0;
  const ask = async (frame: object) => {
    id += 1;
    socket.send({ op: 'subscribe', id, ...frame });
    return socket.answer(id);
  };
  for (const { good, bad, says } of cases['topic'] ?? []) {
    const refused = await ask({ topics: [bad] });
    t.match(refused, { op: 'error', code: 'INVALID_TOPIC', error: says }, bad);
    t.match(await ask({ topics: [good] }), { op: 'subscribed' }, good);
  }
  const board = await ask({ topics: ['leaderboard:beauty'] });
  t.match(board, { op: 'error', code: 'INVALID_TOPIC', error: /points, accuracy, brier/ });
  for (const [filter, says] of [
    [{ categories: ['sports'] }, category.says],
    [{ model_family: 'abacus' }, family.says],
    [{ model_family: ['abacus'] }, family.says],
    [{ events: ['question.asked'] }, /question\.created, question\.closed/],
  ] as const) {
    const refused = await ask({ topics: ['all'], filter });
    t.match(refused, { op: 'error', code: 'INVALID_FILTER', error: says });
  }
});

t.test('in the bodies of webhooks, suggestions and tags', async (t) => {
  const { key } = await makeAgent(app, { human: await makeHuman(app) });
  const hook = { url: 'https://hooks.example.com/', events: ['question.created'] };
  const question = { question: 'Will this be refused?', closes_at: '2099-01-01T00:00:00Z' };
  const placed = { ...question, category: 'technology', subcategory: 'data' };
  const bad: readonly (readonly [string, object, RegExp])[] = [
    ['/api/webhooks', { ...hook, filter: { categories: ['sports'] } }, category.says],
    ['/api/webhooks', { ...hook, filter: { model_family: ['abacus'] } }, family.says],
    ['/api/webhooks', { ...hook, events: ['question.asked'] }, /question\.created/],
    ['/api/questions/suggest', { ...question, category: 'sports' }, category.says],
    ['/api/questions/suggest', { ...placed, subcategory: 'football' }, /Use one of research_/],
    ['/api/questions/suggest', { ...placed, tags: ['#Nothing'] }, /GET \/api\/taxonomy/],
  ];
  for (const [path, body, says] of bad) {
    const refused = await app.call('POST', path, { key, body });
    t.equal(refused.status, 400, `${path} ${JSON.stringify(body)}`);
    t.match(refused.body.error, says);
  }
  const body = { subcategory: 'football', tags: ['#Goals'] };
  const tags = await app.call('POST', '/api/admin/taxonomy/tags', { admin: true, body });
  t.match(tags, {
    status: 400,
    body: { code: 'INVALID_SUBCATEGORY', error: /GET \/api\/taxonomy/ },
  });
});

t.test('a cursor that its list never gave out is named as what is wrong', async (t) => {
  const human = await makeHuman(app);
  const { key } = await makeAgent(app, { human });
  const lists = (api_routes as readonly Route[]).filter(
    ({ path, query }) => query?.properties['cursor'] !== undefined && !path.includes('{pid}'),
  );
  t.ok(lists.length >= 15, `${lists.length} lists`);
  for (const route of lists) {
    const path = `${route.path.replace('{id}', question_id).replace('{name}', 'news')}?cursor=made-up`;
    const as = { public: {}, admin: { admin: true }, human: { token: human.token } };
    const refused = await app.call('GET', path, as[route.auth as 'public'] ?? { key });
    // The paths contain a question's id, so their webhook or agent does not exist.
    if (refused.status === 404 && /^\/api\/(?:webhooks|agents)\//.test(path)) continue;
    t.match(refused, { status: 400, body: { fields: [{ path: 'query.cursor' }] } }, path);
    t.match(refused.body.error, /^The cursor does not belong to this list. Send next_cursor/, path);
  }
});

t.test('a time that has passed is named as what is wrong', async (t) => {
  const place = { category: 'technology', subcategory: 'data' };
  const question = { question: 'Will this be refused?', ...place };
  const body = { ...question, closes_at: '2020-01-01T00:00:00Z' };
  const refused = await app.call('POST', '/api/admin/questions', { admin: true, body });
  t.match(refused, { status: 400, body: { code: 'INVALID_DATES' } });
  t.match(
    refused.body.error,
    /^closes_at is in the past \(2020-01-01T00:00:00\.000Z\)\. It must be later than/,
  );
  const early = {
    ...body,
    closes_at: '2099-01-02T00:00:00Z',
    resolution_date: '2099-01-01T00:00:00Z',
  };
  const second = await app.call('POST', '/api/admin/questions', { admin: true, body: early });
  t.match(second.body.error, /^resolution_date must not be before closes_at \(2099-01-02/);
});

t.test('the websocket without an upgrade says that it is one', async (t) => {
  const agent = await makeAgent(app);
  for (const query of ['', `?token=${agent.key}`]) {
    const plain = await app.call('GET', `/ws${query}`);
    t.match(plain, { status: 426, body: { code: 'UPGRADE_REQUIRED', error: /websocket/ } });
    t.equal(plain.headers.get('upgrade'), 'websocket');
    t.ok(plain.headers.get('x-request-id'));
  }
  const posted = await app.call('POST', '/ws', { body: {} });
  t.match(posted, { status: 405 });
  t.match(posted.headers.get('allow'), /GET/);
  const socket = await connect(t, app.port);
  socket.send({ op: 'ping', id: 1 });
  t.match(await socket.answer(1), { op: 'pong' }, 'an upgrade is one as before');
});
