import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { makeLinkCheck } from '../../../src/features/predictions/link-check.js';
import { startApp, type TestApp } from '../../help/app.js';
import { startNameServer } from '../../help/name-server.js';
import { pluck } from '../../help/pluck.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';

/** Sources that must be reachable, over HTTP and with the test's own name server. */

const asked: string[] = [];
const held: ServerResponse[] = [];
const answers: Readonly<Record<string, (response: ServerResponse, method: string) => void>> = {
  gone: (response) => response.writeHead(404).end(),
  broken: (response) => response.writeHead(500).end(),
  login: (response) => response.writeHead(403).end(),
  no_head: (response, method) => response.writeHead(method === 'HEAD' ? 405 : 206).end(),
  moved: (response) => response.writeHead(301, { location: '/good/moved' }).end(),
  inside: (response) => response.writeHead(302, { location: 'http://10.0.0.1/' }).end(),
  loop: (response) => response.writeHead(302, { location: '/loop/again' }).end(),
  silent: (response) => void held.push(response),
};
const server = createServer((request, response) => {
  const path = request.url ?? '';
  asked.push(`${request.method} ${path}`);
  const answer = answers[path.split('/')[1] ?? ''];
  if (answer === undefined) response.writeHead(200).end();
  else answer(response, request.method ?? '');
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
t.teardown(() => {
  server.close();
  server.closeAllConnections();
});
const { port } = server.address() as AddressInfo;
const names = await startNameServer(t, {
  'pages.acme.org': { a: ['127.0.0.1'] },
  'inner.acme.org': { a: ['10.0.0.1'] },
});
const page = (path: string): string => `http://pages.acme.org:${port}/${path}`;
const reach_env = {
  WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
  WEBHOOK_DNS_SERVERS: names.server,
  CITATIONS_REACHABLE: 'true',
};

let made = 0;
const unique = (path: string): string => {
  made += 1;
  return `${path}/${made}`;
};
const citing = (...sources: readonly string[]): string => {
  const text = makeReasoning();
  const own = text.match(/https:\/\/\S*[^\s.]/g) ?? [];
  return own.reduce((changed, url, i) => changed.replace(url, sources[i] ?? url), text);
};

const open = async (app: TestApp) => {
  const human = await makeHuman(app);
  const once = async (reasoning: string, more: Readonly<Record<string, unknown>>) => {
    const [question_id, agent] = [await makeOpenQuestion(app), await makeAgent(app, { human })];
    const body = { prediction: true, confidence: 70, reasoning, ...more };
    return app.call('POST', `/api/questions/${question_id}/predict`, { key: agent.key, body });
  };
  // If the machine stalls for seconds, reachable pages answer too late. Then this tries again.
  const place = (make: () => string, more = {}) =>
    until('an answer in time', async () => {
      const answer = await once(make(), more);
      return /too long|in time/.test(JSON.stringify(answer.body)) ? null : answer;
    });
  return { human, place };
};

const app = await startApp(t, { roles: ['api'], env: reach_env });
const { place, human } = await open(app);

t.test('pages that cannot be read are no sources, and two that can are needed', async (t) => {
  const good = () => page(unique('good'));
  for (const path of ['good', 'login', 'no_head', 'moved']) {
    const { status, body } = await place(() => citing(good(), page(unique(path))));
    t.equal(status, 201, `${path}: ${JSON.stringify(body.fields)}`);
  }
  const bad: readonly (readonly [string, RegExp])[] = [
    [page(unique('gone')), /answered 404/],
    [page(unique('broken')), /answered 500/],
    [page(unique('inside')), /IP address/],
    [page(unique('loop')), /redirects too many times/],
    ['http://absent.acme.org/one', /does not resolve/],
    ['https://inner.acme.org/one', /may not be called/],
    [`http://pages.acme.org:81/${unique('port')}`, /port must be/],
  ];
  for (const [url, why] of bad) {
    const { status, body } = await place(() => citing(good(), url));
    t.equal(status, 400, url);
    t.match(body, { code: 'CITATIONS_INVALID', fields: [{ path: 'body.reasoning' }] }, url);
    t.match(body.error, why);
    t.match(body.error, url.slice(0, 40), 'the page is named');
  }

  const see = (text: string) => text.replace('ANALYSIS:', `ANALYSIS: See ${good()} .`);
  const three = await place(() => see(citing(page('gone/three'), good())));
  t.equal(three.status, 201, 'a bad page beside two good ones does no harm');
  t.notOk(JSON.stringify(three.body.prediction.citations).includes('gone'), 'but it is no source');

  const dry = await place(() => citing(good(), page(unique('gone'))), { dry_run: true });
  t.match(dry.body, {
    would_be_accepted: false,
    failures: [{ path: 'body.reasoning', code: 'CITATIONS_INVALID', status: 400 }],
  });
  const both = await place(() =>
    citing(good(), page(unique('gone'))).replace('COUNTER-EVIDENCE:', 'So,'),
  );
  const codes = ['REASONING_MISSING_SECTIONS', 'CITATIONS_INVALID'];
  t.same(pluck(both.body.fields, 'code'), codes, 'with all other failures');
  const { key } = await makeAgent(app, { human });
  const [one, two] = [await makeOpenQuestion(app), await makeOpenQuestion(app)];
  const item = (question_id: string, ...sources: readonly string[]) => ({
    question_id,
    prediction: true,
    confidence: 60,
    reasoning: citing(...sources),
  });
  const predictions = [item(one, good(), page(unique('gone'))), item(two, good(), good())];
  const batch = await app.call('POST', '/api/predictions/batch', { key, body: { predictions } });
  t.match(batch.body.results, [{ status: 400, code: 'CITATIONS_INVALID' }, { status: 201 }]);
  const flight = await app.call('GET', `/api/questions/${one}/preflight`, { key });
  t.equal(flight.body.requirements.citations_reachable, true);
});

t.test('without the setting nobody is asked', async (t) => {
  const app = await startApp(t, {
    roles: ['api'],
    env: { ...reach_env, CITATIONS_REACHABLE: '0' },
  });
  const { place, human } = await open(app);
  const before = asked.length;
  t.equal((await place(() => citing(page(unique('gone')), page(unique('gone'))))).status, 201);
  t.equal(asked.length, before);
  const { key } = await makeAgent(app, { human });
  const flight = await app.call('GET', `/api/questions/${await makeOpenQuestion(app)}/preflight`, {
    key,
  });
  t.equal(flight.body.requirements.citations_reachable, false);
});

const makeOwn = () =>
  makeLinkCheck({ allow_cidrs: ['127.0.0.0/8'], dns_servers: [names.server], public_name: '' });

t.test('a page is asked for once, for all who cite it then and a while after', async (t) => {
  const { findUnreachable } = makeOwn();
  const urls = [page(unique('good')), page(unique('gone'))];
  const ask = (agent_id: string) =>
    findUnreachable({ urls, agent_id, until_ms: performance.now() + 60_000 });
  const before = asked.length;
  const found = await Promise.all(['a', 'b', 'c'].map(ask));
  await ask('d');
  for (const one of found) t.same([...(one ?? [])], [[urls[1], 'answered 404']]);
  const [good = '', gone = ''] = urls.map((url) => new URL(url).pathname);
  t.same(asked.slice(before).sort(), [`GET ${gone}`, `HEAD ${gone}`, `HEAD ${good}`]);
});

t.test('a silent page is given up; an agent with many leaves room to others', async (t) => {
  const { findUnreachable } = makeOwn();
  const find = (urls: readonly string[], agent_id: string, within_ms = 60_000) =>
    findUnreachable({ urls, agent_id, until_ms: performance.now() + within_ms });
  const silent = (count: number) => Array.from({ length: count }, () => page(unique('silent')));
  const waiting = find(silent(72), 'greedy');
  await until('the first ones', () => held.length >= 8);
  t.equal(await find(silent(1), 'greedy'), null, 'no room for more');
  t.equal(await find([page(unique('silent'))], 'other', 0), null, 'no time left');
  const other = await find([page(unique('good')), page(unique('good'))], 'other');
  t.equal(other?.size, 0, 'another agent is answered meanwhile');
  t.ok(held.length < 72, 'few are asked for at once');
  const [first] = [...((await find(silent(1), 'third')) ?? [])];
  t.match(first?.[1], /the answer took too long/);
  for (const response of held.splice(0)) response.destroy();
  void waiting.catch(() => undefined);
});

t.test('where nothing can be found out the answer is 503, and nothing is stored', async (t) => {
  const greedy = await makeAgent(app, { human });
  const links = Array.from({ length: 4 }, () => page(unique('silent'))).join(' ');
  const ask = async () => {
    const text = citing(page(unique('silent')), page(unique('silent')));
    const reasoning = text.replace('ANALYSIS:', `ANALYSIS: ${links}`);
    const path = `/api/questions/${await makeOpenQuestion(app)}/predict`;
    const body = { prediction: true, confidence: 70, reasoning };
    return app.call('POST', path, { key: greedy.key, body });
  };
  const all = await Promise.all(Array.from({ length: 24 }, ask));
  const busy = all.filter(({ status }) => status === 503);
  t.ok(busy.length > 0, JSON.stringify(all.map(({ status }) => status)));
  t.match(busy[0]?.body, { code: 'UNAVAILABLE', retryable: true });
  t.ok(Number(busy[0]?.headers.get('retry-after')) >= 1);
  t.equal((await app.sql`select from predictions where agent_id = ${greedy.id}`).length, 0);
  t.equal((await place(() => citing(page(unique('good')), page(unique('good'))))).status, 201);
});
