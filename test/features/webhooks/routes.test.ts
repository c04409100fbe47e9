import { createHmac } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { Webhook } from 'standardwebhooks';
import { event_names } from '../../../src/features/events/catalogue.js';
import { webhook_limit } from '../../../src/features/webhooks/schema.js';
import { makeId } from '../../../src/kit/ids.js';
import { pluck } from '../../help/pluck.js';
import type { Received } from '../../help/receiver.js';
import { makeAgent, makeOpenQuestion } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { events, startHookApp } from './app.js';

/** The routes of webhooks. `targets.test.ts` covers refused addresses. */

const { app, receiver, human, readHead, begin } = await startHookApp(t);

t.test('creating a webhook answers with its secret, which is never shown again', async (t) => {
  const { call } = await begin();
  const names = ['question.closed', 'question.created', 'question.closed'];
  const made = await call('POST', '', { url: receiver.url('/h'), events: names, extra: 1 });
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
  t.same((await call('GET', `/${id}`)).body, { id, ...shown, replay: null });
  t.same((await call('GET', '')).body, [{ id, ...shown }], 'a bare array');
  const [row] = await app.sql`select secret_sealed from webhooks`;
  const sealed = Buffer.from(row?.['secret_sealed'] as Uint8Array);
  t.notOk(sealed.includes(secret));
  t.notOk(sealed.includes(Buffer.from(secret, 'hex')));
});

t.test('a webhook of somebody else does not exist', async (t) => {
  const { create } = await begin();
  const { id } = await create();
  const stranger = await makeAgent(app, { human });
  for (const one of [id, '0190a000-0000-7000-8000-000000000000', 'nonsense', '%00']) {
    for (const [method, path, send] of [
      ['GET', '', {}],
      ['PATCH', '', { body: { active: false } }],
      ['DELETE', '', {}],
      ['POST', '/test', {}],
      ['POST', '/rotate-secret', { body: { overlap_hours: 1 } }],
      ['POST', '/replay', { body: { after: 1 } }],
      ['GET', '/deliveries', {}],
    ] as const) {
      const answer = await app.call(method, `/api/webhooks/${one}${path}`, {
        key: stranger.key,
        ...send,
      });
      t.match(answer, { status: 404, body: { code: 'NOT_FOUND' } }, `${method} ${one}${path}`);
    }
  }
  t.same((await app.call('GET', '/api/webhooks', { key: stranger.key })).body, []);
  t.same((await app.call('GET', '/api/webhooks', { token: human.token })).body, []);
  t.match(await app.sql`select active from webhooks`, [{ active: true }]);
  t.equal(receiver.received.length, 0);
});

t.test('humans and linked agents change, any agent reads, nobody else', async (t) => {
  await begin();
  const loner = await makeAgent(app);
  const call = (method: string, as: object, body?: object) =>
    app.call(method, '/api/webhooks', { ...as, ...(body && { body }) });
  const body = { url: receiver.url('/'), events };
  t.match(await call('POST', { key: loner.key }, body), {
    status: 403,
    body: { code: 'AGENT_NOT_LINKED' },
  });
  t.same((await call('GET', { key: loner.key })).body, []);
  t.equal((await call('POST', { token: human.token }, body)).status, 201);
  t.equal((await call('GET', { token: human.token })).body.length, 1);
  t.equal((await call('GET', {})).status, 401);
  t.equal((await call('POST', {}, body)).status, 401);
});

t.test('unknown events are named together with the valid ones', async (t) => {
  const { call } = await begin();
  const create = (names: unknown) => call('POST', '', { url: receiver.url('/'), events: names });
  const wrong = await create(['question.created', 'question.eaten']);
  t.match(wrong, { status: 400, body: { code: 'INVALID_EVENT' } });
  t.match(wrong.body.error, /"question\.eaten".*question\.created.*dispute\.resolved/);
  t.same(wrong.body.valid_events, event_names);
  for (const bad of [undefined, [], 'question.created', [1], null, {}]) {
    const refused = { status: 400, body: { code: 'INVALID_REQUEST' } };
    t.match(await create(bad), refused, JSON.stringify(bad));
  }
  const both = await create(Array(256).fill('question.created'));
  t.same([both.status, both.body.events], [201, ['question.created']]);
  t.equal((await create(Array(257).fill('question.created'))).status, 400);
  const listed = (await app.call('GET', '/api/webhooks/events')).body;
  t.equal(listed.total, event_names.length);
  t.ok(listed.events.includes('question.closing_soon'));
});

t.test('of twenty creations at once exactly ten take effect', async (t) => {
  const { call } = await begin();
  const body = { url: receiver.url('/'), events };
  const answers = await Promise.all(Array.from({ length: 20 }, () => call('POST', '', body)));
  const made = answers.filter((one) => one.status === 201);
  const refused = answers.filter((one) => one.status === 409);
  t.equal(made.length, webhook_limit);
  t.equal(refused.length, 10);
  t.ok(refused.every((one) => one.body.code === 'WEBHOOK_LIMIT_REACHED'));
  t.equal((await app.sql`select from webhooks`).length, webhook_limit);
  const other = await makeAgent(app, { human });
  const theirs = await app.call('POST', '/api/webhooks', { key: other.key, body });
  t.equal(theirs.status, 201, 'the limit is one owner’s');

  const { id } = made[4]?.body ?? {};
  const gone = await call('DELETE', `/${id}`);
  t.same([gone.status, gone.body], [200, { message: 'Webhook deleted.', deleted: true, id }]);
  t.equal((await call('DELETE', `/${id}`)).status, 404);
  t.equal((await call('POST', '', body)).status, 201, 'there is room again');
});

t.test('url, events and active can be changed, one or all', async (t) => {
  const { call, create } = await begin();
  const { id, secret, signing_secret, ...first } = await create();
  const patch = (body: unknown) => call('PATCH', `/${id}`, body);
  const url = receiver.url('/new');
  const changed = await patch({ url });
  t.match(changed, { status: 200, body: { id, ...first, url, updated_at: String } });
  t.notOk('secret' in changed.body || 'signing_secret' in changed.body);
  t.match((await patch({ events: ['comment.reply', 'comment.reply'] })).body, {
    url,
    events: ['comment.reply'],
    active: true,
  });
  t.match((await patch({ active: false })).body, { events: ['comment.reply'], active: false });
  const all = { url: receiver.url('/'), events, active: true };
  t.match((await patch(all)).body, all);
  for (const [body, code] of [
    [{}, 'INVALID_REQUEST'],
    [{ active: 'no' }, 'INVALID_REQUEST'],
    [{ events: [] }, 'INVALID_REQUEST'],
    [{ events: ['x'] }, 'INVALID_EVENT'],
    [{ url: 'http://a.acme.com/' }, 'HTTPS_REQUIRED'],
    [{ url: 'https://10.1.1.1/', active: false }, 'SSRF_BLOCKED'],
    [{ url: 'https://' }, 'INVALID_URL'],
  ] as const) {
    t.equal((await patch(body)).body.code, code);
  }
  t.match((await call('GET', `/${id}`)).body, all, 'nothing changed');
});

t.test('switching off skips what waits; deleting forgets it', async (t) => {
  const { call, create, settled } = await begin();
  const { id } = await create();
  receiver.script('/', { status: 500 });
  await makeOpenQuestion(app);
  await settled(id, 1, 'waiting');
  t.match((await call('GET', `/${id}/deliveries`)).body, {
    total: 1,
    next_cursor: null,
    deliveries: [
      { event: 'question.created', attempts: 1, last_attempt: { attempt: 1, status: 500 } },
    ],
  });
  await call('PATCH', `/${id}`, { active: false });
  await settled(id, 1, 'skipped_disabled');
  await call('DELETE', `/${id}`);
  for (const table of ['deliveries', 'attempts'] as const) {
    await until(`no ${table} are left`, async () => {
      const left = await app.sql`select from ${app.sql(table)} where webhook_id = ${id}`;
      return left.length === 0;
    });
  }
});

t.test('a test sends a signed ping and tells what came back', async (t) => {
  const { call, create } = await begin();
  const { id } = await create();
  const ping = () => call('POST', `/${id}/test`);
  const hangUp = (response: ServerResponse): void => void response.socket?.destroy();
  // Hangs up twice, because the client replaces a broken kept-alive connection with a new one.
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
  t.equal((await call('GET', `/${id}/deliveries`)).body.total, 0, 'a ping is no delivery');
});

t.test('a filter lets through what is on each of its lists', async (t) => {
  const { call, create, settled } = await begin();
  const first = await makeOpenQuestion(app, { category: 'society' });
  await readHead();
  const both_events = { events: ['question.created', 'question.closed'] };
  const add = (name: string, filter: object | null) =>
    create({ filter, ...both_events }, `/${name}`);
  const all = await add('all', null);
  const question = await add('question', { question_ids: [first.toUpperCase()] });
  const category = await add('category', { categories: ['technology', 'technology'] });
  const both = await add('both', { question_ids: [first], categories: ['technology'] });
  const family = await add('family', { model_family: 'claude' });
  const sure = await add('sure', { min_confidence: 80.125 });
  t.same(pluck([all, question, category, family, sure], 'filter'), [
    null,
    { question_ids: [first] },
    { categories: ['technology'] },
    { model_family: ['claude'] },
    { min_confidence: 80.125 },
  ]);
  await app.call('POST', `/api/admin/questions/${first}/close`, { admin: true, body: {} });
  await settled(all.id, 1, 'delivered');
  await settled(question.id, 1, 'delivered');
  t.same([...receiver.of('/category'), ...receiver.of('/both')], []);

  t.equal((await call('PATCH', `/${both.id}`, { filter: null })).body.filter, null);
  const second = await makeOpenQuestion(app, { category: 'society' });
  await settled(both.id, 1, 'delivered');
  t.match(JSON.parse(receiver.of('/both')[0]?.body.toString() ?? ''), {
    data: { question_id: second },
  });
  await settled(question.id, 1, 'delivered');
  t.same(receiver.of('/family'), [], 'no event of a question names a family');
  t.same(receiver.of('/sure'), [], 'or a confidence');
});

t.test('a body that would be narrowed by what is not known here is refused', async (t) => {
  const { call, create, settled } = await begin();
  const { id } = await create();
  const body = { url: receiver.url('/'), events };
  for (const [name, value] of [
    ['scope', 'question'],
    ['topics', ['question:1']],
    ['filters', {}],
    ['question_ids', [makeId()]],
    ['categories', ['society']],
  ] as const) {
    const fields = [{ path: `body.${name}` }];
    const wanted = { status: 400, body: { code: 'INVALID_REQUEST', fields } };
    t.match(await call('POST', '', { ...body, [name]: value }), wanted, name);
    t.match(await call('PATCH', `/${id}`, { active: true, [name]: value }), wanted, name);
  }
  const inside = await call('POST', '', { ...body, filter: { question_id: makeId() } });
  t.match(inside.body.fields, [{ path: 'body.filter.question_id' }]);
  t.match(inside.body.error, /body\.filter\.question_id – .*filter with question_ids/);
  t.equal((await call('GET', '')).body.length, 1, 'nothing was stored');

  const first = await makeOpenQuestion(app);
  await readHead();
  const scoped = await create({ scope_question_id: first, name: 'ignored' }, '/scoped');
  t.same(scoped.filter, { question_ids: [first] });
  t.notOk('name' in scoped);
  const twice = { scope_question_id: first, filter: { question_ids: [first] } };
  t.match(await call('PATCH', `/${id}`, twice), {
    status: 400,
    body: { fields: [{ path: 'body.scope_question_id' }] },
  });
  const filter = { categories: ['society'] };
  const changed = await call('PATCH', `/${id}`, { scope_question_id: first, filter });
  t.same(changed.body.filter, { question_ids: [first], ...filter });
  t.equal((await call('PATCH', `/${id}`, { scope_question_id: 'x' })).status, 400);
  const closed = await call('PATCH', `/${scoped.id}`, { events: ['question.closed'] });
  t.same(closed.body.filter, { question_ids: [first] }, 'stays where nothing is said of it');
  await app.call('POST', `/api/admin/questions/${first}/close`, { admin: true, body: {} });
  await settled(scoped.id, 1, 'delivered');
});

t.test('a filter that names nothing that exists is refused', async (t) => {
  const { call } = await begin();
  for (const [filter, status, code] of [
    [{ categories: ['sports'] }, 400, 'INVALID_FILTER'],
    [{ model_family: ['abacus'] }, 400, 'INVALID_REQUEST'],
    [{ question_ids: ['x'] }, 400, 'INVALID_REQUEST'],
    [{ question_ids: [] }, 400, 'INVALID_REQUEST'],
    [{ question_ids: Array(101).fill(makeId()) }, 400, 'INVALID_REQUEST'],
    ['technology', 400, 'INVALID_REQUEST'],
    [{ question_ids: Array(100).fill(makeId()) }, 201, undefined],
  ] as const) {
    const answer = await call('POST', '', { url: receiver.url('/'), events, filter });
    t.same([answer.status, answer.body.code], [status, code], JSON.stringify(filter).slice(0, 80));
    if (code === 'INVALID_FILTER') t.equal(answer.body.fields[0].path, 'body.filter.categories');
  }
});

const signedWith = (secret: string, { body }: Received): string =>
  `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;

t.test('while a secret is rotated both sign, and afterwards only the new one', async (t) => {
  const { call, create } = await begin();
  const { id, secret: first } = await create();
  const rotate = (overlap_hours: unknown) =>
    call('POST', `/${id}/rotate-secret`, { overlap_hours });
  const received = async (count: number) =>
    (await receiver.waitFor('/', count))[count - 1] as Received;
  const rotated = await rotate(168);
  t.equal(rotated.status, 200);
  const { secret: second, signing_secret, old_secret_expires_at } = rotated.body;
  t.match(second, /^[0-9a-f]{64}$/);
  t.not(second, first);
  const left_h = (Date.parse(old_secret_expires_at) - Date.now()) / 3_600_000;
  t.ok(left_h > 167 && left_h <= 168.1, String(left_h));
  t.notOk('secret' in (await call('GET', `/${id}`)).body);

  await makeOpenQuestion(app);
  const both = await received(1);
  t.match(both.headers, {
    'x-svc-signature': signedWith(first, both),
    'x-svc-signature-next': signedWith(second, both),
    'webhook-signature': /^v1,\S+ v1,\S+$/,
  });
  for (const key of [signing_secret, `whsec_${Buffer.from(first, 'ascii').toString('base64')}`]) {
    const headers = both.headers as Record<string, string>;
    t.doesNotThrow(() => new Webhook(key).verify(both.body, headers));
  }
  await call('POST', `/${id}/test`);
  const ping = await received(2);
  t.equal(ping.headers['x-svc-signature'], signedWith(first, ping), 'a ping too');

  // The overlap of two secrets ends on its own, and an overlap of 0 ends immediately.
  await app.sql`update webhook_old_secrets set until = now() - interval '1 second'`;
  await makeOpenQuestion(app);
  const alone = await received(3);
  t.equal(alone.headers['x-svc-signature'], signedWith(second, alone));
  t.notOk(alone.headers['x-svc-signature-next']);
  const third = (await rotate(0)).body;
  t.equal(third.old_secret_expires_at, null);
  await makeOpenQuestion(app);
  const last = await received(4);
  t.equal(last.headers['x-svc-signature'], signedWith(third.secret, last));
  for (const wrong of [-1, 169, 1.5, '1']) {
    t.match(await rotate(wrong), { status: 400, body: { code: 'INVALID_REQUEST' } }, String(wrong));
  }
});

t.test('each secret signs until the time that was promised for it', async (t) => {
  const { call, create } = await begin();
  const { id, secret: first } = await create();
  const rotate = async (overlap_hours: number): Promise<string> =>
    (await call('POST', `/${id}/rotate-secret`, { overlap_hours })).body.secret;
  const second = await rotate(100);
  const third = await rotate(1);
  const stolen = await rotate(24);
  const newest = await rotate(0);
  const pinged = async (count: number): Promise<Received> => {
    await call('POST', `/${id}/test`);
    return (await receiver.waitFor('/', count))[count - 1] as Received;
  };
  const standardOf = (secret: string): string =>
    `whsec_${Buffer.from(secret, 'ascii').toString('base64')}`;
  const verifies = (secret: string, { body, headers }: Received): boolean => {
    try {
      new Webhook(standardOf(secret)).verify(body, headers as Record<string, string>);
      return true;
    } catch {
      return false;
    }
  };
  const all = await pinged(1);
  t.same(
    [first, second, third, stolen, newest].map((secret) => verifies(secret, all)),
    [true, true, true, false, true],
    'one that was rotated with no overlap ends at once, and the promises before it hold',
  );
  t.match(all.headers, {
    'x-svc-signature': signedWith(first, all),
    'x-svc-signature-next': signedWith(newest, all),
  });
  t.match((await call('GET', `/${id}`)).body.old_secret_expires_at, String);
  // Two hours later only the second secret has expired.
  await app.sql`update webhook_old_secrets set until = until - interval '2 hours'`;
  const later = await pinged(2);
  t.same(
    [first, second, third, newest].map((secret) => verifies(secret, later)),
    [true, false, true, true],
  );
});

t.test('changes are limited by the minute: the last is allowed, one more is not', async (t) => {
  const { begin: beginOther } = await startHookApp(t, { LIMIT_WEBHOOKS: '3' });
  const { call, create } = await beginOther();
  const { id, url } = await create();
  t.equal((await call('PATCH', `/${id}`, { active: true })).status, 200);
  t.equal((await call('POST', `/${id}/test`)).status, 200);
  t.match(await call('POST', '', { url, events }), { status: 429, body: { code: 'RATE_LIMITED' } });
  t.equal((await call('GET', '')).status, 200);
  t.equal((await call('DELETE', `/${id}`)).status, 200);
});
