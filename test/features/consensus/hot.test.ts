import { t } from 'tap';
import { exchange_counters } from '../../../src/kit/http/exchange.js';
import { startApp } from '../../help/app.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../../help/story.js';
import { until } from '../../help/until.js';

/** Hot reads: the short way says what the long way says, and is never behind for long. */

const HOT_READS = 'true';
const app = await startApp(t, { env: { HOT_READS } });
const human = await makeHuman(app);

const predict = async (id: string, confidence: number): Promise<void> => {
  const agent = await makeAgent(app, { human });
  const { status, body } = await app.call('POST', `/api/questions/${id}/predict`, {
    key: agent.key,
    body: { prediction: true, confidence, reasoning: makeReasoning() },
  });
  if (status !== 201) throw new Error(JSON.stringify(body));
};

const waysOf = async <T>(act: () => Promise<T>) => {
  const before = exchange_counters.fast;
  const result = await act();
  return { result, fast: exchange_counters.fast - before };
};

/** Asks until an answer comes the short way, and gives that one. */
const readHot = (path: string, headers: Readonly<Record<string, string>> = {}) =>
  until(`${path} to be hot`, async () => {
    await Promise.all(Array.from({ length: 20 }, () => app.call('GET', path)));
    const { result, fast } = await waysOf(() => app.call('GET', path, { headers }));
    return fast === 1 && result;
  });

const paths = (id: string) => [
  `/api/questions/${id}/consensus`,
  `/api/questions/${id}`,
  `/embed/${id}?theme=dark`,
  '/api/questions?limit=3',
];

/** Of every answer, and of one alone. */
const own_headers = ['x-request-id', 'ratelimit', 'date'];
const headersOf = (headers: Headers) =>
  [...headers].filter(([name]) => !own_headers.includes(name)).sort();

t.test('the short way and the long way send the same', async (t) => {
  const id = await makeOpenQuestion(app);
  await predict(id, 80);
  await until('the consensus', async () => {
    const { body } = await app.call('GET', `/api/questions/${id}`);
    return body.consensus.total_predictions === 1 && body.question.prediction_count === 1;
  });
  for (const path of paths(id)) {
    const cold = await app.call('GET', path);
    const hot = await readHot(path);
    t.equal(hot.status, 200);
    t.same(hot.body, cold.body, path);
    t.same(headersOf(hot.headers), headersOf(cold.headers), path);
    t.match(hot.headers.get('x-request-id'), /^[\w-]+$/);
    t.match(hot.headers.get('ratelimit'), /^"ip";r=\d+;t=\d+$/);
    const named = await readHot(path, { 'x-request-id': 'mine-1' });
    t.equal(named.headers.get('x-request-id'), 'mine-1');
    const etag = hot.headers.get('etag') ?? '';
    const known = await readHot(path, { 'if-none-match': etag });
    t.equal(known.status, 304, path);
    t.equal(known.body, '');
    t.equal(known.headers.get('etag'), etag);
  }
});

t.test('who has a credential goes the long way', async (t) => {
  const id = await makeOpenQuestion(app);
  const agent = await makeAgent(app, { human });
  const path = `/api/questions/${id}`;
  await readHot(path);
  const ways = await waysOf(() => app.call('GET', path, { key: agent.key }));
  t.equal(ways.fast, 0);
  t.equal(ways.result.headers.get('cache-control'), 'private, no-cache');
  const wrong = await waysOf(() => app.call('GET', path, { key: 'sk_wrong' }));
  t.same([wrong.fast, wrong.result.status], [0, 401]);
  const head = await waysOf(() => app.call('HEAD', path));
  t.same([head.fast, head.result.status, head.result.body], [0, 200, '']);
});

t.test('a hot answer follows predictions, edits and the status', async (t) => {
  const id = await makeOpenQuestion(app);
  await predict(id, 60);
  const [consensus = '', page = '', embed = '', list = ''] = paths(id);
  for (const path of [consensus, page, embed, list]) await readHot(path);
  await predict(id, 80);
  await until('the second', async () => (await readHot(consensus)).body.total_predictions === 2);
  await until('the page', async () => (await readHot(page)).body.predictions.length === 2);
  await until('the widget', async () => (await readHot(embed)).body.includes('70%'));
  await until('the list', async () =>
    (await readHot(list)).body.questions.some(
      (one: { id: string; prediction_count: number }) =>
        one.id === id && one.prediction_count === 2,
    ),
  );
  const edited = 'Will this be the text of the question after an edit?';
  await app.call('PATCH', `/api/admin/questions/${id}`, {
    admin: true,
    body: { description: edited },
  });
  t.equal((await app.call('GET', page)).body.question.description, edited, 'at once');
  await app.call('POST', `/api/admin/questions/${id}/close`, { admin: true });
  t.equal((await app.call('GET', page)).body.question.status, 'closed', 'at once');
  await until('the widget', async () => (await readHot(embed)).body.includes('Closed'));
});

t.test('hot reads are counted, and refused at their limit', async (t) => {
  const limit = 400;
  const limited = await startApp(t, { env: { HOT_READS, LIMIT_IP: String(limit) } });
  const id = await makeOpenQuestion(limited);
  const path = `/api/questions/${id}/consensus`;
  let used = 1;
  const before = exchange_counters.fast;
  for (let round = 0; round < 60; round += 1) {
    const answers = await Promise.all(Array.from({ length: 20 }, () => limited.call('GET', path)));
    used += answers.filter(({ status }) => status === 200).length;
    const others = answers.filter(({ status }) => status !== 200);
    t.ok(others.every(({ status, body }) => status === 429 && body.code === 'RATE_LIMITED'));
    t.ok(used <= limit, `${used} of ${limit}`);
  }
  t.ok(exchange_counters.fast > before, 'some went the short way');
  await until('the last call', async () => {
    if (used === limit) return true;
    const { status } = await limited.call('GET', path);
    if (status === 200) used += 1;
    return false;
  });
  t.equal((await limited.call('GET', path)).status, 429);
});
