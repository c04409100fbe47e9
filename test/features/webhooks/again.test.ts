import { createHmac } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { type Test, test } from 'tap';
import { makeId } from '../../../src/kit/ids.js';
import { startApp } from '../../help/app.js';
import { type Received, startReceiver } from '../../help/receiver.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../../help/story.js';
import { until } from '../../help/until.js';

/** Filters, rotation of the secret, one delivery, sending it again, and replays. */

const setUp = async (t: Test) => {
  const receiver = await startReceiver();
  t.teardown(() => receiver.close());
  const app = await startApp(t, {
    env: {
      WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
      WEBHOOK_CA_FILE: receiver.ca_file,
      LIMIT_WEBHOOKS: '1000000',
    },
  });
  const { key } = await makeAgent(app, { human: await makeHuman(app) });
  const call = (method: string, path: string, body?: unknown) =>
    app.call(method as 'GET', `/api/webhooks${path}`, {
      key,
      ...(body === undefined ? {} : { body }),
    });
  const create = async (body: Readonly<Record<string, unknown>> = {}, path = '/') => {
    const events = ['question.created'];
    const made = await call('POST', '', { url: receiver.url(path), events, ...body });
    t.equal(made.status, 201, JSON.stringify(made.body));
    return made.body;
  };
  /** The deliveries of a webhook, oldest first, once all are in one of the states. */
  const settled = (id: string, count: number, ...states: readonly string[]) =>
    until(`${count} deliveries ${states.join(' or ')}`, async () => {
      const { deliveries } = (await call('GET', `/${id}/deliveries?limit=100`)).body;
      const is_done =
        deliveries.length === count &&
        deliveries.every((one: { status: string }) => states.includes(one.status));
      return is_done && deliveries.reverse();
    });
  const inLog = (count: number) =>
    until(`${count} events in the log`, async () => {
      const [head] = await app.sql`select "offset" from log_head`;
      return head?.['offset'] === count;
    });
  return { app, receiver, call, create, settled, inLog };
};

test('a filter lets through what is on each of its lists', async (t) => {
  const { app, receiver, call, create, settled, inLog } = await setUp(t);
  const first = await makeOpenQuestion(app, { category: 'society' });
  await inLog(1);
  const filters = {
    all: null,
    question: { question_ids: [first.toUpperCase()] },
    category: { categories: ['technology', 'technology'] },
    both: { question_ids: [first], categories: ['technology'] },
    family: { model_family: 'claude' },
    sure: { min_confidence: 80 },
  };
  const made: Record<string, { id: string; filter: unknown }> = {};
  for (const [name, filter] of Object.entries(filters)) {
    const events = ['question.created', 'question.closed'];
    made[name] = await create({ filter, events }, `/${name}`);
  }
  t.same(made['question']?.filter, { question_ids: [first] });
  t.same(made['category']?.filter, { categories: ['technology'] });
  t.same(made['family']?.filter, { model_family: ['claude'] });
  t.same(made['sure']?.filter, { min_confidence: 80 });
  t.equal(made['all']?.filter, null);

  await app.call('POST', `/api/admin/questions/${first}/close`, { admin: true, body: {} });
  await settled(made['all']?.id ?? '', 1, 'delivered');
  await settled(made['question']?.id ?? '', 1, 'delivered');
  t.same(receiver.of('/category'), []);
  t.same(receiver.of('/both'), []);

  const changed = await call('PATCH', `/${made['both']?.id}`, { filter: null });
  t.equal(changed.body.filter, null);
  const second = await makeOpenQuestion(app, { category: 'society' });
  await settled(made['both']?.id ?? '', 1, 'delivered');
  t.match(JSON.parse(receiver.of('/both')[0]?.body.toString() ?? ''), {
    data: { question_id: second },
  });
  await settled(made['question']?.id ?? '', 1, 'delivered');
  t.same(receiver.of('/family'), [], 'no event of a question names a family');
  t.same(receiver.of('/sure'), [], 'or a confidence');
});

test('a family filter passes the predictions of its families, and nothing that names none', async (t) => {
  const { app, receiver, create, settled } = await setUp(t);
  const { planDeliveries } = await import('../../../src/features/webhooks/index.js');
  const events = ['prediction.placed', 'question.closed'];
  const { id } = await create({ events, filter: { model_family: ['claude', 'gpt'] } });
  const said = [
    ['prediction.placed', { model_family: 'claude' }],
    ['prediction.placed', { model_family: 'llama' }],
    ['prediction.placed', { model_family: 'gpt' }],
    ['question.closed', {}],
  ] as const;
  await app.sql.begin(async (tx) => {
    const [head] = await tx<{ offset: number }[]>`
      update log_head set "offset" = "offset" + ${said.length} returning "offset"`;
    const first = (head?.offset ?? 0) - said.length + 1;
    for (const [index, [event, data]] of said.entries()) {
      const body = JSON.stringify({ event, data, timestamp: '2026-01-02T03:04:05.000Z' });
      await tx`
        insert into events ("offset", recorded_on, recorded_at, id, event, body)
        values (${first + index}, (now() at time zone 'UTC')::date, now(), ${makeId()},
          ${event}, ${body})`;
    }
    await planDeliveries(tx, { first, last: head?.offset ?? 0 });
  });
  await settled(id, 2, 'delivered');
  t.notOk(receiver.received.some((one) => /llama|question\.closed/.test(String(one.body))));
});

test('a body that would be narrowed by what is not known here is refused', async (t) => {
  const { app, receiver, call, create, settled, inLog } = await setUp(t);
  const { id } = await create();
  const body = { url: receiver.url('/'), events: ['question.created'] };
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
  await inLog(1);
  const scoped = await create({ scope_question_id: first, name: 'ignored' }, '/scoped');
  t.same(scoped.filter, { question_ids: [first] });
  t.notOk('name' in scoped);
  const both = { scope_question_id: first, filter: { question_ids: [first] } };
  t.match(await call('PATCH', `/${id}`, both), {
    status: 400,
    body: { fields: [{ path: 'body.scope_question_id' }] },
  });
  const changed = await call('PATCH', `/${id}`, {
    scope_question_id: first,
    filter: { categories: ['society'] },
  });
  t.same(changed.body.filter, { question_ids: [first], categories: ['society'] });
  t.equal((await call('PATCH', `/${id}`, { scope_question_id: 'x' })).status, 400);
  const closed = await call('PATCH', `/${scoped.id}`, { events: ['question.closed'] });
  t.same(closed.body.filter, { question_ids: [first] }, 'stays where nothing is said of it');
  await app.call('POST', `/api/admin/questions/${first}/close`, { admin: true, body: {} });
  await settled(scoped.id, 1, 'delivered');
});

test('a filter that names nothing that exists is refused', async (t) => {
  const { receiver, call } = await setUp(t);
  const refused = async (filter: unknown) => {
    const url = receiver.url('/');
    const { status, body } = await call('POST', '', { url, events: ['question.created'], filter });
    return [status, body.code, body.fields?.[0]?.path];
  };
  const wrong = [400, 'INVALID_REQUEST'];
  const unknown = [400, 'INVALID_FILTER', 'body.filter.categories'];
  t.same(await refused({ categories: ['sports'] }), unknown);
  t.same((await refused({ model_family: ['abacus'] })).slice(0, 2), wrong);
  t.same((await refused({ question_ids: ['x'] })).slice(0, 2), wrong);
  t.same((await refused({ question_ids: [] })).slice(0, 2), wrong);
  t.same((await refused({ question_ids: Array(101).fill(makeId()) })).slice(0, 2), wrong);
  t.same((await refused('technology')).slice(0, 2), wrong);
  t.same(await refused({ question_ids: Array(100).fill(makeId()) }), [201, undefined, undefined]);
});

const signedWith = (secret: string, { body }: Received): string =>
  `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;

test('while a secret is rotated both sign, and afterwards only the new one', async (t) => {
  const { app, receiver, call, create } = await setUp(t);
  const { id, secret: first } = await create();
  const rotated = await call('POST', `/${id}/rotate-secret`, { overlap_hours: 168 });
  t.equal(rotated.status, 200);
  const { secret: second, signing_secret, old_secret_expires_at } = rotated.body;
  t.match(second, /^[0-9a-f]{64}$/);
  t.not(second, first);
  const left_h = (Date.parse(old_secret_expires_at) - Date.now()) / 3_600_000;
  t.ok(left_h > 167 && left_h <= 168.1, String(left_h));
  t.notOk('secret' in (await call('GET', `/${id}`)).body);

  await makeOpenQuestion(app);
  const [both] = await receiver.waitFor('/', 1);
  t.match(both?.headers, {
    'x-svc-signature': signedWith(first, both as Received),
    'x-svc-signature-next': signedWith(second, both as Received),
    'webhook-signature': /^v1,\S+ v1,\S+$/,
  });
  const verify = (one: Received | undefined, key: string) =>
    new Webhook(key).verify(one?.body ?? '', one?.headers as Record<string, string>);
  t.doesNotThrow(() => verify(both, signing_secret));
  t.doesNotThrow(() => verify(both, `whsec_${Buffer.from(first, 'ascii').toString('base64')}`));

  await call('POST', `/${id}/test`);
  const [, ping] = await receiver.waitFor('/', 2);
  t.equal(ping?.headers['x-svc-signature'], signedWith(first, ping as Received), 'a ping too');

  // The overlap ends by itself, and an overlap of nothing ends at once.
  await app.sql`update webhooks set old_secret_until = now() - interval '1 second'`;
  await makeOpenQuestion(app);
  const [, , alone] = await receiver.waitFor('/', 3);
  t.equal(alone?.headers['x-svc-signature'], signedWith(second, alone as Received));
  t.notOk(alone?.headers['x-svc-signature-next']);
  const third = (await call('POST', `/${id}/rotate-secret`, { overlap_hours: 0 })).body;
  t.equal(third.old_secret_expires_at, null);
  await makeOpenQuestion(app);
  const [, , , last] = await receiver.waitFor('/', 4);
  t.equal(last?.headers['x-svc-signature'], signedWith(third.secret, last as Received));

  for (const overlap_hours of [-1, 169, 1.5, '1']) {
    const refused = await call('POST', `/${id}/rotate-secret`, { overlap_hours });
    t.same([refused.status, refused.body.code], [400, 'INVALID_REQUEST'], String(overlap_hours));
  }
  const absent = await call('POST', `/${makeId()}/rotate-secret`, { overlap_hours: 1 });
  t.same([absent.status, absent.body.code], [404, 'NOT_FOUND']);
});

test('a delivery shows its attempts with the beginning of each answer', async (t) => {
  const { app, receiver, call, create, settled } = await setUp(t);
  const { id } = await create();
  receiver.script('/', { status: 500, body: 'x'.repeat(3_000) });
  await makeOpenQuestion(app);
  const [failed] = await settled(id, 1, 'waiting');
  const shown = await call('GET', `/${id}/deliveries/${failed.id}`);
  t.equal(shown.status, 200);
  const { history, ...delivery } = shown.body;
  const { last_attempt: _, ...listed } = failed;
  t.same(delivery, listed);
  t.match(history, [
    { attempt: 1, status: 500, error: null, answer: 'x'.repeat(1_024), latency_ms: Number },
  ]);
  for (const did of [makeId(), 'nonsense', failed.event_id]) {
    const absent = await call('GET', `/${id}/deliveries/${did}`);
    t.same([absent.status, absent.body.code], [404, 'NOT_FOUND'], did);
  }
  const other = await create();
  const foreign = await call('GET', `/${other.id}/deliveries/${failed.id}`);
  t.equal(foreign.status, 404);
});

test('a delivery is sent again on demand, with the same webhook-id', async (t) => {
  const { app, receiver, call, create, settled } = await setUp(t);
  const { id } = await create();
  await makeOpenQuestion(app);
  const [first] = await settled(id, 1, 'delivered');
  const path = `/${id}/deliveries/${first.id}/redeliver`;
  const again = await call('POST', path);
  t.equal(again.status, 202);
  t.match(again.body, { id: first.id, status: 'pending', attempts: 0, replays: 1 });
  const [one, two] = await receiver.waitFor('/', 2);
  t.equal(two?.headers['webhook-id'], one?.headers['webhook-id']);
  t.equal(two?.headers['x-svc-delivery'], one?.headers['x-svc-delivery']);
  t.same(two?.body, one?.body);
  await settled(id, 1, 'delivered');
  const { history } = (await call('GET', `/${id}/deliveries/${first.id}`)).body;
  t.equal(history.length, 2);

  t.equal((await call('POST', `/${id}/deliveries/${makeId()}/redeliver`)).status, 404);
  await call('PATCH', `/${id}`, { active: false });
  const off = await call('POST', path);
  t.same([off.status, off.body.code], [409, 'WEBHOOK_INACTIVE']);
  t.equal(receiver.of('/').length, 2);
});

test('a gap is listed, and cannot be sent as one', async (t) => {
  const { app, call, create } = await setUp(t);
  const { id } = await create();
  const event_id = makeId();
  await app.sql`
    insert into deliveries
      (webhook_id, event_id, id, event_offset, recorded_on, state, next_at, gap_until_offset,
        gap_count, gap_reason)
    values (${id}, ${event_id}, delivery_id(${id}, ${event_id}), 5, '2026-01-02', 'gap', now(), 90,
      17, 'backlog')`;
  const { deliveries } = (await call('GET', `/${id}/deliveries?status=gap`)).body;
  t.match(deliveries, [
    { event: null, gap: { from_offset: 5, until_offset: 90, count: 17, reason: 'backlog' } },
  ]);
  const refused = await call('POST', `/${id}/deliveries/${deliveries[0].id}/redeliver`);
  t.same([refused.status, refused.body.code], [400, 'INVALID_REQUEST']);
});

test('what came while a webhook was off is replayed by offsets or by times', async (t) => {
  const { app, receiver, call, create, settled } = await setUp(t);
  const { id } = await create();
  await call('PATCH', `/${id}`, { active: false });
  for (let i = 0; i < 3; i += 1) await makeOpenQuestion(app);
  await settled(id, 3, 'skipped_disabled');
  const off = await call('POST', `/${id}/replay`, { after: 0 });
  t.same([off.status, off.body.code], [409, 'WEBHOOK_INACTIVE']);
  t.equal((await call('GET', `/${id}`)).body.replay, null);
  await call('PATCH', `/${id}`, { active: true });

  const part = await call('POST', `/${id}/replay`, { after: 1, until_offset: 2 });
  t.equal(part.status, 202);
  t.match(part.body, { webhook_id: id, after: 1, until_offset: 2, status: 'running', queued: 0 });
  const isDone = async () => (await call('GET', `/${id}`)).body.replay.status === 'done';
  await until('the part is replayed', isDone);
  const [second] = await receiver.waitFor('/', 1);
  t.equal(second?.headers['x-svc-offset'], '2');
  t.equal((await call('GET', `/${id}`)).body.replay.queued, 1);

  const since = new Date(Date.now() - 3_600_000).toISOString();
  const all = await call('POST', `/${id}/replay`, { since, until: new Date().toISOString() });
  t.match(all.body, { after: 0, until_offset: 3 });
  await until('all is replayed', isDone);
  await settled(id, 3, 'delivered');
  const offsets = receiver.of('/').map((one) => Number(one.headers['x-svc-offset']));
  t.same(offsets.slice(1).sort(), [1, 2, 3]);

  const nothing = await call('POST', `/${id}/replay`, { after: 900, until_offset: 1_000 });
  t.match(nothing.body, { after: 3, until_offset: 3, status: 'done' });
});

test('a replay needs one kind of range, of the last seven days, and one at a time', async (t) => {
  const { app, call, create, inLog } = await setUp(t);
  const { id } = await create();
  for (let i = 0; i < 2; i += 1) await makeOpenQuestion(app);
  await inLog(2);
  const at = (days: number): string => new Date(Date.now() + days * 86_400_000).toISOString();
  const refusedAt = async (body: unknown) => {
    const { status, body: said } = await call('POST', `/${id}/replay`, body);
    return [status, said.code, said.fields?.[0]?.path];
  };
  const wrong = (path: string) => [400, 'INVALID_REQUEST', `body.${path}`];
  t.same(await refusedAt({}), wrong('since'));
  t.same(await refusedAt({ since: at(-1), after: 0 }), wrong('since'));
  t.same(await refusedAt({ until: at(0) }), wrong('since'));
  t.same(await refusedAt({ since: at(-1), until_offset: 5 }), wrong('since'));
  t.same(await refusedAt({ since: at(-7.1) }), wrong('since'));
  t.same(await refusedAt({ since: at(-1), until: at(-2) }), wrong('until'));
  t.same(await refusedAt({ after: 2, until_offset: 1 }), wrong('until_offset'));
  t.same(await refusedAt({ after: -1 }), wrong('after'));
  t.same(await refusedAt({ since: 'yesterday' }), wrong('since'));
  await app.sql`
    update events set recorded_at = now() - interval '7 days 1 hour' where "offset" = 1`;
  t.same(await refusedAt({ after: 0 }), wrong('after'));

  await app.sql`
    insert into webhook_replays (webhook_id, id, after_offset, next_offset, until_offset)
    values (${id}, ${makeId()}, 1, 2, 9000000000)`;
  const running = await call('POST', `/${id}/replay`, { after: 1 });
  t.same([running.status, running.body.code], [409, 'REPLAY_RUNNING']);
  await app.sql`update webhook_replays set done_at = now()`;
  t.equal((await call('POST', `/${id}/replay`, { after: 1 })).status, 202);
  t.equal((await call('POST', `/${makeId()}/replay`, { after: 1 })).status, 404);
});
