import { startApp } from '../help/app.js';
import { makeAgent } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { connect } from '../help/ws-client.js';
import { serveMembers } from './consumer-world.js';

/**
 * When a connection ends in any way, its unacknowledged events are released: immediately, in order,
 * and first to the same member. The leases last ten minutes, so no event is released because its
 * lease expired.
 */

const world = await serveMembers(t);
const { app, human, as, make, open, left, makeCaller } = world;

type Member = Awaited<ReturnType<typeof open>>;

const again = (offsets: readonly number[], deliveries = 2) =>
  offsets.map((offset) => ({ offset, deliveries }));

t.test('whichever way a connection ends, another member gets what it had', async (t) => {
  const ends: Readonly<Record<string, (one: Member, name: string) => unknown>> = {
    closed: ({ client }) => client.ws.close(1000),
    reset: ({ client }) =>
      (client.ws as unknown as { _socket: { resetAndDestroy(): void } })._socket.resetAndDestroy(),
    'left without a close frame': ({ client }) => client.ws.terminate(),
    cancelled: ({ client }, consumer) => client.ask({ op: 'cancel', consumer }),
  };
  for (const [how, end] of Object.entries(ends)) {
    const c = await make();
    const fresh = await c.u(5);
    const one = await open(t, c.name, 'w1');
    await one.got(5);
    const taken = c.take('w2', { wait: 10 });
    await end(one, c.name);
    t.match(await taken, again(fresh), how);
    one.client.ws.terminate();
  }
});

t.test('a rotated key frees what its sockets had', async (t) => {
  const { key } = await makeAgent(app, { human });
  const c = await make({}, makeCaller(app.call, { key }));
  const fresh = await c.u(2);
  const one = await open(t, c.name, 'w1', { key });
  await one.got(2);
  const { body } = await app.call('POST', '/api/me/rotate-key', { key });
  const now = makeCaller(app.call, { key: body.api_key });
  const { body: taken } = await now('POST', `/${c.name}/take`, { member: 'w2', wait: 10 });
  t.match(taken.events, again(fresh));
  t.ok([4001, 4103].includes(await one.client.closed()));
});

t.test('a process that stops frees what its sockets had', async (t) => {
  const second = await startApp(t, { roles: ['api'], stores: app.stores });
  const c = await make();
  const fresh = await c.u(2);
  const one = await open(t, c.name, 'w1', { port: second.port });
  await one.got(2);
  await second.stop();
  const other = await open(t, c.name, 'w1');
  await other.got(2);
  t.match(other.deliveries(), again(fresh));
});

t.test('the same member gets its own before older ones', async (t) => {
  const c = await make();
  const older = await c.v(2);
  t.same(await c.offsets('w0'), older);
  const own = await c.u(3);
  const one = await open(t, c.name, 'w1');
  await one.got(3);
  one.client.ws.close();
  await until('they are free', async () => (await c.get()).members.length === 1);
  await c.act('nack', 'w0', older);
  const back = await open(t, c.name, 'w1', { in_flight: 3 });
  await back.got(3);
  t.match(back.deliveries(), again(own));
  await back.call('ack', own);
  await back.got(5);
  t.same(back.offsets(), [...own, ...older]);
});

t.test('what was acknowledged does not come back, and the cursor stays', async (t) => {
  const c = await make();
  const fresh = await c.u(5);
  const one = await open(t, c.name, 'w1');
  await one.got(5);
  await one.call('ack', fresh.slice(0, 3));
  const before = await c.get();
  one.client.ws.close();
  await until('they are free', async () => (await c.get()).members.length === 0);
  t.match(await c.get(), {
    cursor: fresh[2],
    lag: 2,
    oldest_unacknowledged_at: before.oldest_unacknowledged_at,
  });
  t.match(await c.take('w2'), again(fresh.slice(3)));
});

t.test('a question stays in order over a release', async (t) => {
  const c = await make();
  const first = await c.u(2);
  const one = await open(t, c.name, 'w1', { in_flight: 2 });
  await one.got(2);
  const fresh = [...first, ...(await c.u(1))];
  one.client.ws.close();
  for (const expected of fresh) {
    t.same(await c.offsets('w2', { limit: 1, wait: 5 }), [expected]);
    t.same(await c.offsets('w3'), [], 'nobody gets the next before this one is done');
    await c.act('ack', 'w2', [expected]);
  }
});

t.test('the leases of others stay: of another member, socket or take', async (t) => {
  const rows = [
    ['another member', 'w2'],
    ['another socket of the member', 'w1'],
  ] as const;
  for (const [what, member] of rows) {
    const c = await make();
    const one = await open(t, c.name, 'w1', { in_flight: 1 });
    const [u = 0] = await c.u(1);
    await one.got(1);
    const two = await open(t, c.name, member, { in_flight: 1 });
    const [v = 0] = await c.v(1);
    await two.got(1);
    one.client.ws.close();
    t.match(await c.take('w3', { wait: 5 }), again([u]), what);
    t.match(await two.call('ack', [v]), { body: { acknowledged: [v], not_held: [] } }, what);
    t.match(two.deliveries(), again([v], 1), what);
  }
  const c = await make();
  const [u = 0] = await c.u(1);
  t.same(await c.offsets('w1'), [u]);
  const one = await open(t, c.name, 'w1');
  const [v = 0] = await c.v(1);
  await one.got(1);
  one.client.ws.close();
  t.match(await c.take('w2', { wait: 5 }), again([v]));
  t.match((await c.act('ack', 'w1', [u])).body, { acknowledged: [u] });
});

t.test('a late acknowledgement counts until another member has the event', async (t) => {
  for (const is_taken of [true, false]) {
    const c = await make();
    const one = await open(t, c.name, 'w1');
    const [u = 0] = await c.u(1);
    await one.got(1);
    one.client.ws.close();
    await until('it is free', async () => (await c.get()).members.length === 0);
    if (is_taken) t.same(await c.offsets('w2'), [u]);
    const late = (await c.act('ack', 'w1', [u])).body;
    t.same(late.not_held, is_taken ? [u] : []);
    if (is_taken) t.match((await c.act('ack', 'w2', [u])).body, { acknowledged: [u] });
    else t.same(await c.offsets('w2'), [], 'the answers agree');
    t.match(await c.get(), { lag: 0, cursor: u });
  }
});

t.test('an acknowledgement and a close in the same moment agree', async (t) => {
  const c = await make();
  const fresh = await c.u(5);
  const one = await open(t, c.name, 'w1');
  await one.got(5);
  one.call('ack', fresh).catch(() => undefined);
  one.client.ws.close();
  await until('they are free or done', async () => (await c.get()).members.length === 0);
  const rest = await c.offsets('w2');
  t.ok(rest.length === 0 || rest.join() === fresh.join(), `${rest}`);
  t.equal((await c.get()).lag, rest.length);
});

t.test('after a cancel, the same socket gets the same events first', async (t) => {
  const c = await make();
  const fresh = await c.u(3);
  const one = await open(t, c.name, 'w1');
  await one.got(3);
  t.match(await one.client.ask({ op: 'cancel', consumer: c.name }), { op: 'cancelled' });
  await until('they are free', async () => (await c.get()).members.length === 0);
  await c.v(1);
  t.match(await one.client.ask({ op: 'ping' }), { op: 'pong' });
  t.equal(one.deliveries().length, 3, 'nothing is pushed after it');
  await one.client.ask({ op: 'consume', consumer: c.name, member: 'w1', in_flight: 3 });
  await one.got(6);
  t.match(one.deliveries().slice(3), again(fresh));
});

t.test('a delay that was asked for outlives the connection', async (t) => {
  const c = await make();
  const one = await open(t, c.name, 'w1');
  const [u = 0] = await c.u(1);
  await one.got(1);
  await one.call('nack', [u], { delay_seconds: 8 });
  one.client.ws.close();
  const two = await open(t, c.name, 'w2');
  const [v = 0] = await c.v(1);
  await two.got(1);
  t.same(two.offsets(), [v], 'the other question goes on');
  t.ok((await left(u)) > 0);
  await two.call('ack', [v]);
  two.client.ws.close();
  await world.pass(8);
  // If the socket still exists when the event is due, the event is sent to it and then released.
  const taken = await until('the event', async () => {
    const offsets = await c.offsets('w2');
    return offsets.length > 0 && offsets;
  });
  t.same(taken, [u]);
});

t.test(
  'lost connections park no healthy event, only one that ends its worker without end',
  async (t) => {
    const c = await make({ max_deliveries: 1 });
    const [u = 0, next = 0] = await c.u(2);
    const lose = async (deliveries: number) => {
      const one = await open(t, c.name, 'w1', { in_flight: 1 });
      await one.got(1);
      t.match(one.deliveries(), again([u], deliveries));
      one.client.ws.terminate();
      await until('it is free', async () => (await c.get()).members.length === 0);
    };
    for (let n = 1; n <= 9; n += 1) await lose(n);
    t.same(await c.parked(), []);
    t.same(await c.offsets('w2', { limit: 1 }), [u], 'at once, without a rest');
    await c.act('nack', 'w2', [u], { delay_seconds: 0, tried: false });
    await lose(11);
    t.same(await c.parked(), [u]);
    t.same(await c.offsets('w2'), [next], 'its question goes on');
  },
);

t.test('with one in flight, a single event is freed and the rest waits in order', async (t) => {
  const c = await make();
  const fresh = await c.u(10);
  const one = await open(t, c.name, 'w1', { in_flight: 1 });
  await one.got(1);
  one.client.ws.close();
  const two = await open(t, c.name, 'w1', { in_flight: 1 });
  for (const [n, offset] of fresh.entries()) {
    await two.got(n + 1);
    await two.call('ack', [offset]);
  }
  t.match(two.deliveries(), [...again(fresh.slice(0, 1)), ...again(fresh.slice(1), 1)]);
});

t.test('a hundred events are freed as one', async (t) => {
  const c = await make({ topics: ['all'] });
  const entries = await world.write(Array.from({ length: 100 }, (_, n) => 5_000 + n));
  const one = await open(t, c.name, 'w1', { in_flight: 100 });
  await one.got(100);
  one.client.ws.terminate();
  await until('they are free', async () => (await c.get()).members.length === 0);
  t.match(await c.take('w2'), again(entries.map(({ offset }) => offset)));
});

t.test('a deleted consumer frees nothing to its successor', async (t) => {
  const c = await make();
  const client = await connect(t, app.port, { headers: { 'x-api-key': world.key } });
  client.send({ op: 'consume', id: 'mine', consumer: c.name, member: 'w1' });
  await c.u(1);
  await client.get('a delivery', ({ op }) => op === 'delivery');
  t.equal((await as('DELETE', `/${c.name}`)).status, 204);
  const error = await client.get('an error', ({ op, id }) => op === 'error' && id === 'mine');
  t.match(error, { code: 'NOT_FOUND' });
  client.ws.close();
  t.equal((await as('PUT', `/${c.name}`, {})).status, 201);
  t.same(await c.offsets('w2'), []);
});
