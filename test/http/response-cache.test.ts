import type { Request } from '../../src/http/call.js';
import { createResponseCache } from '../../src/http/response-cache.js';
import { type Reply, reply } from '../../src/http/route.js';
import { startApp } from '../help/app.js';
import { predict as predictAs } from '../help/settling.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../help/story.js';
import { t } from '../help/tap.js';
import { makeGate, startToyApp } from '../help/toy-app.js';
import { until } from '../help/until.js';

/** A cached response equals a fresh one, is used only for anonymous callers, and is never stale. */

const app = await startApp(t, { roles: ['api', 'relay'] });
const human = await makeHuman(app);

const predict = async (id: string, confidence: number) =>
  predictAs(app, await makeAgent(app, { human }), id, { prediction: true, confidence });

/** A response is from the cache if no limit counted it. */
const isCached = ({ headers }: { headers: Headers }): boolean => headers.get('ratelimit') === null;

const readCached = (path: string, headers: Readonly<Record<string, string>> = {}) =>
  until(`${path} from the cache`, async () => {
    const answered = await app.call('GET', path, { headers });
    return isCached(answered) ? answered : undefined;
  });

const paths = (id: string): readonly string[] => [
  `/api/questions/${id}/consensus`,
  `/api/questions/${id}`,
  `/embed/${id}?theme=dark`,
  '/api/questions?limit=3',
];

const own_headers = ['x-request-id', 'ratelimit', 'ratelimit-policy', 'date'];
const headersOf = (headers: Headers) =>
  [...headers].filter(([name]) => !own_headers.includes(name)).sort();

t.test('a cached response is the fresh one, but for what is about the call', async (t) => {
  const id = await makeOpenQuestion(app);
  await predict(id, 80);
  await until('the consensus', async () => {
    const { body } = await app.call('GET', `/api/questions/${id}`);
    return body.consensus.total_predictions === 1 && body.question.prediction_count === 1;
  });
  for (const path of paths(id)) {
    const fresh = await app.call('GET', path, { headers: { cookie: 'a=b' } });
    t.notOk(isCached(fresh), 'a request with a cookie is not answered from the cache');
    const cached = await readCached(path);
    t.equal(cached.status, 200);
    t.same(cached.body, fresh.body, path);
    t.same(headersOf(cached.headers), headersOf(fresh.headers), path);
    t.match(cached.headers.get('x-request-id'), /^[\w-]+$/);
    const named = await readCached(path, { 'x-request-id': 'mine-1' });
    t.equal(named.headers.get('x-request-id'), 'mine-1');
    const etag = cached.headers.get('etag') ?? '';
    const known = await readCached(path, { 'if-none-match': etag });
    t.match(known, { status: 304, body: '' }, path);
    t.equal(known.headers.get('etag'), etag);
  }
});

t.test('callers with a credential, HEAD and unknown query members are not cached', async (t) => {
  const id = await makeOpenQuestion(app);
  const agent = await makeAgent(app, { human });
  const path = `/api/questions/${id}`;
  await readCached(path);
  const own = await app.call('GET', path, { key: agent.key });
  t.notOk(isCached(own));
  t.equal(own.headers.get('cache-control'), 'private, no-cache');
  t.equal((await app.call('GET', path, { key: 'sk_wrong' })).status, 401);
  const admin = await app.call('GET', path, { admin: true });
  t.notOk(isCached(admin));
  const head = await app.call('HEAD', path);
  t.match(head, { status: 200, body: '' });
  t.notOk(isCached(head));
  for (const name of ['cachebuster', 'constructor', 'toString']) {
    for (let n = 0; n < 3; n += 1) t.notOk(isCached(await app.call('GET', `${path}?${name}=1`)));
  }
});

t.test('what is negotiated is cached apart', async (t) => {
  const id = await makeOpenQuestion(app);
  const path = `/api/questions/${id}`;
  await readCached(path);
  const page = await app.call('GET', path, { headers: { accept: 'text/html' } });
  t.notOk(isCached(page), 'another type is asked for');
});

t.test('a cached response follows predictions, edits and the status', async (t) => {
  const id = await makeOpenQuestion(app);
  await predict(id, 60);
  const [consensus = '', page = '', embed = '', list = ''] = paths(id);
  for (const path of [consensus, page, embed, list]) await readCached(path);
  await predict(id, 80);
  await until('the second', async () => (await readCached(consensus)).body.total_predictions === 2);
  await until('the page', async () => (await readCached(page)).body.predictions.length === 2);
  await until('the widget', async () => (await readCached(embed)).body.includes('70%'));
  await until('the list', async () =>
    (await readCached(list)).body.questions.some(
      (one: { id: string; prediction_count: number }) =>
        one.id === id && one.prediction_count === 2,
    ),
  );
  const description = 'A description that an admin has just changed.';
  await app.call('PATCH', `/api/admin/questions/${id}`, { admin: true, body: { description } });
  t.equal((await app.call('GET', page)).body.question.description, description, 'at once');
  await app.call('POST', `/api/admin/questions/${id}/close`, { admin: true });
  t.equal((await app.call('GET', page)).body.question.status, 'closed', 'at once');
  await until('the widget', async () => (await readCached(embed)).body.includes('Closed'));
});

t.test('without an event a cached response is a second old at most', async (t) => {
  const id = await makeOpenQuestion(app);
  const path = `/api/questions/${id}`;
  await readCached(path);
  await app.sql`update questions set description = 'changed by hand' where id = ${id}`;
  const began_ms = performance.now();
  await until('the change', async () => {
    const { body } = await app.call('GET', path);
    return body.question.description === 'changed by hand';
  });
  t.ok(performance.now() - began_ms < 4_000);
});

t.test(
  'while an old response is renewed others get it; one that was invalidated is waited for',
  async (t) => {
    const toy = await startToyApp(t);
    const read = async () => (await toy.call('GET', '/api/slow')).body.made as number;
    toy.deps.gate.open();
    t.equal(await read(), 1);
    toy.deps.gate = makeGate();
    const asked: Promise<number>[] = [];
    await until('the response is old, and renewed by one', () => {
      asked.push(read());
      return toy.deps.waiting === 1;
    });
    t.equal(await read(), 1, 'without a wait');
    toy.cache.invalidate('slow');
    const late = read();
    await until('it is made anew', () => toy.deps.waiting === 2);
    toy.deps.gate.open();
    t.equal(await late, 3);
    t.equal(Math.max(...(await Promise.all(asked))), 2);
    t.equal(await read(), 3, 'what was made before the change is not kept');
  },
);

t.test(
  'an old page is there while it is renewed, but for those that ask for a fresh one',
  async (t) => {
    const toy = await startToyApp(t);
    const read = async (headers: Record<string, string> = {}) =>
      (await toy.call('GET', '/slow', { headers })).body as string;
    toy.deps.gate.open();
    t.equal(await read(), 'made 1');
    const made_ms = performance.now();
    toy.deps.gate = makeGate();
    await until('it is renewed', async () => {
      toy.cache.invalidate('slow');
      t.equal(await read(), 'made 1', 'without a wait');
      return toy.deps.waiting === 1;
    });
    t.ok(performance.now() - made_ms > 900, 'a page that always changes is made once a second');
    const [fresh, own] = [read({ 'cache-control': 'no-cache' }), read({ cookie: 'session=x' })];
    t.equal(await read(), 'made 1');
    t.equal(toy.deps.made, 2, 'once');
    toy.deps.gate.open();
    t.same(await Promise.all([fresh, own]), ['made 2', 'made 2']);
    t.equal(await read(), 'made 2');

    toy.cache.invalidate('slow');
    toy.deps.gate = makeGate();
    const third = read({ 'cache-control': 'no-cache' });
    await until('it is made', () => toy.deps.waiting > 0);
    toy.cache.invalidate('slow');
    toy.deps.gate.open();
    t.equal(await third, 'made 3', 'at once after a change');
    t.equal(await read(), 'made 3', 'another change does not bring the older page back');
    t.equal(await read({ 'cache-control': 'no-cache' }), 'made 4');
  },
);

t.test('JSON at the address of a page is JSON while it is renewed, too', async (t) => {
  const cache = createResponseCache();
  const request = { path: '/page', query: '', header: () => '' } as unknown as Request;
  const cached = {
    rule: { tag: () => 'page' },
    params: {},
    query: undefined,
    is_page: true,
    fixed_headers: [],
  };
  await cache.share(request, cached, () => reply(200, { made: 1 }));
  cache.invalidate('page');
  const old = await cache.share(request, cached, () => reply(200, { made: 2 }));
  t.match(old, { status: 200, content_type: 'application/json' });
  t.equal(String((old as Reply).body), '{"made":1}');
});

t.test('many who ask at the same time share one response', async (t) => {
  const id = await makeOpenQuestion(app);
  const path = `/api/questions/${id}`;
  const answers = await Promise.all(Array.from({ length: 50 }, () => app.call('GET', path)));
  t.ok(answers.every(({ status }) => status === 200));
  t.equal(new Set(answers.map(({ headers }) => headers.get('etag'))).size, 1);
});

t.test('refusals are not cached', async (t) => {
  const path = '/api/questions/01890000-0000-7000-8000-000000000000';
  for (let n = 0; n < 3; n += 1) {
    const answered = await app.call('GET', path);
    t.equal(answered.status, 404);
    t.notOk(isCached(answered));
  }
});
