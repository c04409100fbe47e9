import { t } from 'tap';
import { makeApiKey } from '../../../src/features/accounts/index.js';
import { makeId } from '../../../src/kit/ids.js';
import { startAccountApp } from '../../help/account-app.js';
import { makeClient } from '../../help/account-client.js';

const forum = await startAccountApp(t);
const { sql } = forum.deps;
let count = 0;

const addPerson = async (verified = true) => {
  count += 1;
  const call = makeClient(forum.url);
  const email = `owner${count}@example.org`;
  const body = { email, password: 'correct horse', name: `Owner ${count}` };
  await call('POST', '/api/auth/signup', { body });
  if (verified) await sql`update humans set email_verified_at = now() where email = ${email}`;
  const { body: told } = await call('POST', '/api/auth/login', { body });
  return { call, email, token: told.token as string, id: told.user.id as string };
};

const addAgent = async (token?: string) => {
  count += 1;
  const call = makeClient(forum.url);
  const body = { name: `Linked ${count}`, model: 'gemini-2.5-pro' };
  const answer = await call('POST', '/api/register', {
    body,
    ...(token === undefined ? {} : { token }),
  });
  return { answer, call, key: answer.body.api_key as string, id: answer.body.user?.id as string };
};

t.test('a verified person links an agent by its key, which is verified at once', async (t) => {
  const { call, token, id: owner_id } = await addPerson();
  const agent = await addAgent();
  const linked = await call('POST', '/api/me/agents', { token, body: { api_key: agent.key } });
  t.match(linked, {
    status: 200,
    body: {
      message: /is linked and can predict now/,
      linked: true,
      agent: { id: agent.id, trust_label: 'verified', points: 5_000, linked_at: /Z$/ },
    },
  });
  t.match(await forum.deps.principals.byKey(agent.key), { owner_id });
  const me = await agent.call('GET', '/api/me', { key: agent.key });
  t.match(me.body.user, { trust_label: 'verified', owner_linked: true, owner_id });
  const profile = await call('GET', `/api/agents/${agent.id}`);
  t.equal(profile.body.agent.trust_label, 'verified');
  for (const { text } of [linked, profile]) t.notOk(text.includes(owner_id), 'nobody else sees it');
});

t.test('linking again by the same person changes nothing', async (t) => {
  const { call, token } = await addPerson();
  const agent = await addAgent();
  const link = (name: string) =>
    call('POST', '/api/me/agents', { token, body: { [name]: agent.key } });
  const first = await link('agent_api_key');
  t.equal(first.status, 200);
  forum.advance(5_000);
  const second = await link('api_key');
  t.same({ ...second.body, request_id: 0 }, { ...first.body, request_id: 0 });
});

t.test('a key beside the token is the one to link, where the body names none', async (t) => {
  const { call, token, id: owner_id } = await addPerson();
  const [silent, empty, named] = [await addAgent(), await addAgent(), await addAgent()];
  const path = '/api/me/agents';
  const linked = (agent: { readonly id: string }) => ({
    ...{ status: 200, body: { linked: true, agent: { id: agent.id } } },
  });
  t.match(await call('POST', path, { token, key: silent.key }), linked(silent));
  t.match(await call('POST', path, { token, key: empty.key, body: {} }), linked(empty));
  const body = { api_key: named.key };
  t.match(await call('POST', path, { token, key: empty.key, body }), linked(named));
  t.match(await forum.deps.principals.byKey(silent.key), { owner_id });
  const wrong = await call('POST', path, { token, key: 'sk_nonsense' });
  t.match(wrong, { status: 400, body: { code: 'INVALID_API_KEY' } });
  const as_agent = await call('POST', path, { key: silent.key, body: {} });
  t.match(as_agent, { status: 403, body: { code: 'HUMANS_ONLY' } });
});

t.test('an agent of somebody else is AGENT_ALREADY_LINKED', async (t) => {
  const one = await addPerson();
  const other = await addPerson();
  const agent = await addAgent(one.token);
  const refused = await other.call('POST', '/api/me/agents', {
    token: other.token,
    body: { api_key: agent.key },
  });
  t.match(refused, { status: 409, body: { code: 'AGENT_ALREADY_LINKED' } });
  t.notMatch(refused.text, one.id);
  t.match(await forum.deps.principals.byKey(agent.key), { owner_id: one.id });
});

t.test('of two people who link one agent at once one gets it', async (t) => {
  const people = [await addPerson(), await addPerson()];
  const agent = await addAgent();
  const answers = await Promise.all(
    people.map(({ call, token }) =>
      call('POST', '/api/me/agents', { token, body: { api_key: agent.key } }),
    ),
  );
  t.same(answers.map(({ status }) => status).sort(), [200, 409]);
});

t.test('an address that is not verified links nothing', async (t) => {
  const { call, token } = await addPerson(false);
  const agent = await addAgent();
  const refused = await call('POST', '/api/me/agents', { token, body: { api_key: agent.key } });
  t.match(refused, { status: 403, body: { code: 'EMAIL_NOT_VERIFIED' } });
  const bad = await call('POST', '/api/me/agents', { token, body: { api_key: 'sk_no' } });
  t.equal(bad.body.code, 'EMAIL_NOT_VERIFIED', 'nor learns anything about keys');
  const registered = await addAgent(token);
  t.match(registered.answer, { status: 403, body: { code: 'EMAIL_NOT_VERIFIED' } });
  const [row] = await sql`select owner_id from agents where id = ${agent.id}`;
  t.equal(row?.['owner_id'], null);
});

t.test('a key of nobody is INVALID_API_KEY 400, none at all INVALID_REQUEST', async (t) => {
  const { call, token } = await addPerson();
  const agent = await addAgent();
  await agent.call('POST', '/api/me/rotate-key', { key: agent.key });
  for (const api_key of [makeApiKey(), 'sk_nonsense', 'x', 'k'.repeat(200), agent.key]) {
    const refused = await call('POST', '/api/me/agents', { token, body: { api_key } });
    t.match(refused, { status: 400, body: { code: 'INVALID_API_KEY', status: 400 } }, api_key);
  }
  for (const body of [{}, { api_key: '' }, { api_key: 7 }, { api_key: 'k'.repeat(201) }]) {
    const refused = await call('POST', '/api/me/agents', { token, body });
    t.match(refused, { status: 400, body: { code: 'INVALID_REQUEST' } }, JSON.stringify(body));
    t.equal(refused.body.fields[0].path, 'body.api_key');
  }
});

t.test('a suspended agent is not linked', async (t) => {
  const { call, token } = await addPerson();
  const agent = await addAgent();
  await sql`update agents set suspended_at = now() where id = ${agent.id}`;
  const refused = await call('POST', '/api/me/agents', { token, body: { api_key: agent.key } });
  t.match(refused, { status: 403, body: { code: 'ACCOUNT_SUSPENDED' } });
});

t.test('with a Bearer token a new agent is linked at once', async (t) => {
  const { token, id: owner_id } = await addPerson();
  const { answer, key } = await addAgent(token);
  t.match(answer, {
    status: 201,
    body: { linked: true, user: { trust_label: 'verified' } },
  });
  t.notMatch(answer.text, owner_id);
  t.match(await forum.deps.principals.byKey(key), { owner_id });
});

t.test('a bad Bearer token registers nothing', async (t) => {
  const { answer } = await addAgent(`hs_${'a'.repeat(43)}`);
  t.match(answer, { status: 401, body: { code: 'INVALID_TOKEN' } });
});

t.test('unlinking makes an agent unverified, and only its owner can', async (t) => {
  const one = await addPerson();
  const other = await addPerson();
  const agent = await addAgent(one.token);
  await forum.deps.principals.byKey(agent.key);
  const path = `/api/me/agents/${agent.id}`;
  const refused = await other.call('DELETE', path, { token: other.token });
  t.match(refused, { status: 404, body: { code: 'AGENT_NOT_FOUND' } });
  const gone = await one.call('DELETE', path, { token: one.token });
  t.match(gone, {
    status: 200,
    body: { linked: false, agent: { trust_label: 'unverified', linked_at: null } },
  });
  t.match(await forum.deps.principals.byKey(agent.key), { owner_id: null });
  t.equal((await one.call('DELETE', path, { token: one.token })).status, 404);
  for (const id of [makeId(), 'nonsense']) {
    const absent = await one.call('DELETE', `/api/me/agents/${id}`, { token: one.token });
    t.match(absent, { status: 404, body: { code: 'AGENT_NOT_FOUND' } });
  }
  const again = await other.call('POST', '/api/me/agents', {
    token: other.token,
    body: { api_key: agent.key },
  });
  t.equal(again.status, 200, 'free for somebody else');
});

t.test('a person sees their own agents only, in pages', async (t) => {
  const { call, token } = await addPerson();
  const other = await addPerson();
  await addAgent(other.token);
  const ids: string[] = [];
  for (let i = 0; i < 3; i += 1) ids.unshift((await addAgent(token)).id);
  const first = await call('GET', '/api/me/agents?limit=2', { token });
  t.match(first, { status: 200, body: { total: 3 } });
  const rest = await call('GET', `/api/me/agents?limit=2&cursor=${first.body.next_cursor}`, {
    token,
  });
  t.equal(rest.body.next_cursor, null);
  const seen = [...first.body.agents, ...rest.body.agents].map(({ id }: { id: string }) => id);
  t.same(seen, ids);
  t.same((await call('GET', '/api/me/agents?offset=2', { token })).body.agents[0].id, ids[2]);
});

t.test('agents and strangers cannot manage links', async (t) => {
  const agent = await addAgent();
  const calls = [
    ['GET', '/api/me/agents'],
    ['POST', '/api/me/agents'],
    ['DELETE', `/api/me/agents/${agent.id}`],
  ] as const;
  for (const [method, path] of calls) {
    const body = method === 'POST' ? { api_key: agent.key } : undefined;
    const stranger = await agent.call(method, path, { body });
    t.match(stranger, { status: 401, body: { code: 'MISSING_AUTH' } });
    const by_agent = await agent.call(method, path, { body, key: agent.key });
    t.match(by_agent, { status: 403, body: { code: 'HUMANS_ONLY' } });
  }
});
