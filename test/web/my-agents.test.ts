import { no_limits, startApp } from '../help/app.js';
import { makeAgent, makeHuman, suspend } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { makeVisitor, problemAt, type Shown } from '../help/visitor.js';

/** A person's agents, on that person's pages. */

const app = await startApp(t, { roles: ['api'], env: no_limits });
const path = '/account/agents';
const setUp = async () => {
  const human = await makeHuman(app);
  return { human, visitor: makeVisitor(app.url, human.token) };
};
const secretOf = ({ html }: Shown): string => /id="key">([^<]*)</.exec(html)?.[1] ?? '';
const me = async (key: string) => (await app.call('GET', '/api/me', { key })).body.user;

t.test('an agent is linked by its key and unlinked again', async (t) => {
  const { visitor } = await setUp();
  const agent = await makeAgent(app, { name: '<img src=x onerror=alert(1)> Zoë' });
  const linked = await visitor.send(path, { act: 'link', api_key: `  ${agent.key}\n` });
  t.equal(linked.path, `${path}/${agent.id}?done=linked`);
  t.match(linked.text, /The agent is linked and can forecast now/);
  t.match(linked.text, '<img src=x onerror=alert(1)> Zoë');
  t.notMatch(linked.html, '<img src=x');
  t.match(linked.text, /5,000 points Analyst 0 forecasts/);
  t.match(linked.html, `href="/agents/${agent.id}"`);
  t.equal((await me(agent.key)).owner_linked, true);
  const unlinked = await visitor.send(`${path}/${agent.id}`, { act: 'unlink' });
  t.match(unlinked, {
    path: `${path}?done=unlinked`,
    text: /keeps its record but cannot forecast/,
  });
  t.equal((await me(agent.key)).owner_linked, false);
});

t.test('a key that cannot be linked is refused at its field, in words for people', async (t) => {
  const { visitor } = await setUp();
  const taken = await makeAgent(app, { human: await makeHuman(app) });
  const suspended = await makeAgent(app);
  await suspend(app, suspended.id);
  const gone = await makeAgent(app);
  await app.call('POST', '/api/me/rotate-key', { key: gone.key });
  for (const [api_key, text] of [
    ['', /^Must not be empty/],
    ['x'.repeat(201), /^Must have at most 200 characters/],
    ['sk_nonsense', /^No agent has this key/],
    [gone.key, /^No agent has this key/],
    [taken.key, /^This agent is linked to somebody else/],
    [suspended.key, /^This agent is suspended/],
  ] as const) {
    const shown = await visitor.send(path, { act: 'link', api_key });
    t.ok(shown.status >= 400);
    t.match(problemAt(shown, 'api_key'), { text, tied: true, invalid: true, focus: true });
    if (api_key !== '') t.notMatch(shown.html, api_key, 'a key is not sent back');
  }
});

t.test('an agent is registered, and its key shown once', async (t) => {
  const { visitor } = await setUp();
  const shown = await visitor.send(path, { act: 'register', name: 'Ferry 1', model: 'gpt-5' });
  const key = secretOf(shown);
  t.match(await me(key), { name: 'Ferry 1', owner_linked: true });
  t.equal(shown.headers.get('cache-control'), 'no-store');
  t.notMatch((await visitor.open(path)).html, key);
  for (const [form, name, text] of [
    [{ name: 'Ferry 1', model: 'gpt-5' }, 'name', /^Another agent has this name/],
    [{ name: 'x', model: 'gpt-5' }, 'name', /^The name must have 2 to 50 characters, not 1/],
    [{ name: 'Ferry 2', model: ' ' }, 'model', /^Name the model/],
    [{ name: 'Ferry 2', model: 'gpt-5', referral_code: 'NONE' }, 'referral_code', /^No agent has/],
  ] as const) {
    const refused = await visitor.send(path, { act: 'register', ...form });
    t.ok(refused.status >= 400);
    t.match(problemAt(refused, name), { text, tied: true, invalid: true, focus: true });
    t.match(refused.html, `value="${form.name}"`, 'what was entered is kept');
  }
});

t.test('a new key replaces the old one and is shown once', async (t) => {
  const { human, visitor } = await setUp();
  const agent = await makeAgent(app, { human });
  const shown = await visitor.send(`${path}/${agent.id}`, { act: 'rotate' });
  const key = secretOf(shown);
  t.equal((await me(key)).id, agent.id);
  t.equal((await app.call('GET', '/api/me', { key: agent.key })).status, 401);
  t.notMatch((await visitor.open(`${path}/${agent.id}`)).html, key);
});

t.test('a person hides who operates an agent, and shows it again', async (t) => {
  const { human, visitor } = await setUp();
  const agent = await makeAgent(app, { human });
  await app.sql`
    insert into agent_operators (agent_id, origin, keyid, verified_at, checked_at)
    values (${agent.id}, 'https://agents.example', 'k', now(), now())`;
  const badge = /Operated by agents\.example/;
  const own = `${path}/${agent.id}`;
  const pageOf = async () => (await app.call('GET', `/agents/${agent.id}`)).body;
  t.match(await pageOf(), badge);
  const hidden = await visitor.send(own, { act: 'hide' });
  t.match(hidden, { path: `${own}?done=hidden`, text: /no longer names its operator/ });
  t.equal((await me(agent.key)).operator, null);
  t.match(hidden.text, /Show operator/);
  t.match(await visitor.send(own, { act: 'show' }), { path: `${own}?done=shown` });
  t.match(await me(agent.key), { operator: { origin: 'https://agents.example' } });
});

t.test('nobody sees or changes the agents of another person', async (t) => {
  const { human } = await setUp();
  const agent = await makeAgent(app, { human });
  const stranger = (await setUp()).visitor;
  t.notMatch((await stranger.open(path)).html, agent.name);
  t.match(await stranger.open(`${path}/${agent.id}`), { status: 404, text: /Page not found/ });
  for (const act of ['rotate', 'unlink', 'hide', '']) {
    t.equal((await stranger.send(`${path}/${agent.id}`, { act })).status, 404);
  }
  t.match(await me(agent.key), { id: agent.id, owner_linked: true });
  t.equal((await stranger.open(`${path}/no-id`)).status, 404);
});

t.test('a person whose address is not verified is told what to do first', async (t) => {
  const account = { email: 'early@example.org', password: 'correct horse battery' };
  const visitor = makeVisitor(app.url);
  await visitor.send('/account/signup', account);
  await visitor.send('/account/login', account);
  const shown = await visitor.open(path);
  t.match(shown.text, /Verify your address first/);
  t.notMatch(shown.html, 'id="api_key"');
  t.match((await visitor.open('/account')).text, /not verified .* Get started 1?/);
});

t.test('all agents are shown with their last call, their errors and what is left', async (t) => {
  const { human, visitor } = await setUp();
  const [busy, idle] = [await makeAgent(app, { human }), await makeAgent(app, { human })];
  await app.call('GET', '/api/me', { key: busy.key });
  await app.call('POST', '/api/predictions', { key: busy.key, body: {} });
  // While Redis is slow, the page says that the number of calls is unknown.
  const { text, html } = await until('the calls are known', async () => {
    const shown = await visitor.open(path);
    return !shown.text.includes('unknown') && shown;
  });
  const rowOf = ({ id }: typeof busy) =>
    html.split('<tr>').find((row) => row.includes(`${path}/${id}`)) ?? '';
  t.match(text, /Agent Last call Errors in 24 h All calls Predictions Comments Votes Webhooks/);
  t.match(rowOf(busy), /POST createPrediction, 400/);
  t.match(rowOf(busy), /1, last: <code>INVALID_REQUEST</);
  t.match(rowOf(busy), /99,999,999 of 100,000,000/);
  t.match(rowOf(idle), /no calls yet/);
  t.match(rowOf(idle), /<td>none</);
  t.match(html, 'href="/docs/guide/fleets"');
  await suspend(app, idle.id);
  t.match((await visitor.open(path)).text, `${idle.name} suspended`);
});

t.test('a fleet is shown by pages', async (t) => {
  const { human, visitor } = await setUp();
  const agents = Array.from({ length: 25 }, (_, n) => ({ name: `Paged ${n}`, model: 'gpt-5' }));
  await app.call('POST', '/api/me/agents/batch', { token: human.token, body: { agents } });
  const first = await visitor.open(path);
  const next = /href="([^"]*)" rel="next"/.exec(first.html)?.[1] ?? '';
  const second = await visitor.open(next);
  const shown = `${first.text} ${second.text}`;
  for (const { name } of agents) t.match(shown, new RegExp(`${name}\\b`));
  t.notMatch(second.html, 'rel="next"');
});
