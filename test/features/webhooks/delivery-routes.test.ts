import { makeId } from '../../../src/kit/ids.js';
import { makeOpenQuestion } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { startHookApp } from './app.js';

/** How owners read their deliveries and send them again. */

const { app, receiver, readHead, begin } = await startHookApp(t);

const publish = async (count: number): Promise<void> => {
  for (let n = 0; n < count; n += 1) await makeOpenQuestion(app);
};

t.test('deliveries are listed newest first, by page and by status', async (t) => {
  const head = await readHead();
  const { call, create, settled } = await begin();
  const { id } = await create();
  const list = (query: string) => call('GET', `/${id}/deliveries${query}`);
  await publish(3);
  await settled(id, 3, 'delivered');
  const first = await list('?limit=2');
  t.match(first.body, { total: 3, deliveries: { length: 2 } });
  t.match(first.headers.get('link'), /rel="next"/);
  const second = await list(`?limit=2&cursor=${first.body.next_cursor}`);
  t.equal(second.body.next_cursor, null);
  const offsets = [...first.body.deliveries, ...second.body.deliveries].map((one) => one.offset);
  t.same(offsets, [head + 3, head + 2, head + 1]);
  t.equal((await list('?status=delivered')).body.total, 3);
  t.same((await list('?status=waiting')).body.deliveries, []);
  for (const wrong of ['?status=lost', '?cursor=xyz', '?limit=0']) {
    t.equal((await list(wrong)).status, 400, wrong);
  }
  t.equal((await list('?limit=101')).body.deliveries.length, 3);
});

t.test('a delivery shows its attempts with the beginning of each answer', async (t) => {
  const { call, create, settled } = await begin();
  const { id } = await create();
  receiver.script('/', { status: 500, body: 'x'.repeat(3_000) });
  await publish(1);
  const [failed] = await settled(id, 1, 'waiting');
  const shown = await call('GET', `/${id}/deliveries/${failed.id}`);
  t.equal(shown.status, 200);
  const { history, ...delivery } = shown.body;
  const { last_attempt: _, ...listed } = failed;
  t.same(delivery, listed);
  t.match(history, [
    { attempt: 1, status: 500, error: null, answer: 'x'.repeat(1_024), latency_ms: Number },
  ]);
  const other = await create();
  for (const [hook, did] of [
    [id, makeId()],
    [id, 'nonsense'],
    [id, failed.event_id],
    [other.id, failed.id],
  ]) {
    const absent = await call('GET', `/${hook}/deliveries/${did}`);
    t.match(absent, { status: 404, body: { code: 'NOT_FOUND' } }, did);
  }
});

t.test('a delivery is sent again on demand, with the same webhook-id', async (t) => {
  const { call, create, settled } = await begin();
  const { id } = await create();
  await publish(1);
  const [first] = await settled(id, 1, 'delivered');
  const path = `/${id}/deliveries/${first.id}/redeliver`;
  const again = await call('POST', path);
  t.match(again, {
    status: 202,
    body: { id: first.id, status: 'pending', attempts: 0, replays: 1 },
  });
  const [one, two] = await receiver.waitFor('/', 2);
  t.equal(two?.headers['webhook-id'], one?.headers['webhook-id']);
  t.equal(two?.headers['x-svc-delivery'], one?.headers['x-svc-delivery']);
  t.same(two?.body, one?.body);
  await settled(id, 1, 'delivered');
  const { history } = (await call('GET', `/${id}/deliveries/${first.id}`)).body;
  t.equal(history.length, 2);
  t.equal((await call('POST', `/${id}/deliveries/${makeId()}/redeliver`)).status, 404);
  await call('PATCH', `/${id}`, { active: false });
  t.match(await call('POST', path), { status: 409, body: { code: 'WEBHOOK_INACTIVE' } });
  t.equal(receiver.of('/').length, 2);
});

t.test('a gap is listed, and cannot be sent as one', async (t) => {
  const { call, create } = await begin();
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
  t.match(refused, { status: 400, body: { code: 'INVALID_REQUEST' } });
});

t.test('what came while a webhook was off is replayed by offsets or by times', async (t) => {
  const base = await readHead();
  const { call, create, settled } = await begin();
  const { id } = await create();
  const replay = (range: object) => call('POST', `/${id}/replay`, range);
  await call('PATCH', `/${id}`, { active: false });
  const since = new Date().toISOString();
  await publish(3);
  await settled(id, 3, 'skipped_disabled');
  t.match(await replay({ after: 0 }), { status: 409, body: { code: 'WEBHOOK_INACTIVE' } });
  t.equal((await call('GET', `/${id}`)).body.replay, null);
  await call('PATCH', `/${id}`, { active: true });

  const part = { after: base + 1, until_offset: base + 2 };
  t.match(await replay(part), {
    status: 202,
    body: { webhook_id: id, ...part, status: 'running', queued: 0 },
  });
  const isDone = async () => (await call('GET', `/${id}`)).body.replay.status === 'done';
  await until('the part is replayed', isDone);
  const [second] = await receiver.waitFor('/', 1);
  t.equal(second?.headers['x-svc-offset'], String(base + 2));
  t.equal((await call('GET', `/${id}`)).body.replay.queued, 1);

  const all = await replay({ since, until: new Date().toISOString() });
  t.match(all.body, { after: base, until_offset: base + 3 });
  await until('all is replayed', isDone);
  await settled(id, 3, 'delivered');
  const offsets = receiver.of('/').map((one) => Number(one.headers['x-svc-offset']) - base);
  t.same(offsets.slice(1).sort(), [1, 2, 3]);
  const nothing = await replay({ after: base + 900, until_offset: base + 1_000 });
  t.match(nothing.body, { after: base + 3, until_offset: base + 3, status: 'done' });
});

t.test('a replay sends deliveries that wait for a retry at once, also in a pause', async (t) => {
  const base = await readHead();
  const { call, create, settled } = await begin();
  const { id } = await create();
  await publish(1);
  const [first] = await settled(id, 1, 'delivered');
  await app.sql`
    update deliveries set state = 'waiting', attempts = 3, next_at = now() + interval '5 h',
      delivered_at = null
    where id = ${first.id}`;
  await app.sql`
    update webhooks set trips = 3, paused_until = now() + interval '1 h' where id = ${id}`;
  t.equal((await call('POST', `/${id}/replay`, { after: base })).status, 202);
  const [, again] = await receiver.waitFor('/', 2);
  t.equal(again?.headers['x-svc-offset'], String(base + 1));
  await settled(id, 1, 'delivered');
});

t.test('a replay needs one kind of range, of the last seven days, and one at a time', async (t) => {
  const { call, create } = await begin();
  const { id } = await create();
  await publish(2);
  const head = await readHead();
  const replay = (range: object) => call('POST', `/${id}/replay`, range);
  const at = (days: number): string => new Date(Date.now() + days * 86_400_000).toISOString();
  const isRefused = async (range: object, path: string): Promise<void> => {
    const { status, body } = await replay(range);
    const refused = [status, body.code, body.fields?.[0]?.path];
    t.same(refused, [400, 'INVALID_REQUEST', `body.${path}`], JSON.stringify(range));
  };
  for (const [range, path] of [
    [{}, 'since'],
    [{ since: at(-1), after: 0 }, 'since'],
    [{ until: at(0) }, 'since'],
    [{ since: at(-1), until_offset: 5 }, 'since'],
    [{ since: at(-7.1) }, 'since'],
    [{ since: at(-1), until: at(-2) }, 'until'],
    [{ after: 2, until_offset: 1 }, 'until_offset'],
    [{ after: -1 }, 'after'],
    [{ since: 'yesterday' }, 'since'],
  ] as const) {
    await isRefused(range, path);
  }
  await app.sql`
    update events set recorded_at = now() - interval '7 days 1 hour' where "offset" < ${head}`;
  await isRefused({ after: 0 }, 'after');

  const after = head - 1;
  await app.sql`
    insert into webhook_replays (webhook_id, id, after_offset, next_offset, until_offset)
    values (${id}, ${makeId()}, ${after}, ${head}, 9000000000)`;
  t.match(await replay({ after }), { status: 409, body: { code: 'REPLAY_RUNNING' } });
  await app.sql`update webhook_replays set done_at = now()`;
  t.equal((await replay({ after })).status, 202);
});
