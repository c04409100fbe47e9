import type { ServerResponse } from 'node:http';
import { type Test, test } from 'tap';
import { webhook_limit } from '../../../src/features/webhooks/schema.js';
import { startApp } from '../../help/app.js';
import { type Receiver, startReceiver } from '../../help/receiver.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../../help/story.js';
import { until } from '../../help/until.js';

const setUp = async (t: Test, options: { limit?: number } = {}) => {
  const receiver = await startReceiver();
  t.teardown(() => receiver.close());
  const app = await startApp(t, {
    env: {
      WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
      WEBHOOK_CA_FILE: receiver.ca_file,
      LIMIT_WEBHOOKS: String(options.limit ?? 1_000_000),
    },
  });
  const human = await makeHuman(app);
  const agent = await makeAgent(app, { human });
  const create = (body: unknown, key = agent.key) =>
    app.call('POST', '/api/webhooks', { key, body });
  return { app, receiver, human, agent, create, key: agent.key };
};

const events = ['question.created'];
const hookAt = (receiver: Receiver, path = '/') => ({ url: receiver.url(path), events });

test('creating a webhook answers with its secret, which is never told again', async (t) => {
  const { app, receiver, create, key } = await setUp(t);
  const names = ['question.closed', 'question.created', 'question.closed'];
  const made = await create({ url: receiver.url('/h'), events: names, extra: 1 });
  t.equal(made.status, 201);
  t.match(made.body, {
    id: /^[0-9a-f-]{36}$/,
    url: receiver.url('/h'),
    secret: /^[0-9a-f]{64}$/,
    active: true,
    disabled_reason: null,
    created_at: /^\d{4}-.*Z$/,
  });
  t.same(made.body.events, ['question.closed', 'question.created']);
  const { id, secret, signing_secret, ...shown } = made.body;
  t.equal(signing_secret, `whsec_${Buffer.from(secret, 'ascii').toString('base64')}`);
  t.notOk('warning' in shown);

  const one = await app.call('GET', `/api/webhooks/${id}`, { key });
  t.same(one.body, { id, ...shown, replay: null });
  const all = await app.call('GET', '/api/webhooks', { key });
  t.same(all.body, [{ id, ...shown }], 'a bare array');

  const [row] = await app.sql`select secret_sealed, url from webhooks`;
  const sealed = Buffer.from(row?.['secret_sealed'] as Uint8Array);
  t.notOk(sealed.includes(secret));
  t.notOk(sealed.includes(Buffer.from(secret, 'hex')));
});

test('a webhook of somebody else does not exist', async (t) => {
  const { app, receiver, create, human } = await setUp(t);
  const { body } = await create(hookAt(receiver));
  const stranger = await makeAgent(app, { human });
  const absent = '0190a000-0000-7000-8000-000000000000';
  for (const id of [body.id, absent, 'nonsense', '%00']) {
    for (const [method, path] of [
      ['GET', `/api/webhooks/${id}`],
      ['PATCH', `/api/webhooks/${id}`],
      ['DELETE', `/api/webhooks/${id}`],
      ['POST', `/api/webhooks/${id}/test`],
      ['GET', `/api/webhooks/${id}/deliveries`],
    ] as const) {
      const patch = method === 'PATCH' ? { body: { active: false } } : {};
      const answer = await app.call(method, path, { key: stranger.key, ...patch });
      t.equal(answer.status, 404, `${method} ${path}`);
      t.equal(answer.body.code, 'NOT_FOUND');
    }
  }
  t.same((await app.call('GET', '/api/webhooks', { key: stranger.key })).body, []);
  t.same((await app.call('GET', '/api/webhooks', { token: human.token })).body, []);
  const [row] = await app.sql`select active from webhooks`;
  t.equal(row?.['active'], true);
  t.equal(receiver.received.length, 0);
});

test('who may: humans and linked agents change, any agent reads, nobody else', async (t) => {
  const { app, receiver, human } = await setUp(t);
  const loner = await makeAgent(app);
  const body = hookAt(receiver);
  const refused = await app.call('POST', '/api/webhooks', { key: loner.key, body });
  t.equal(refused.status, 403);
  t.equal(refused.body.code, 'AGENT_NOT_LINKED');
  t.same((await app.call('GET', '/api/webhooks', { key: loner.key })).body, []);
  const own = await app.call('POST', '/api/webhooks', { token: human.token, body });
  t.equal(own.status, 201);
  t.equal((await app.call('GET', '/api/webhooks', { token: human.token })).body.length, 1);
  t.equal((await app.call('GET', '/api/webhooks')).status, 401);
  t.equal((await app.call('POST', '/api/webhooks', { body })).status, 401);
});

test('addresses against the rules are refused with their code', async (t) => {
  const { app, create } = await setUp(t);
  const cases = [
    ['http://hooks.acme.com/', 'HTTPS_REQUIRED'],
    ['not a url', 'INVALID_URL'],
    ['', 'INVALID_URL'],
    ['https://u:p@hooks.acme.com/', 'INVALID_URL'],
    [`https://hooks.acme.com/${'a'.repeat(2_100)}`, 'INVALID_URL'],
    ['https://localhost/', 'SSRF_BLOCKED'],
    ['https://10.0.0.1/', 'SSRF_BLOCKED'],
    ['https://169.254.169.254/latest/', 'SSRF_BLOCKED'],
    ['https://[::1]/', 'SSRF_BLOCKED'],
    ['https://hooks.acme.com:22/', 'SSRF_BLOCKED'],
  ] as const;
  for (const [url, code] of cases) {
    const { status, body } = await create({ url, events });
    t.equal(status, 400, url);
    t.equal(body.code, code, url);
    t.equal(body.fields[0].path, 'body.url');
  }
  t.equal((await app.sql`select from webhooks`).length, 0);
});

test('a name that does not resolve is taken with a warning', async (t) => {
  const { create } = await setUp(t);
  const made = await create({ url: 'https://no-such-host.forecast-receiver.com/', events });
  t.equal(made.status, 201);
  t.match(made.body.warning, /looked up before every attempt/);
});

test('unknown events are named together with the valid ones', async (t) => {
  const { receiver, create } = await setUp(t);
  const url = receiver.url('/');
  const wrong = await create({ url, events: ['question.created', 'question.eaten'] });
  t.equal(wrong.status, 400);
  t.equal(wrong.body.code, 'INVALID_EVENT');
  t.match(wrong.body.error, /"question\.eaten".*question\.created.*dispute\.resolved/);
  t.equal(wrong.body.valid_events.length, 9);
  for (const bad of [undefined, [], 'question.created', [1], null, {}]) {
    const { status, body } = await create({ url, events: bad });
    t.equal(status, 400);
    t.equal(body.code, 'INVALID_REQUEST', JSON.stringify(bad));
  }
  const both = await create({ url, events: Array(256).fill('question.created') });
  t.same([both.status, both.body.events], [201, ['question.created']]);
  t.equal((await create({ url, events: Array(257).fill('question.created') })).status, 400);
});

test('of twenty creations at once exactly ten take effect', async (t) => {
  const { app, receiver, create, human } = await setUp(t);
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, i) => create(hookAt(receiver, `/${i}`))),
  );
  const refused = answers.filter((one) => one.status === 409);
  t.equal(answers.filter((one) => one.status === 201).length, webhook_limit);
  t.equal(refused.length, 10);
  t.ok(refused.every((one) => one.body.code === 'WEBHOOK_LIMIT_REACHED'));
  t.equal((await app.sql`select from webhooks`).length, webhook_limit);

  const other = await makeAgent(app, { human });
  t.equal((await create(hookAt(receiver), other.key)).status, 201, 'the limit is one owner’s');
});

test('a deleted webhook makes room for another', async (t) => {
  const { app, receiver, create, key } = await setUp(t);
  const made = [];
  for (let i = 0; i < webhook_limit; i += 1) made.push(await create(hookAt(receiver)));
  t.equal((await create(hookAt(receiver))).status, 409);
  const { id } = made[4]?.body ?? {};
  const gone = await app.call('DELETE', `/api/webhooks/${id}`, { key });
  t.same([gone.status, gone.body], [200, { message: 'Webhook deleted.', deleted: true, id }]);
  t.equal((await app.call('DELETE', `/api/webhooks/${id}`, { key })).status, 404);
  t.equal((await create(hookAt(receiver))).status, 201);
});

test('url, events and active can be changed, one or all', async (t) => {
  const { app, receiver, create, key } = await setUp(t);
  const { id, secret, signing_secret, ...first } = (await create(hookAt(receiver))).body;
  const patch = (body: unknown) => app.call('PATCH', `/api/webhooks/${id}`, { key, body });
  const changed = await patch({ url: receiver.url('/new') });
  t.equal(changed.status, 200);
  t.match(changed.body, { id, ...first, url: receiver.url('/new'), updated_at: String });
  t.notOk('secret' in changed.body || 'signing_secret' in changed.body);
  t.match((await patch({ events: ['comment.reply', 'comment.reply'] })).body, {
    url: receiver.url('/new'),
    events: ['comment.reply'],
    active: true,
  });
  t.match((await patch({ active: false })).body, { events: ['comment.reply'], active: false });
  const all = { url: receiver.url('/'), events, active: true };
  t.match((await patch(all)).body, all);

  const refusals = [
    [{}, 'INVALID_REQUEST'],
    [{ active: 'no' }, 'INVALID_REQUEST'],
    [{ events: [] }, 'INVALID_REQUEST'],
    [{ events: ['x'] }, 'INVALID_EVENT'],
    [{ url: 'http://a.acme.com/' }, 'HTTPS_REQUIRED'],
    [{ url: 'https://10.1.1.1/', active: false }, 'SSRF_BLOCKED'],
    [{ url: 'https://' }, 'INVALID_URL'],
  ] as const;
  for (const [body, code] of refusals) t.equal((await patch(body)).body.code, code);
  t.match((await app.call('GET', `/api/webhooks/${id}`, { key })).body, all, 'nothing changed');
});

test('switching off skips what waits; deleting forgets it', async (t) => {
  const { app, receiver, create, key } = await setUp(t);
  const { id } = (await create(hookAt(receiver))).body;
  receiver.script('/', { status: 500 });
  await makeOpenQuestion(app);
  const path = `/api/webhooks/${id}`;
  const first = async () => (await app.call('GET', `${path}/deliveries`, { key })).body;
  await until('a failed attempt', async () => (await first()).deliveries[0]?.status === 'waiting');
  const listed = await first();
  t.match(listed, {
    total: 1,
    next_cursor: null,
    deliveries: [
      { event: 'question.created', attempts: 1, last_attempt: { attempt: 1, status: 500 } },
    ],
  });
  await app.call('PATCH', path, { key, body: { active: false } });
  t.equal((await first()).deliveries[0].status, 'skipped_disabled');
  await app.call('DELETE', path, { key });
  await until('nothing is left', async () => (await app.sql`select from deliveries`).length === 0);
  t.equal((await app.sql`select from attempts`).length, 0);
});

test('a published question reaches the receiver through relay and signer', async (t) => {
  const { app, receiver, create } = await setUp(t);
  await create(hookAt(receiver, '/live'));
  const question_id = await makeOpenQuestion(app);
  const [got] = await receiver.waitFor('/live', 1);
  const [logged] = await app.sql`select id, body, "offset" from events`;
  t.equal(got?.body.toString(), logged?.['body']);
  t.equal(JSON.parse(got?.body.toString() ?? '').data.question_id, question_id);
  t.equal(got?.headers['webhook-id'], logged?.['id']);
  t.equal(got?.headers['x-svc-offset'], String(logged?.['offset']));
});

test('a test sends a signed ping and tells what came back', async (t) => {
  const { app, receiver, create, key } = await setUp(t);
  const { id } = (await create(hookAt(receiver))).body;
  const ping = () => app.call('POST', `/api/webhooks/${id}/test`, { key });
  const hangUp = (response: ServerResponse): void => void response.socket?.destroy();
  // Twice, because a kept connection that breaks is replaced by a fresh one.
  receiver.script('/', { status: 202 }, { status: 500 }, hangUp, hangUp);
  t.match((await ping()).body, { delivered: true, status: 202, latency_ms: Number });
  t.match((await ping()).body, { delivered: false, status: 500 });
  t.match((await ping()).body, { delivered: false, status: null, error: 'connection_lost' });
  const [first] = receiver.received;
  t.match(first?.headers, {
    'x-svc-event': 'ping',
    'x-svc-signature': /^sha256=[0-9a-f]{64}$/,
    'webhook-signature': /^v1,/,
  });
  t.match(JSON.parse(first?.body.toString() ?? ''), { event: 'ping', data: { webhook_id: id } });
  t.equal((await app.sql`select from deliveries`).length, 0, 'a ping is no delivery');
});

test('deliveries are listed newest first, by page and by status', async (t) => {
  const { app, receiver, create, key } = await setUp(t);
  const { id } = (await create(hookAt(receiver))).body;
  const list = (query: string) =>
    app.call('GET', `/api/webhooks/${id}/deliveries${query}`, { key });
  for (let i = 0; i < 3; i += 1) await makeOpenQuestion(app);
  await receiver.waitFor('/', 3);
  await until('all delivered', async () => (await list('?status=delivered')).body.total === 3);
  const first = await list('?limit=2');
  t.equal(first.body.deliveries.length, 2);
  t.equal(first.body.total, 3);
  t.match(first.headers.get('link'), /rel="next"/);
  const second = await list(`?limit=2&cursor=${first.body.next_cursor}`);
  t.equal(second.body.next_cursor, null);
  const offsets = [...first.body.deliveries, ...second.body.deliveries].map((one) => one.offset);
  t.same(offsets, [3, 2, 1]);
  t.same((await list('?status=waiting')).body.deliveries, []);
  t.equal((await list('?status=lost')).status, 400);
  t.equal((await list('?cursor=xyz')).status, 400);
  t.equal((await list('?limit=0')).status, 400);
  t.equal((await list('?limit=101')).body.deliveries.length, 3);
});

test('the valid events are listed for everybody', async (t) => {
  const { app } = await setUp(t);
  const { status, body } = await app.call('GET', '/api/webhooks/events');
  t.equal(status, 200);
  t.equal(body.total, 9);
  t.ok(body.events.includes('question.closing_soon'));
});

test('changes are limited to a number a minute, the last is allowed, one more is not', async (t) => {
  const { app, receiver, create, key } = await setUp(t, { limit: 3 });
  const { id } = (await create(hookAt(receiver))).body;
  const path = `/api/webhooks/${id}`;
  t.equal((await app.call('PATCH', path, { key, body: { active: true } })).status, 200);
  t.equal((await app.call('POST', `${path}/test`, { key })).status, 200);
  const over = await create(hookAt(receiver));
  t.same([over.status, over.body.code], [429, 'RATE_LIMITED']);
  t.equal((await app.call('GET', '/api/webhooks', { key })).status, 200);
  t.equal((await app.call('DELETE', path, { key })).status, 200);
});
