import { consumer_schema } from '../../../src/features/consumers/schema.js';
import { compileCheck } from '../../../src/http/validation.js';
import { pluck } from '../../help/pluck.js';
import { makeAgent, makeHuman, suspend } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { offsetsOf, questionId, serveConsumers } from './world.js';

/** Managing consumers, and every possible refusal. */

const world = await serveConsumers(t);
const { app, log, as, take, ack, makeCaller, human } = world;
const checkConsumer = compileCheck(consumer_schema, 'answer');

t.beforeEach(async () => {
  await app.sql`delete from consumers`;
});

t.test('a consumer is created once, and a repeat changes it without moving it', async (t) => {
  await log.write(5);
  const filter = { events: ['prediction.placed'], model_family: 'claude' };
  const created = await as('PUT', '/news', { topics: ['all', 'all'], filter, start: 2 });
  t.equal(created.status, 201);
  t.equal(checkConsumer(created.body), null);
  t.match(created.body, {
    name: 'news',
    topics: ['all'],
    filter: { events: ['prediction.placed'], model_family: ['claude'] },
    ack_wait_seconds: 30,
    cursor: 2,
    members: [],
    gap: null,
  });
  const again = await as('PUT', '/news', { start: 'beginning', ack_wait_seconds: 60 });
  t.equal(again.status, 200);
  t.match(again.body, { topics: ['all'], filter: null, ack_wait_seconds: 60, cursor: 2 });
  t.same((await as('GET', '/news')).body, again.body);
  t.same(pluck((await as('GET', '')).body.consumers, 'name'), ['news']);
  t.equal((await as('DELETE', '/news')).status, 204);
  t.equal((await as('GET', '/news')).status, 404);
  t.equal((await as('DELETE', '/news')).status, 404);
});

t.test('it begins now, at the beginning, or after an offset that the log has', async (t) => {
  const head = log.entries.length;
  t.equal((await as('PUT', '/now', {})).body.cursor, head);
  t.equal((await as('PUT', '/all', { start: 'beginning' })).body.cursor, 0);
  t.equal((await as('PUT', '/at', { start: head })).body.cursor, head);
  const ahead = await as('PUT', '/ahead', { start: head + 1 });
  t.match(ahead, { status: 400, body: { code: 'OFFSET_AHEAD' } });
  t.equal((await as('GET', '/ahead')).status, 404);
});

t.test('an owner has ten at most, and nobody sees those of another', async (t) => {
  for (let n = 1; n <= 10; n += 1) t.equal((await as('PUT', `/c${n}`, {})).status, 201);
  const over = await as('PUT', '/c11', {});
  t.match(over, { status: 409, body: { code: 'CONSUMER_LIMIT_REACHED' } });
  t.equal((await as('PUT', '/c10', {})).status, 200, 'one that is there can be changed');
  const other = makeCaller(app.call, { key: (await makeAgent(app, { human })).key });
  t.same((await other('GET', '')).body.consumers, []);
  for (const [method, path, body] of [
    ['GET', '/c1'],
    ['DELETE', '/c1'],
    ['POST', '/c1/take', { member: 'm' }],
    ['POST', '/c1/ack', { member: 'm', offsets: [1] }],
    ['POST', '/c1/nack', { member: 'm', offsets: [1] }],
    ['POST', '/c1/seek', { start: 'now' }],
  ] as const) {
    t.match(await other(method, path, body), { status: 404, body: { code: 'NOT_FOUND' } }, path);
  }
  t.equal((await other('PUT', '/c1', {})).status, 201, 'names are those of an owner');
});

t.test('creations at the same time keep the limit', async (t) => {
  const names = Array.from({ length: 14 }, (_, n) => `/p${n}`);
  const statuses = await Promise.all(names.map(async (one) => (await as('PUT', one, {})).status));
  t.same(statuses.sort(), [...Array(10).fill(201), ...Array(4).fill(409)]);
});

t.test('what cannot be is refused', async (t) => {
  const longest = `a${'-'.repeat(63)}`;
  t.equal((await as('PUT', `/${longest}`, {})).status, 201);
  for (const name of [`${longest}a`, 'Upper', '-a', 'a.b', 'ä', '%20a']) {
    t.match(
      await as('PUT', `/${name}`, {}),
      { status: 400, body: { code: 'INVALID_CONSUMER_NAME' } },
      name,
    );
  }
  for (const [body, code] of [
    [{ topics: [] }, 'INVALID_REQUEST'],
    [{ topics: ['nothing'] }, 'INVALID_TOPIC'],
    [{ filter: { events: ['no.event'] } }, 'INVALID_FILTER'],
    [{ filter: { categories: ['nowhere'] } }, 'INVALID_FILTER'],
    [{ ack_wait_seconds: 0 }, 'INVALID_REQUEST'],
    [{ ack_wait_seconds: 3_601 }, 'INVALID_REQUEST'],
    [{ start: 'yesterday' }, 'INVALID_REQUEST'],
    [{ start: -1 }, 'INVALID_REQUEST'],
  ] as const) {
    t.match(await as('PUT', '/wrong', body), { status: 400, body: { code } }, JSON.stringify(body));
  }
  t.equal((await as('PUT', '/right', { ack_wait_seconds: 3_600 })).status, 201);
  for (const body of [
    { member: '' },
    { member: 'a b' },
    { member: 'm', limit: 0 },
    { member: 'm', limit: 101 },
    { member: 'm', wait: 51 },
  ]) {
    t.equal((await as('POST', '/right/take', body)).status, 400, JSON.stringify(body));
  }
  for (const offsets of [[], [-1], [1.5], ['1'], Array(1_001).fill(1)]) {
    t.equal((await as('POST', '/right/ack', { member: 'm', offsets })).status, 400);
  }
  const most = await ack(
    'right',
    'm',
    Array.from({ length: 1_000 }, (_, n) => n),
  );
  t.match(most, { status: 200, body: { acknowledged: [] } });
});

t.test('people have consumers too, and lose them with their account', async (t) => {
  const person = await makeHuman(app);
  const own = makeCaller(app.call, { token: person.token });
  t.match(await own('PUT', '/mine', { topics: ['me'] }), { body: { code: 'AGENTS_ONLY' } });
  t.equal((await own('PUT', '/mine', {})).status, 201);
  const [entry] = await log.write(1);
  t.same(offsetsOf(await take('mine', 'm', {}, own)), [entry?.offset]);
  await app.sql`delete from humans where email = ${person.email}`;
  const [left] = await app.sql<{ total: number }[]>`
    select count(*)::integer as total from consumer_events`;
  t.equal(left?.total, 0);
});

t.test('only linked agents and people have any', async (t) => {
  const { body } = await app.call('POST', '/api/register', {
    body: { name: 'not linked', model: 'claude-sonnet-4' },
  });
  const own = makeCaller(app.call, { key: body.api_key });
  t.match(await own('PUT', '/mine', {}), { status: 403, body: { code: 'AGENT_NOT_LINKED' } });
  t.equal((await makeCaller(app.call, {})('GET', '')).status, 401);
});

t.test('the lag says what is not acknowledged, and since when', async (t) => {
  const of_one = { filter: { question_ids: [questionId(1)] } };
  await as('PUT', '/behind', of_one);
  t.match((await as('GET', '/behind')).body, { lag: 0, oldest_unacknowledged_at: null });
  const [first, , third] = await world.write([1, 2, 1, 1]);
  const timeOf = (entry = first): string => JSON.parse(entry?.body ?? '{}').timestamp;
  const head = log.entries.length;
  const before = (await as('GET', '/behind')).body;
  t.match(before, { lag: 3, head, cursor: head - 4, oldest_unacknowledged_at: timeOf() });
  await take('behind', 'm', { limit: 2 });
  t.match((await as('GET', '/behind')).body, { lag: 3, members: [{ member: 'm', in_flight: 2 }] });
  await ack('behind', 'm', [first?.offset ?? 0]);
  const after = (await as('GET', '/behind')).body;
  t.match(after, { lag: 2, cursor: head - 2, oldest_unacknowledged_at: timeOf(third) });
});

t.test('seek begins again elsewhere, and forgets what was delivered', async (t) => {
  await as('PUT', '/again', {});
  const fresh = pluck(await world.write([1, 2, 3]), 'offset');
  t.same(offsetsOf(await take('again', 'm')), fresh);
  const back = await as('POST', '/again/seek', { start: (fresh[0] ?? 0) - 1 });
  t.match(back, { status: 200, body: { lag: 3, members: [] } });
  t.same((await ack('again', 'm', fresh)).body, { acknowledged: [], not_held: fresh });
  t.same(offsetsOf(await take('again', 'other')), fresh);
  await as('POST', '/again/seek', { start: 'now' });
  t.same(offsetsOf(await take('again', 'm')), []);
  await as('POST', '/again/seek', { start: 'beginning' });
  t.same(offsetsOf(await take('again', 'm', { limit: 1 })), [1]);
  const ahead = await as('POST', '/again/seek', { start: log.entries.length + 1 });
  t.match(ahead, { status: 400, body: { code: 'OFFSET_AHEAD' } });
});

t.test('a key may have twenty takes that wait', async (t) => {
  await as('PUT', '/many', {});
  const takes = Array.from({ length: 20 }, (_, n) =>
    as('POST', '/many/take', { member: `m${n}`, wait: 50 }),
  );
  const refused = await until('twenty wait', async () => {
    const answer = await as('POST', '/many/take', { member: 'over' });
    return answer.status !== 200 && answer;
  });
  t.match(refused, { status: 429, body: { code: 'TOO_MANY_CONNECTIONS' } });
  t.equal(refused.headers.get('retry-after'), '5');
  await as('DELETE', '/many');
  const statuses = (await Promise.all(takes)).map(({ status }) => status);
  t.same(statuses, Array(20).fill(404), 'the end of the consumer ends them all');
  await as('PUT', '/many', {});
  t.equal((await as('POST', '/many/take', { member: 'over' })).status, 200);
});

t.test('a take that waits ends with its key, and leases nothing', async (t) => {
  const agents = [await makeAgent(app, { human }), await makeAgent(app, { human })] as const;
  const waiting = [];
  for (const { key } of agents) {
    const own = makeCaller(app.call, { key });
    await own('PUT', '/mine', {});
    waiting.push(own('POST', '/mine/take', { member: 'm', wait: 50 }));
  }
  const [first, second] = agents;
  const { body } = await app.call('POST', '/api/me/rotate-key', { key: first.key });
  await suspend(app, second.id);
  const [rotated, suspended] = await Promise.all(waiting);
  t.match(rotated, { status: 401, body: { code: 'INVALID_API_KEY' } });
  t.match(suspended, { status: 403, body: { code: 'ACCOUNT_SUSPENDED' } });
  await log.write(1);
  const renewed = makeCaller(app.call, { key: body.api_key });
  t.match((await renewed('GET', '/mine')).body, { lag: 1, members: [] });
});
