import { createHash } from 'node:crypto';
import type { Test } from 'tap';
import { startApp, type TestApp } from '../../help/app.js';
import {
  type Agent,
  makeAgent,
  makeHuman,
  makeOpenQuestion,
  makeReasoning,
} from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import {
  makeKey,
  type Operator,
  type OperatorKey,
  signRequest,
  startOperator,
} from './operator.js';

const key = makeKey();

const open = async (t: Test) => {
  const operator = await startOperator(t, key);
  const app = await startApp(t, { roles: ['api', 'timer'], env: operator.env });
  const human = await makeHuman(app);
  const agent = await makeAgent(app, { human });
  return { app, operator, human, agent };
};

interface Change extends Partial<Parameters<typeof signRequest>[0]> {
  readonly send?: { readonly key?: string; readonly body?: unknown; readonly path?: string };
}

/** Makes a call that an agent signs. `send` replaces parts of the request after signing. */
const call = async (
  { app, operator, agent }: { app: TestApp; operator: Operator; agent: Agent },
  { send = {}, ...signing }: Change = {},
) => {
  const { method = 'GET' } = signing;
  const headers = await signRequest({
    url: `${app.url}/api/me`,
    origin: operator.origin,
    key,
    ...signing,
    headers: { 'x-api-key': agent.key, ...signing.headers },
  });
  const key_sent = send.key === undefined ? {} : { 'x-api-key': send.key };
  const body = send.body === undefined ? {} : { body: send.body };
  return app.call(method, send.path ?? '/api/me', {
    headers: { ...headers, ...key_sent },
    ...body,
  });
};

const badgeOf = async (app: TestApp, { id }: Agent) =>
  (await app.call('GET', `/api/agents/${id}`)).body.agent.operator;

/** Signs one request and waits for the badge. */
const earn = async (world: { app: TestApp; operator: Operator; agent: Agent }) => {
  await call(world);
  return until('the badge', () => badgeOf(world.app, world.agent));
};

t.test('an agent that signs has a badge that names its operator', async (t) => {
  const world = await open(t);
  const { app, operator, agent, human } = world;
  t.equal((await app.call('GET', '/api/me', { key: agent.key })).body.user.operator, null);
  t.equal((await call(world)).status, 200, 'while the directory is fetched');
  const badge = await until('the badge', () => badgeOf(app, agent));
  t.equal(badge.origin, operator.origin);
  t.ok(Math.abs(Date.parse(badge.verified_at) - Date.now()) < 60_000);
  t.same((await call(world)).body.user.operator, badge);
  const list = async () => (await app.call('GET', `/api/agents?ids=${agent.id}`)).body.agents[0];
  t.same((await until('the agent is ranked', list)).operator, badge);
  const own = await app.call('GET', `/api/me/agents/${agent.id}`, { token: human.token });
  t.match(own.body.agent, { operator: badge, shows_operator: true });
  const question_id = await makeOpenQuestion(app);
  const placed = await app.call('POST', `/api/questions/${question_id}/predict`, {
    key: agent.key,
    body: { prediction: true, confidence: 60, reasoning: makeReasoning() },
  });
  const { id } = placed.body.prediction;
  for (const path of [`agents/${agent.id}`, `questions/${question_id}`, `predictions/${id}`]) {
    const page = await app.call('GET', `/${path}`, { headers: { accept: 'text/html' } });
    t.match(page.body, `Operated by ${new URL(operator.origin).host}`, path);
  }
  t.equal(operator.state.asked, 1);
});

t.test('a badge is written once a day', async (t) => {
  const world = await open(t);
  await earn(world);
  const read = () => world.app.sql`select xmin::text, verified_at from agent_operators`;
  const [first] = await read();
  for (const _ of [1, 2, 3]) t.equal((await call(world)).status, 200);
  t.same(await read(), [first]);
});

t.test('a signature that is wrong is refused', async (t) => {
  const world = await open(t);
  await earn(world);
  const refused = async (what: string, change: Change, sentence: RegExp) => {
    const { status, body } = await call(world, change);
    t.match({ status, code: body.code }, { status: 401, code: 'INVALID_SIGNATURE' }, what);
    t.match(body.error, sentence, what);
  };
  const forged = { ...makeKey(), keyid: key.keyid };
  await refused('made with another key', { key: forged }, /failed/);
  await refused('a key that is not published', { key: makeKey() }, /no valid key with this keyid/);
  await refused('expired', { created: -400, expires: -100 }, /expired/);
  await refused('older than a day', { created: -90_000, expires: 300 }, /too old/);
  await refused('from the future', { created: 300, expires: 400 }, /future/);
  await refused('for another site', { url: 'https://other.example/api/me' }, /failed/);
  const fields = ['@authority', '@method', '@path', 'signature-agent', 'x-api-key'];
  const moved = { fields, send: { path: '/api/me/transactions' } };
  await refused('for another path', moved, /failed/);
  t.equal((await call(world, { fields })).status, 200, 'its path');
  t.equal(world.operator.state.asked, 1, 'an unknown key is asked for once a minute');
});

t.test('a body that was changed is refused, and nothing is stored', async (t) => {
  const world = await open(t);
  await earn(world);
  const digest = createHash('sha256').update('{"bio":"mine"}').digest('base64');
  const headers = { 'content-digest': `sha-256=:${digest}:`, 'content-type': 'application/json' };
  const fields = ['@authority', '@method', 'signature-agent', 'x-api-key', 'content-digest'];
  const signed = { method: 'PATCH', headers, fields };
  const changed = await call(world, { ...signed, send: { body: '{"bio":"theirs"}' } });
  t.match(changed.body, { code: 'INVALID_SIGNATURE', status: 401 });
  const me = () => world.app.call('GET', '/api/me', { key: world.agent.key });
  t.equal((await me()).body.user.bio, null);
  t.equal((await call(world, { ...signed, send: { body: '{"bio":"mine"}' } })).status, 200);
  t.equal((await me()).body.user.bio, 'mine');
});

t.test('a signature is worth nothing to another agent', async (t) => {
  const world = await open(t);
  await earn(world);
  const thief = await makeAgent(world.app, { human: world.human });
  const replayed = await call(world, { send: { key: thief.key } });
  t.match(replayed.body, { code: 'INVALID_SIGNATURE' });
  const unbound = { fields: ['@authority', 'signature-agent'], send: { key: thief.key } };
  t.equal((await call(world, unbound)).status, 200, 'it does not cover a key');
  t.equal(await badgeOf(world.app, thief), null);
});

t.test('without a person there is no badge, and no directory is fetched', async (t) => {
  const world = await open(t);
  const agent = await makeAgent(world.app);
  t.equal((await call({ ...world, agent })).status, 200);
  await earn(world);
  await world.app.call('DELETE', `/api/me/agents/${world.agent.id}`, { token: world.human.token });
  t.equal(await badgeOf(world.app, world.agent), null, 'unlinked');
  t.equal(world.operator.state.asked, 1);
});

t.test('the person hides the badge and shows it again', async (t) => {
  const world = await open(t);
  const { app, agent, human } = world;
  const badge = await earn(world);
  const show = (shows_operator: boolean, token = human.token) =>
    app.call('PATCH', `/api/me/agents/${agent.id}`, { token, body: { shows_operator } });
  t.match((await show(false)).body.agent, { operator: null, shows_operator: false });
  await call(world);
  t.equal(await badgeOf(app, agent), null);
  const stranger = await makeHuman(app);
  t.match((await show(true, stranger.token)).body, { code: 'AGENT_NOT_FOUND' });
  t.equal(await badgeOf(app, agent), null);
  t.match((await show(true)).body.agent, { operator: badge, shows_operator: true });
});

t.test('a directory that does not answer holds nobody up, and is asked once', async (t) => {
  const world = await open(t);
  world.operator.state.answer = null;
  const answers = await Promise.all(Array.from({ length: 20 }, () => call(world)));
  t.ok(answers.every(({ status }) => status === 200));
  await until('the directory is asked', () => world.operator.state.asked > 0);
  t.equal((await call(world, { key: makeKey() })).status, 200, 'nothing can be judged');
  t.equal(world.operator.state.asked, 1);
  t.equal(await badgeOf(world.app, world.agent), null);
});

t.test('the example for operators signs, and MCP takes its signature too', async (t) => {
  const { app, operator, agent } = await open(t);
  const example = new URL('../../../../examples/signed-agents/sign.mjs', import.meta.url);
  const { makeKey: make, directoryOf, signedHeaders } = await import(example.href);
  const [own_key, { origin }] = [make(), operator];
  operator.state.answer = { body: directoryOf(own_key) };
  const url = `${app.url}/api/me`;
  const headers = signedHeaders({ url, api_key: agent.key, origin, key: own_key });
  t.equal((await app.call('GET', '/api/me', { headers })).status, 200);
  await until('the badge', () => badgeOf(app, agent));
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
  const tools = (keyed: OperatorKey, tag: string) =>
    signRequest({
      method: 'POST',
      url: `${app.url}/mcp`,
      origin,
      key: keyed,
      tag,
      headers: { authorization: `Bearer ${agent.key}` },
      fields: ['@authority', 'signature-agent;key="op"', 'authorization'],
    }).then((signed) => app.call('POST', '/mcp', { headers: signed, body }));
  const refused = await tools(key, 'web-bot-auth');
  t.match(refused.body, { error: { data: { code: 'INVALID_SIGNATURE' } } });
  t.not((await tools(key, 'other')).status, 401);
});

t.test('what is no directory gives no badge', async (t) => {
  const world = await open(t);
  world.operator.state.answer = { status: 302, headers: { location: '/' }, body: '' };
  t.equal((await call(world)).status, 200);
  await until('the directory is asked', () => world.operator.state.asked > 0);
  const inside = { ...world, operator: { ...world.operator, origin: 'https://10.0.0.1' } };
  t.equal((await call(inside)).status, 200, 'an address that may not be called');
  t.equal(await badgeOf(world.app, world.agent), null);
});
