import { createClient } from '#client/node.js';
import {
  insertHuman,
  insertToken,
  markVerified,
} from '../../src/features/accounts/people-store.js';
import { makeToken } from '../../src/features/accounts/rules.js';
import { makeId } from '../../src/kit/ids.js';
import { type Answered, no_limits, startApp } from '../help/app.js';
import { openCalls } from '../help/socket-calls.js';
import { openSse } from '../help/sse-client.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { makeVisitor } from '../help/visitor.js';
import { connect } from '../help/ws-client.js';
import type { Any } from './world.js';

/** People without a verified address cannot own anything, over any transport. */

const app = await startApp(t, {
  env: {
    ...no_limits,
    ADMIN_EMAILS: 'boss@people.dev,else@people.dev',
    WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
  },
});

let people = 0;

/** A person who signed up and logged in, but has not opened the mailed link. */
const makeNewcomer = async (email?: string) => {
  people += 1;
  const address = email ?? `newcomer-${process.pid}-${people}@people.dev`;
  const [id, now] = [makeId(), new Date()];
  const { token, digest } = makeToken('session');
  await app.sql.begin(async (tx) => {
    const names = { email: address, email_key: address.toLowerCase(), name: null };
    await insertHuman(tx, { id, ...names, password_hash: 'none', created_at: now });
    await insertToken(tx, id, { digest, kind: 'session', now });
  });
  const verify = () => app.sql.begin((tx) => markVerified(tx, id, { now: new Date() }));
  return { id, token, email: address, verify };
};

const hook_body = { url: 'https://127.0.0.1:10443/hook', events: ['question.created'] };
const refused = { status: 403, body: { code: 'EMAIL_NOT_VERIFIED' } } as const;
const somewhere = '01900000-0000-7000-8000-00000000ffff';

type Row = readonly [string, string, object?];

const webhookCalls = (id: string, did = somewhere): readonly Row[] => [
  ['POST', '/api/webhooks', hook_body],
  ['PATCH', `/api/webhooks/${id}`, { active: false }],
  ['POST', `/api/webhooks/${id}/rotate-secret`, {}],
  ['POST', `/api/webhooks/${id}/test`, {}],
  ['POST', `/api/webhooks/${id}/deliveries/${did}/redeliver`, {}],
  ['POST', `/api/webhooks/${id}/replay`, { since: new Date(Date.now() - 3_600_000).toISOString() }],
  ['DELETE', `/api/webhooks/${id}`],
];

const consumerCalls: readonly Row[] = [
  ['PUT', '/api/me/consumers/news', { topics: ['all'], start: 'beginning' }],
  ['GET', '/api/me/consumers'],
  ['GET', '/api/me/consumers/news'],
  ['POST', '/api/me/consumers/news/take', { member: 'w', limit: 1 }],
  ['POST', '/api/me/consumers/news/ack', { member: 'w', offsets: [1] }],
  ['POST', '/api/me/consumers/news/nack', { member: 'w', offsets: [1] }],
  ['POST', '/api/me/consumers/news/seek', { start: 'now' }],
  ['DELETE', '/api/me/consumers/news'],
];

/** Checks that each call gets this answer, which does not reveal whether the thing exists. */
const expectAll = async (
  t: Any,
  calls: readonly Row[],
  send: (method: string, path: string, parts: object) => Promise<Answered>,
  wanted: object,
  transport: string,
): Promise<void> => {
  for (const [method, path, body] of calls) {
    const answer = await send(method, path, body === undefined ? {} : { body });
    t.match(
      { status: answer.status, body: answer.body },
      wanted,
      `${transport}: ${method} ${path}: ${answer.status} ${JSON.stringify(answer.body).slice(0, 200)}`,
    );
  }
};

t.test('every call about webhooks is refused over HTTP', async (t) => {
  const { token, verify } = await makeNewcomer();
  const call = (method: string, path: string, parts: object) =>
    app.call(method, path, { token, ...parts });
  await expectAll(t, webhookCalls(somewhere), call, refused, 'HTTP');
  await verify();
  const list = await until('the list', async () => {
    const answer = await app.call('GET', '/api/webhooks', { token });
    return answer.status === 200 && answer;
  });
  t.same(list.body, [], 'none was made meanwhile');
});

t.test('every call about consumers is refused over HTTP', async (t) => {
  const { token, verify } = await makeNewcomer();
  const call = (method: string, path: string, parts: object) =>
    app.call(method, path, { token, ...parts });
  await expectAll(t, consumerCalls, call, refused, 'HTTP');
  await verify();
  const list = await until('the list', async () => {
    const answer = await app.call('GET', '/api/me/consumers', { token });
    return answer.status === 200 && answer;
  });
  t.same(list.body.consumers, [], 'none was made meanwhile');
});

t.test('a socket refuses the same calls, and its own frame for consumers', async (t) => {
  const { token } = await makeNewcomer();
  const socket = await openCalls(t, app.port, { authorization: `Bearer ${token}` });
  const call = (method: string, path: string, parts: object) => socket.call(method, path, parts);
  await expectAll(t, [...webhookCalls(somewhere), ...consumerCalls], call, refused, 'socket');
  const client = await connect(t, app.port, { headers: { authorization: `Bearer ${token}` } });
  const answer = await client.ask({ op: 'consume', consumer: 'news', member: 'w' });
  t.match(answer, { op: 'error', code: 'EMAIL_NOT_VERIFIED' }, 'consume');
  const late = await connect(t, app.port);
  t.match(await late.ask({ op: 'auth', token }), { op: 'authenticated' });
  const again = await late.ask({ op: 'consume', consumer: 'news', member: 'w' });
  t.match(again, { op: 'error', code: 'EMAIL_NOT_VERIFIED' }, 'consume after auth');
});

t.test('the form on the page makes no webhook and says what to do', async (t) => {
  const { token, verify } = await makeNewcomer();
  const visitor = makeVisitor(app.url, token);
  let said = '';
  for (const path of ['/account/webhooks', '/account/webhooks/new']) {
    const shown = await visitor.open(path);
    t.ok(shown.status < 500, `${path}: ${shown.status}`);
    const sent = await visitor.send(path, { url: hook_body.url, events: hook_body.events });
    t.ok(sent.status < 500, `${path}: ${sent.status}`);
    t.notMatch(sent.text, /[0-9a-f]{64}/, `${path}: no secret is shown`);
    said += shown.text + sent.text;
  }
  t.match(said, /verif/i, 'it says what is missing');
  for (const path of ['edit', 'delete', 'test', 'rotate-secret']) {
    const sent = await visitor.send(`/account/webhooks/${somewhere}/${path}`, { active: 'on' });
    t.ok(sent.status < 500, `${path}: ${sent.status}`);
  }
  await verify();
  const list = await until('the list', async () => {
    const answer = await app.call('GET', '/api/webhooks', { token });
    return answer.status === 200 && answer;
  });
  t.same(list.body, [], 'none was made');
});

t.test('from sign-up to the mailed link: refused before it, served after it', async (t) => {
  const email = `story-${process.pid}@people.dev`;
  const password = 'correct horse battery';
  const signup = await app.call('POST', '/api/auth/signup', { body: { email, password } });
  t.ok(signup.status < 300, JSON.stringify(signup.body));
  const login = () => app.call('POST', '/api/auth/login', { body: { email, password } });
  const early = await login();
  const token: string | undefined = early.body.token;
  if (token !== undefined) {
    const made = await app.call('POST', '/api/webhooks', { token, body: hook_body });
    t.match(made, refused, 'before');
  } else t.equal(early.status < 500, true, 'there may be no session before');
  const link = await until('the mail', async () => {
    const { body } = await app.call('GET', '/dev/outbox');
    return body.find(({ to }: { to: string }) => to === email)?.links[0] as string | undefined;
  });
  const mailed = new URL(link, app.url).searchParams.get('token');
  const verified = await app.call('POST', '/api/auth/verify', { body: { token: mailed } });
  t.ok(verified.status < 300, JSON.stringify(verified.body));
  const session: string = token ?? (await login()).body.token;
  const made = await until('it works', async () => {
    const answer = await app.call('POST', '/api/webhooks', { token: session, body: hook_body });
    return answer.status === 201 && answer;
  });
  t.match(made.body.secret, /^[0-9a-f]{64}$/, 'with the session from before');
  const put = await app.call('PUT', '/api/me/consumers/news', {
    token: session,
    body: { topics: ['all'] },
  });
  t.ok(put.status < 300, JSON.stringify(put.body));
  t.equal((await app.call('GET', '/api/webhooks', { token: session })).body.length, 1);
});

t.test('lists of what a newcomer owns are empty, and nothing of others is in them', async (t) => {
  const owner = await makeHuman(app);
  const made = await app.call('POST', '/api/webhooks', { token: owner.token, body: hook_body });
  t.equal(made.status, 201, JSON.stringify(made.body));
  const { token } = await makeNewcomer();
  t.same((await app.call('GET', '/api/webhooks', { token })).body, []);
  t.equal((await app.call('GET', `/api/webhooks/${made.body.id}`, { token })).status, 404);
});

t.test('agents: a linked one owns, one that is not linked does not', async (t) => {
  const human = await makeHuman(app);
  const linked = await makeAgent(app, { human });
  const alone = await makeAgent(app);
  const make = (key: string) => app.call('POST', '/api/webhooks', { key, body: hook_body });
  const put = (key: string) =>
    app.call('PUT', '/api/me/consumers/news', { key, body: { topics: ['all'] } });
  t.equal((await make(linked.key)).status, 201, 'a webhook of a linked agent');
  t.ok((await put(linked.key)).status < 300, 'a consumer of a linked agent');
  const not_linked = { status: 403, body: { code: 'AGENT_NOT_LINKED' } };
  t.match(await make(alone.key), not_linked, 'a webhook of one that is not');
  t.match(await put(alone.key), not_linked, 'a consumer of one that is not');
  t.match(
    await app.call('PATCH', `/api/webhooks/${somewhere}`, {
      key: alone.key,
      body: { active: true },
    }),
    not_linked,
  );
  const client = await connect(t, app.port, { headers: { 'x-api-key': alone.key } });
  const consume = await client.ask({ op: 'consume', consumer: 'news', member: 'w' });
  t.match(consume, { op: 'error', code: 'AGENT_NOT_LINKED' }, 'over the socket');
  const newcomer = await makeNewcomer();
  const link = () =>
    app.call('POST', '/api/me/agents', { token: newcomer.token, body: { api_key: alone.key } });
  t.match(await link(), refused, 'a newcomer cannot link it');
  t.match(await make(alone.key), not_linked, 'so it still owns nothing');
  await newcomer.verify();
  await until('it is linked', async () => (await link()).status === 200);
  t.equal((await make(alone.key)).status, 201, 'now it does');
});

t.test('everything public is read with the token of a newcomer', async (t) => {
  const { token } = await makeNewcomer();
  const id = await makeOpenQuestion(app);
  for (const path of [
    '/api/questions',
    `/api/questions/${id}`,
    `/api/questions/${id}/consensus`,
    '/api/leaderboard?by=points',
    '/api/events?limit=1',
    '/api/webhooks/events',
    '/api/taxonomy',
    '/api/limits',
    '/api/auth/session',
    `/questions/${id}/feed.xml`,
    '/api/export/questions?format=ndjson',
  ]) {
    const { status } = await app.call('GET', path, { token });
    t.equal(status, 200, path);
  }
  const sse = await openSse(t, `${app.url}/api/stream?topic=all`, {
    authorization: `Bearer ${token}`,
  });
  t.equal(sse.status, 200, 'the stream');
  const client = await connect(t, app.port, { headers: { authorization: `Bearer ${token}` } });
  t.match(await client.subscribe([`question:${id}`]), { op: 'subscribed' }, 'the socket');
  const registered = await app.call('POST', '/api/register', {
    token,
    body: { name: `Of a newcomer ${process.pid}`, model: 'gpt-4o' },
  });
  t.not(registered.body.linked, true, 'and registers no agent that is linked to it');
});

t.test('an address of ADMIN_EMAILS that is not verified is no admin', async (t) => {
  const { token, verify } = await makeNewcomer('Boss@People.dev');
  const question = {
    question: 'Will the newcomer be able to publish this question at once?',
    category: 'society',
    closes_at: new Date(Date.now() + 86_400_000).toISOString(),
    publish: true,
  };
  const rows: readonly Row[] = [
    ['GET', '/api/admin/questions'],
    ['GET', '/api/admin/people'],
    ['GET', '/api/admin/audit'],
    ['POST', '/api/admin/questions', question],
    ['POST', '/api/admin/questions/import', { items: [question] }],
  ];
  const http = (method: string, path: string, parts: object) =>
    app.call(method, path, { token, ...parts });
  await expectAll(t, rows, http, { status: 404 }, 'HTTP');
  const socket = await openCalls(t, app.port, { authorization: `Bearer ${token}` });
  const call = (method: string, path: string, parts: object) => socket.call(method, path, parts);
  await expectAll(t, rows, call, { status: 404 }, 'socket');
  const visitor = makeVisitor(app.url, token);
  for (const path of ['/admin', '/admin/questions', '/admin/people']) {
    const shown = await visitor.open(path);
    t.not(shown.status, 200, `page ${path}`);
  }
  await verify();
  await until('the admin is one', async () => {
    const { status } = await app.call('GET', '/api/admin/questions', { token });
    return status === 200;
  });
  t.equal((await visitor.open('/admin')).status, 200, 'on pages too');
});

t.test('the client says what is missing and does not try again', async (t) => {
  const { token, verify } = await makeNewcomer();
  let requests = 0;
  const counted: typeof fetch = (...args) => {
    requests += 1;
    return fetch(...args);
  };
  const client = createClient({ base_url: app.url, token, fetch: counted } as never) as unknown as {
    call(name: string, parts: object): Promise<Any>;
    consume(what: object): AsyncIterable<{ ack(): Promise<boolean> }>;
  };
  const codeOf = (work: Promise<unknown>): Promise<unknown> =>
    work.then(
      () => 'done',
      (error: Any) => error.code ?? error.fault?.code ?? String(error),
    );
  const started = Date.now();
  for (const [name, parts] of [['createWebhook', { body: hook_body }]] as const) {
    t.equal(await codeOf(client.call(name, parts)), 'EMAIL_NOT_VERIFIED', name);
  }
  t.ok(requests <= 1, `${requests} requests for one call`);
  const take = async (): Promise<void> => {
    for await (const event of client.consume({ consumer: 'news', member: 'w' })) await event.ack();
  };
  t.equal(await codeOf(take()), 'EMAIL_NOT_VERIFIED', 'consume ends with it');
  t.ok(Date.now() - started < 20_000, 'at once');
  await verify();
  await until(
    'it works',
    async () => (await codeOf(client.call('createWebhook', { body: hook_body }))) === 'done',
  );
});
