import { makeAgent } from '../help/story.js';
import { t } from '../help/tap.js';
import { serveMembers } from './consumer-world.js';

/**
 * A member can extend the lease of an event. The new time counts from now, and never shortens a
 * lease. A member can extend only events that it holds, and only for itself.
 */

const world = await serveMembers(t);
const { app, human, as, make, open, pass, left, makeCaller } = world;

t.test('an extension counts from now, for the usual time or another', async (t) => {
  const rows = [
    { seconds: {}, passed: 3, holds: 5 },
    { seconds: { seconds: 60 }, passed: 3, holds: 60 },
    { seconds: { seconds: 4 }, passed: 4.5, holds: 4 },
    { seconds: { seconds: 3_600 }, passed: 0, holds: 3_600 },
    { seconds: { seconds: 1 }, passed: 0, holds: 5 },
  ];
  for (const { seconds, passed, holds } of rows) {
    const c = await make({ ack_wait_seconds: 5 });
    const [u = 0] = await c.u(1);
    await c.take('w1');
    await pass(passed);
    const { status, body } = await c.act('extend', 'w1', [u], seconds);
    t.match({ status, body }, { status: 200, body: { extended: [u], not_held: [] } });
    const lasts = await left(u);
    t.ok(lasts <= holds && lasts > holds - 3, `${JSON.stringify(seconds)}: ${lasts}`);
    await pass(holds - 2.5);
    t.same(await c.offsets('w2'), [], JSON.stringify(seconds));
    await pass(3);
    t.match(await c.take('w2'), [{ offset: u, deliveries: 2 }]);
  }
});

t.test('extensions do not add up, and may be as many as are wanted', async (t) => {
  const c = await make({ ack_wait_seconds: 5 });
  const [u = 0] = await c.u(1);
  await c.take('w1');
  for (let n = 0; n < 3; n += 1) await c.act('extend', 'w1', [u], { seconds: 10 });
  t.ok((await left(u)) <= 10);
  for (let n = 0; n < 7; n += 1) {
    await pass(9);
    t.same(await c.offsets('w2'), []);
    await c.act('extend', 'w1', [u], { seconds: 10 });
  }
  t.match((await c.act('ack', 'w1', [u])).body, { acknowledged: [u] });
  t.match(await c.get(), { cursor: u, lag: 0 });
});

t.test('only what the member has is extended', async (t) => {
  const c = await make({ ack_wait_seconds: 5 });
  const [u = 0] = await c.u(1);
  t.same(await c.offsets('w1'), [u]);
  const long = { seconds: 600 };
  t.match((await c.act('extend', 'w2', [u], long)).body, { extended: [], not_held: [u] });
  t.ok((await left(u)) <= 5, 'another member');
  await pass(6);
  t.match((await c.act('extend', 'w1', [u], long)).body, { not_held: [u] }, 'it has ended');
  t.same(await c.offsets('w2'), [u]);
  t.match((await c.act('extend', 'w1', [u], long)).body, { not_held: [u] }, 'another has it');
  t.match((await c.act('nack', 'w2', [u], { delay_seconds: 3 })).body, { released: [u] });
  t.match((await c.act('extend', 'w2', [u], long)).body, { not_held: [u] }, 'it was given back');
  t.ok((await left(u)) <= 3);
  await pass(3);
  t.same(await c.offsets('w3'), [u]);
  await c.act('ack', 'w3', [u]);
  t.match((await c.act('extend', 'w3', [u], long)).body, { not_held: [u] }, 'it is done');
  t.match(await c.get(), { lag: 0 });
});

t.test('what rests after its time is with nobody', async (t) => {
  const c = await make({ ack_wait_seconds: 5, max_deliveries: 9 });
  const [u = 0] = await c.u(1);
  for (let n = 0; n < 5; n += 1) {
    await c.take('w1');
    await c.act('nack', 'w1', [u]);
    await pass(600);
  }
  await c.take('w1');
  await pass(6);
  t.same(await c.offsets('w2'), [], 'it rests for half a minute');
  t.match(await c.get(), { members: [] });
  t.match((await c.act('extend', 'w1', [u], { seconds: 600 })).body, { not_held: [u] });
  await pass(32);
  t.same(await c.offsets('w2'), [u]);
});

t.test('of a mixed list, the rest is named', async (t) => {
  const c = await make({ ack_wait_seconds: 5 });
  const [u = 0] = await c.u(1);
  t.same(await c.offsets('w1'), [u]);
  const [v = 0] = await c.v(1);
  t.same(await c.offsets('w2'), [v]);
  const { body } = await c.act('extend', 'w1', [u, v, 999_999_999, u], { seconds: 30 });
  t.same(body, { extended: [u], not_held: [v, 999_999_999] });
  await pass(7);
  t.same(await c.offsets('w3'), [v]);
});

t.test('a wrong shape is refused by its path, and the lease stays', async (t) => {
  const c = await make({ ack_wait_seconds: 5 });
  const [u = 0] = await c.u(1);
  await c.take('w1');
  const good = { member: 'w1', offsets: [u] };
  const rows: readonly [string, object][] = [
    ...[-1, 0, 1.5, 'ten', true, 1e9, 3_601, [], null].map((seconds): [string, object] => [
      'seconds',
      { ...good, seconds },
    ]),
    ['member', {}],
    ['offsets', { member: 'w1' }],
    ['member', { ...good, member: '' }],
    ['member', { ...good, member: 7 }],
    ['offsets', { ...good, offsets: u }],
    ['offsets', { ...good, offsets: [`${u}`] }],
    ['offsets', { ...good, offsets: [1.5] }],
    ['offsets', { ...good, offsets: [-1] }],
    ['offsets', { ...good, offsets: [] }],
  ];
  for (const [path, body] of rows) {
    const answer = await as('POST', `/${c.name}/extend`, body);
    t.match(answer, { status: 400, body: { code: 'INVALID_REQUEST' } }, JSON.stringify(body));
    t.match(answer.body.fields[0].path, `body.${path}`, JSON.stringify(body));
  }
  t.ok((await left(u)) <= 5);
  t.match((await c.act('ack', 'w1', [u])).body, { acknowledged: [u] });
});

t.test('an extended event holds its question, and no other', async (t) => {
  const c = await make({ ack_wait_seconds: 5 });
  const [u = 0] = await c.u(1);
  await c.take('w1');
  const [next] = await c.u(1);
  const [v] = await c.v(1);
  await c.act('extend', 'w1', [u], { seconds: 30 });
  await pass(20);
  t.same(await c.offsets('w2'), [v]);
  await c.act('ack', 'w1', [u]);
  t.same(await c.offsets('w2'), [next]);
});

t.test('an extension on a socket means the same, and ends with the socket', async (t) => {
  const c = await make({ ack_wait_seconds: 5 });
  const one = await open(t, c.name, 'w1');
  const [u = 0] = await c.u(1);
  await one.got(1);
  t.match((await c.act('extend', 'w1', [u], { seconds: 30 })).body, { extended: [u] });
  await pass(8);
  t.match(await one.call('ack', [u]), { status: 200, body: { acknowledged: [u] } });
  t.equal(one.deliveries().length, 1);
  const [next = 0] = await c.u(1);
  await one.got(2);
  t.match(await one.call('extend', [next], { seconds: 3_600 }), { status: 200 });
  one.client.ws.close();
  t.match(await c.take('w2', { wait: 5 }), [{ offset: next, deliveries: 2 }]);
});

t.test('an extension is no delivery', async (t) => {
  const c = await make({ ack_wait_seconds: 5, max_deliveries: 2 });
  const [u = 0] = await c.u(1);
  await c.take('w1');
  for (let n = 0; n < 5; n += 1) await c.act('extend', 'w1', [u]);
  await pass(6);
  t.match(await c.take('w2'), [{ offset: u, deliveries: 2 }]);
  t.same(await c.parked(), []);
});

t.test('strangers learn nothing', async (t) => {
  const c = await make();
  const [u = 0] = await c.u(1);
  await c.take('w1');
  const body = { member: 'w1', offsets: [u] };
  const extend = (name: string, send: object) =>
    makeCaller(app.call, send)('POST', `/${name}/extend`, body);
  const other = await makeAgent(app, { human });
  const unlinked = await makeAgent(app);
  const [of_a, of_nobody] = [
    await extend(c.name, { key: other.key }),
    await extend('never-was', { key: other.key }),
  ];
  t.match(of_a, { status: 404, body: { error: of_nobody.body.error } });
  t.match(await extend(c.name, {}), { status: 401, body: { code: 'MISSING_AUTH' } });
  t.match(await extend(c.name, { key: unlinked.key }), { body: { code: 'AGENT_NOT_LINKED' } });
});

t.test('a seek ends what was extended', async (t) => {
  const c = await make();
  const [u = 0] = await c.u(1);
  await c.take('w1');
  await c.act('extend', 'w1', [u], { seconds: 3_600 });
  await as('POST', `/${c.name}/seek`, { start: u - 1 });
  t.match(await c.take('w2'), [{ offset: u, deliveries: 1 }]);
  t.match((await c.act('extend', 'w1', [u])).body, { not_held: [u] });
});

t.test('the same Idempotency-Key extends once', async (t) => {
  const c = await make({ ack_wait_seconds: 5 });
  const [u = 0] = await c.u(1);
  await c.take('w1');
  const extend = () =>
    app.call('POST', `/api/me/consumers/${c.name}/extend`, {
      key: world.key,
      headers: { 'idempotency-key': 'extend-once' },
      body: { member: 'w1', offsets: [u], seconds: 10 },
    });
  const first = await extend();
  await pass(6);
  const second = await extend();
  t.equal(second.headers.get('idempotency-replayed'), 'true');
  t.same(second.body, first.body);
  t.ok((await left(u)) <= 4);
});

t.test('two members extend in the same moment', async (t) => {
  const c = await make({ ack_wait_seconds: 5 });
  const [u = 0] = await c.u(1);
  await c.take('w1');
  const [v = 0] = await c.v(1);
  await c.take('w2');
  const seconds = { seconds: 30 };
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => [
      c.act('extend', 'w1', [u], seconds),
      c.act('extend', 'w2', [v], seconds),
    ]).flat(),
  );
  t.ok(answers.every(({ status, body }) => status === 200 && body.not_held.length === 0));
  await pass(10);
  t.same(await c.offsets('w3'), []);
});
