import type { Test } from 'tap';
import type { Route } from '../../src/http/route.js';
import { api_routes } from '../../src/routes.js';
import { type Answered, no_limits, startApp } from '../help/app.js';
import { openCalls } from '../help/socket-calls.js';
import { makeAgent, makeOpenQuestion } from '../help/story.js';
import { t } from '../help/tap.js';
import { prepareExamples } from './example-calls.js';

/** Caching: an ETag, a cache rule, and a 304 that counts against no limit, over HTTP and socket. */

const app = await startApp(t, {
  env: { ...no_limits, TRUSTED_PROXIES: '127.0.0.1', WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' },
});
const prepare = await prepareExamples(app);
const routes = (api_routes as readonly Route[]).filter(({ method }) => method === 'GET');
const cacheable = routes.filter((route) => route.cacheable);

const targets = new Map<string, string>();
for (const route of cacheable) targets.set(route.id, (await prepare(route)).target);

let addresses = 0;
/** A caller whose calls are counted separately. */
const newcomer = () => {
  addresses += 1;
  return { 'x-forwarded-for': `198.51.100.${addresses}` };
};

const leftOf = ({ headers }: Answered): string =>
  /"ip";r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1] ?? '';

/** Number of calls that the limit counted. A cached response has no `ratelimit` header. */
const costOf = (one: Answered, first: Answered): number =>
  leftOf(one) === '' ? 0 : Number(leftOf(first)) - Number(leftOf(one));

t.test('public answers have a tag, and private ones have none', async (t) => {
  const ids = cacheable.map(({ id }) => id);
  for (const id of [
    'getQuestion',
    'listQuestions',
    'getConsensus',
    'leaderboard',
    'debaterLeaderboard',
    'getTaxonomy',
    'openapi',
    'asyncapi',
    'arazzo',
    'llms',
    'newsFeed',
    'questionFeed',
    'agentProfile',
    'listPredictions',
    'listWebhookEvents',
  ]) {
    t.ok(ids.includes(id), id);
  }
  const others = routes.filter((route) => !route.cacheable && route.auth !== 'public');
  t.ok(others.length > 10);
  for (const route of others.filter(({ auth }) => auth === 'agent')) {
    const { target, send } = await prepare(route);
    const { status, headers } = await app.call('GET', target, send);
    t.equal(status, 200, route.id);
    t.equal(headers.get('cache-control'), 'no-store', route.id);
    t.equal(headers.get('etag'), null, route.id);
  }
});

t.test('each is 304 to a caller that has it, at no cost, and 200 to all others', async (t) => {
  for (const route of cacheable) {
    const target = targets.get(route.id) ?? '';
    const who = newcomer();
    const first = await app.call('GET', target, { headers: who });
    const etag = first.headers.get('etag') ?? '';
    t.equal(first.status, 200, route.id);
    t.match(etag, /^(?:W\/)?"[^"]+"$/, route.id);
    t.match(first.headers.get('cache-control'), /^public, (?:no-cache|max-age=\d+)/, route.id);
    for (const [method, known] of [
      ['GET', etag],
      ['HEAD', etag],
      ['GET', `"other", ${etag.replace('W/', '')}`],
    ] as const) {
      const again = await app.call(method, target, { headers: { ...who, 'if-none-match': known } });
      t.equal(again.status, 304, `${route.id} ${method} ${known}`);
      t.equal(again.body, '');
      t.equal(again.headers.get('etag'), etag);
      t.equal(again.headers.get('cache-control'), first.headers.get('cache-control'));
      t.equal(costOf(again, first), 0, `${route.id} costs nothing`);
    }
    const headers = { ...who, 'if-none-match': '"other"' };
    const other = await app.call('GET', target, { headers });
    t.equal(other.status, 200, route.id);
    const cost = leftOf(other) === '' ? 0 : 1;
    t.equal(costOf(other, first), cost, `${route.id} costs one, or nothing from the cache`);
  }
});

t.test('over the socket it is the same', async (t) => {
  const socket = await openCalls(t, app.port, newcomer());
  for (const route of cacheable) {
    const target = targets.get(route.id) ?? '';
    const there = await socket.call('HEAD', target);
    t.equal(there.headers.get('etag'), (await app.call('HEAD', target)).headers.get('etag'));
    const headers = { 'if-none-match': there.headers.get('etag') ?? '' };
    const here = await socket.call('GET', target, { headers });
    t.equal(here.status, 304, route.id);
    for (const name of ['etag', 'cache-control']) {
      t.equal(here.headers.get(name), there.headers.get(name), `${route.id} ${name}`);
    }
    t.equal(Number(leftOf(here)), Number(leftOf(there)), route.id);
  }
});

t.test('a changed answer has another tag, and is private for a caller with a key', async (t) => {
  const route = routes.find(({ id }) => id === 'getQuestion') as Route;
  const { params, path } = await prepare(route);
  const { key } = await makeAgent(app);
  const mine = await app.call('GET', path, { key });
  t.equal(mine.headers.get('cache-control'), 'private, no-cache');
  const etag = mine.headers.get('etag') ?? '';
  const body = { description: 'By the date on its cover.' };
  await app.call('PATCH', `/api/admin/questions/${params['id']}`, { admin: true, body });
  const headers = { 'if-none-match': etag };
  const again = await app.call('GET', path, { headers });
  t.equal(again.status, 200);
  t.not(again.headers.get('etag'), etag);
});

const count = (answers: readonly Answered[], status: number): number =>
  answers.filter((one) => one.status === status).length;

/** Makes a hundred concurrent calls, a tenth of which need a body, and then exceeds the limit. */
const payInParallel = async (t: Test, limit: number) => {
  const small = await startApp(t, { roles: ['api'], env: { LIMIT_IP: String(limit) } });
  const started_ms = performance.now();
  const etag = (await small.call('GET', '/api/taxonomy')).headers.get('etag') ?? '';
  const ask = (tag: string) =>
    small.call('GET', '/api/taxonomy', { headers: { 'if-none-match': tag } });
  const known = await Promise.all(
    Array.from({ length: 100 }, (_, n) => ask(n % 10 === 0 ? `"n${n}"` : etag)),
  );
  const looked = await small.call('GET', '/api/limits');
  const left = looked.body.limits.find(({ name }: { name: string }) => name === 'ip').left;
  // On a slow machine, part of the limit has become available again by now.
  const expected = limit - count(known, 200) - 2;
  const isAbout = (calls: number): boolean => {
    const again = Math.ceil(((performance.now() - started_ms) / 60_000) * limit);
    return calls >= expected && calls <= expected + again;
  };
  const is_exact = isAbout(left);
  const guesses = await Promise.all(Array.from({ length: limit }, (_, n) => ask(`"guess-${n}"`)));
  const are_exact = isAbout(count(guesses, 200));
  const used_up = [(await ask(etag)).status, (await ask('*')).status];
  return { known, left, expected, is_exact: is_exact && are_exact, guesses, used_up };
};

t.test('clients in parallel pay for bodies and for nothing else; work is never free', async (t) => {
  let paid = await payInParallel(t, 40);
  // If Redis takes over 300 ms on a busy machine, the process counts alone. Then try again.
  for (let more = 0; more < 3 && !paid.is_exact; more += 1) paid = await payInParallel(t, 40);
  const { known, left, expected, is_exact, guesses, used_up } = paid;
  t.equal(count(known, 304) + count(known, 200) + count(known, 429), 100);
  t.ok(is_exact, `${left} were left, ${expected} expected; ${count(guesses, 200)} got a body`);
  t.equal(count(guesses, 304), 0);
  t.same(used_up, [429, 429], 'a limit that is used up lets nobody work');
});

t.test('a cached response and its 304 cost no limit', async (t) => {
  const limit = 50;
  const small = await startApp(t, { env: { LIMIT_IP: String(limit) } });
  const id = await makeOpenQuestion(small);
  const path = `/api/questions/${id}/consensus`;
  const etag = (await small.call('GET', path)).headers.get('etag') ?? '';
  for (let round = 0; round < 5; round += 1) {
    await small.call('GET', path);
    const tags = Array.from({ length: 40 }, (_, n) => (n % 8 === 0 ? '"other"' : etag));
    const answers = await Promise.all(
      tags.map((tag) => small.call('GET', path, { headers: { 'if-none-match': tag } })),
    );
    t.same(
      answers.map(({ status }) => status),
      tags.map((tag) => (tag === etag ? 304 : 200)),
    );
  }
});
