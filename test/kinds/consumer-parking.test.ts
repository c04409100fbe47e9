import { makeAgent } from '../help/story.js';
import { t } from '../help/tap.js';
import { serveMembers } from './consumer-world.js';

/**
 * An event that repeatedly fails is parked, so that its question continues. Healthy events are
 * never parked because of it, and a parked event can still be read.
 */

const world = await serveMembers(t);
const { app, log, human, as, make, open, pass, left, makeCaller } = world;

type Consumer = Awaited<ReturnType<typeof make>>;

/** Takes and releases one event this many times. Every delay passes immediately. */
const poison = async (t: Tester, c: Consumer, offset: number, times: number) => {
  for (let n = 1; n <= times; n += 1) {
    t.match(await c.take('w', { limit: 1 }), [{ offset, deliveries: n }]);
    await c.act('nack', 'w', [offset]);
    if (n < times) await pass(600);
  }
};
type Tester = { readonly match: (found: unknown, wanted: unknown) => unknown };

t.test(
  'an event that is refused as often as allowed is parked, and its question goes on',
  async (t) => {
    for (const max_deliveries of [1, 2, 5]) {
      const c = await make({ max_deliveries });
      const [u = 0, next = 0] = await c.u(2);
      await poison(t, c, u, max_deliveries);
      t.same(await c.parked(), [u], 'at once');
      t.match(await c.take('w'), [{ offset: next, deliveries: 1 }]);
      await c.act('ack', 'w', [next]);
      await pass(600);
      t.same(await c.offsets('w', { limit: 1 }), [], 'it does not come again');
    }
  },
);

t.test('leases that end park too', async (t) => {
  const c = await make({ max_deliveries: 2, ack_wait_seconds: 1 });
  const [u = 0, next = 0] = await c.u(2);
  t.same(await c.offsets('w1', { limit: 1 }), [u]);
  await pass(2);
  t.match(await c.take('w2', { limit: 1 }), [{ offset: u, deliveries: 2 }]);
  await pass(1);
  t.same(await c.offsets('w3'), [next]);
  t.same(await c.parked(), [u]);
});

t.test('the rest doubles from one second up to ten minutes', async (t) => {
  const c = await make({ max_deliveries: 100 });
  const [u = 0] = await c.u(1);
  const rests = [];
  for (let n = 1; n <= 12; n += 1) {
    t.match(await c.take('w'), [{ offset: u, deliveries: n }]);
    await c.act('nack', 'w', [u]);
    rests.push(Math.round(await left(u)));
    await pass(600);
  }
  t.same(rests, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]);
});

t.test('a delay that is named replaces the rest', async (t) => {
  const c = await make({ max_deliveries: 9 });
  const [u = 0] = await c.u(1);
  for (const delay_seconds of [5, 0, 0, 3_600]) {
    t.same(await c.offsets('w'), [u]);
    await c.act('nack', 'w', [u], { delay_seconds });
    t.equal(Math.max(0, Math.round(await left(u))), delay_seconds);
    await pass(delay_seconds);
  }
});

t.test('while an event rests, its question waits and others go on', async (t) => {
  const c = await make({ max_deliveries: 5 });
  const [u = 0, next = 0] = await c.u(2);
  await poison(t, c, u, 3);
  t.same(await c.offsets('w'), []);
  const others = await c.v(2);
  t.same(await c.offsets('w'), others);
  await pass(4);
  t.same(await c.offsets('w', { limit: 1 }), [u]);
  t.same(await c.offsets('w'), [], 'not before it is done');
  await c.act('ack', 'w', [u]);
  t.same(await c.offsets('w'), [next]);
});

t.test('without max_deliveries nothing is parked and nothing rests', async (t) => {
  const bounds = [{}, { max_deliveries: null }];
  for (const bound of bounds) {
    const c = await make(bound);
    const [u = 0] = await c.u(1);
    for (let n = 1; n <= 11; n += 1) {
      t.match(await c.take('w'), [{ offset: u, deliveries: n }]);
      await c.act('nack', 'w', [u]);
    }
    t.same(await c.parked(), []);
  }
});

t.test('null takes the bound away', async (t) => {
  const c = await make({ max_deliveries: 2 });
  const [u = 0] = await c.u(1);
  t.match(await as('PUT', `/${c.name}`, { max_deliveries: null }), {
    body: { max_deliveries: null },
  });
  await as('PUT', `/${c.name}`, { topics: [`question:${log.entries[u - 1]?.question_id}`] });
  for (let n = 1; n <= 5; n += 1) {
    t.match(await c.take('w'), [{ offset: u, deliveries: n }]);
    await c.act('nack', 'w', [u]);
  }
});

t.test('max_deliveries has bounds, and a refusal changes nothing', async (t) => {
  const c = await make({ max_deliveries: 7 });
  for (const max_deliveries of [0, 101, -1, 1.5, '3', true]) {
    const { status, body } = await as('PUT', `/${c.name}`, { max_deliveries });
    t.match({ status, body }, { status: 400, body: { fields: [{ path: 'body.max_deliveries' }] } });
  }
  t.match(await c.get(), { max_deliveries: 7 });
  for (const max_deliveries of [1, 100]) {
    t.match(await as('PUT', `/${c.name}`, { max_deliveries }), { status: 200 });
  }
});

t.test('a requeue makes an event new, once, and before later ones of its question', async (t) => {
  const c = await make({ max_deliveries: 2 });
  const [u = 0] = await c.u(2);
  await poison(t, c, u, 2);
  const put = () => as('POST', `/${c.name}/parked/requeue`, { offsets: [u] });
  const both = await Promise.all([put(), put()]);
  t.same(
    both.flatMap(({ body }) => body.requeued),
    [u],
  );
  t.same(await c.parked(), []);
  t.match(await c.take('w1', { limit: 1 }), [{ offset: u, deliveries: 1 }]);
  t.same(await c.offsets('w2'), [], 'one member only, and nothing overtakes it');
  await c.act('nack', 'w1', [u]);
  await pass(600);
  t.match(await c.take('w1', { limit: 1 }), [{ offset: u, deliveries: 2 }]);
  await c.act('nack', 'w1', [u]);
  t.same(await c.parked(), [u]);
});

t.test('a drop gives an event up, and parked events hold nothing up', async (t) => {
  const c = await make({ max_deliveries: 1 });
  const [u = 0, next = 0] = await c.u(2);
  await poison(t, c, u, 1);
  t.match(await c.get(), { lag: 1, parked: 1, cursor: u });
  await c.take('w');
  await c.act('ack', 'w', [next]);
  t.match(await c.get(), { lag: 0, parked: 1, oldest_unacknowledged_at: null });
  t.ok((await c.get()).cursor >= next, 'the cursor goes on');
  t.same((await as('POST', `/${c.name}/parked/drop`, { offsets: [u] })).body.dropped, [u]);
  t.same(await c.offsets('w'), []);
  t.match(await c.get(), { lag: 0, parked: 0 });
});

t.test('an event that is acknowledged at its last chance is done', async (t) => {
  const c = await make({ max_deliveries: 2 });
  const [u = 0] = await c.u(1);
  await poison(t, c, u, 1);
  await pass(1);
  t.same(await c.offsets('w'), [u]);
  await c.act('ack', 'w', [u]);
  t.same(await c.parked(), []);
  t.match(await c.get(), { cursor: u, lag: 0 });
});

/** Ways in which a member fails on the first of its events. */
const failures: Readonly<Record<string, (c: Consumer, u: number) => Promise<unknown>>> = {
  'gives it back': (c, u) => c.act('nack', 'w', [u]),
  'dies at it': () => pass(600),
};

t.test('neighbours are not parked for the sake of a poison event', async (t) => {
  for (const [how, fail] of Object.entries(failures)) {
    const c = await make({ max_deliveries: 2 });
    const [u = 0, ...rest] = await c.u(5);
    for (let n = 1; n <= 2; n += 1) {
      t.same(await c.offsets('w'), [u, ...rest], how);
      await fail(c, u);
      if (n === 1) await pass(600);
    }
    t.same(await c.offsets('w'), rest, `${how}: the neighbours come`);
    await c.act('ack', 'w', rest);
    t.same(await c.parked(), [u], how);
    t.match(await c.get(), { lag: 0 });
  }
});

t.test('what a member gives back untried does not count', async (t) => {
  const c = await make({ max_deliveries: 1 });
  const [u = 0] = await c.u(1);
  for (let n = 1; n <= 5; n += 1) {
    t.match(await c.take('w'), [{ offset: u, deliveries: n }]);
    await c.act('nack', 'w', [u], { tried: false });
  }
  t.same(await c.parked(), []);
});

t.test('several poison events, on one question and on two', async (t) => {
  const c = await make({ max_deliveries: 2 });
  const [u1 = 0, u2 = 0, u3 = 0] = await c.u(3);
  const [v1 = 0, v2 = 0] = await c.v(2);
  const bad = new Set([u1, u2, v1]);
  const done: number[] = [];
  for (let n = 0; n < 20 && done.length < 2; n += 1) {
    for (const offset of await c.offsets('w', { limit: 1 })) {
      if (offset === u3)
        t.same(await c.parked().then((all) => all.filter((one) => one < v1)), [u1, u2]);
      await c.act(bad.has(offset) ? 'nack' : 'ack', 'w', [offset]);
      if (!bad.has(offset)) done.push(offset);
    }
    await pass(600);
  }
  t.same(
    [...done].sort((a, b) => a - b),
    [u3, v2],
  );
  t.same(await c.parked(), [u1, u2, v1]);
  t.match(await c.get(), { lag: 0, parked: 3 });
});

t.test('events without a question are parked by themselves', async (t) => {
  const c = await make({ topics: ['all'], max_deliveries: 1 });
  const [one, two] = await log.write(2);
  await poison(t, c, one?.offset ?? 0, 1);
  t.same(await c.offsets('w', { limit: 1 }), [two?.offset]);
  t.same(await c.parked(), [one?.offset]);
});

t.test('the list of parked events has pages, with the events', async (t) => {
  const c = await make({ topics: ['all'], max_deliveries: 1 });
  const all = (await world.write(Array.from({ length: 25 }, (_, n) => 7_000 + n))).map(
    ({ offset }) => offset,
  );
  await c.act('nack', 'w', await c.offsets('w'));
  const seen: number[] = [];
  const sizes: number[] = [];
  let cursor: string | null = '';
  while (cursor !== null) {
    const more: string = cursor === '' ? '' : `&cursor=${cursor}`;
    const { body } = await as('GET', `/${c.name}/parked?limit=10${more}`);
    t.equal(body.total, 25);
    for (const { offset, event } of body.events) {
      seen.push(offset);
      t.match(event, { id: log.entries[offset - 1]?.id, event: String, data: Object });
    }
    sizes.push(body.events.length);
    cursor = body.next_cursor;
  }
  t.same(sizes, [10, 10, 5]);
  t.same(seen, all);
});

t.test('what is not parked is neither requeued nor dropped', async (t) => {
  const c = await make({ max_deliveries: 2 });
  const [u = 0, next = 0] = await c.u(2);
  await c.take('w1', { limit: 1 });
  for (const act of ['requeue', 'drop']) {
    const offsets = [u, next, 999_999_999];
    const { status, body } = await as('POST', `/${c.name}/parked/${act}`, { offsets });
    t.match({ status, body }, { status: 200, body: { not_parked: offsets } });
  }
  t.match((await c.act('ack', 'w1', [u])).body, { acknowledged: [u] });
  t.same(await c.offsets('w1'), [next]);
});

t.test('more than a thousand parked events do not stop a consumer', async (t) => {
  const c = await make({ topics: ['all'], max_deliveries: 1 });
  await log.write(1_001);
  for (let n = 0; n < 11; n += 1) await c.act('nack', 'w', await c.offsets('w'));
  t.match(await c.get(), { parked: 1_001, lag: 0 });
  const [fresh] = await log.write(1);
  t.same(await c.offsets('w'), [fresh?.offset]);
});

t.test('on a socket, poison is pushed again and then parked', async (t) => {
  const c = await make({ max_deliveries: 3 });
  const [u = 0, next = 0] = await c.u(2);
  const one = await open(t, c.name, 'w1', { in_flight: 1 });
  for (let n = 1; n <= 3; n += 1) {
    await one.got(n);
    await one.call('nack', [u]);
    await pass(600);
  }
  await one.got(4);
  await one.call('ack', [next]);
  t.match(one.deliveries(), [
    ...[1, 2, 3].map((deliveries) => ({ offset: u, deliveries })),
    { offset: next, deliveries: 1 },
  ]);
  t.same(await c.parked(), [u]);
});

t.test('a higher bound leaves parked events parked, and a new consumer has none', async (t) => {
  const c = await make({ max_deliveries: 1 });
  const [u = 0] = await c.u(1);
  await poison(t, c, u, 1);
  await as('PUT', `/${c.name}`, { max_deliveries: 10 });
  t.same(await c.offsets('w'), []);
  t.same(await c.parked(), [u]);
  await as('DELETE', `/${c.name}`);
  await as('PUT', `/${c.name}`, {});
  t.match((await as('GET', `/${c.name}/parked`)).body, { total: 0, events: [] });
});

t.test('strangers and wrong shapes change nothing', async (t) => {
  const c = await make({ max_deliveries: 1 });
  const [u = 0] = await c.u(1);
  await poison(t, c, u, 1);
  const other = makeCaller(app.call, { key: (await makeAgent(app, { human })).key });
  const calls = [
    ['GET', ''],
    ['POST', '/requeue', { offsets: [u] }],
    ['POST', '/drop', { offsets: [u] }],
  ] as const;
  for (const [method, path, body] of calls) {
    t.equal((await other(method, `/${c.name}/parked${path}`, body)).status, 404, path);
    const anyone = await makeCaller(app.call, {})(method, `/${c.name}/parked${path}`, body);
    t.equal(anyone.status, 401, path);
  }
  for (const act of ['requeue', 'drop']) {
    for (const body of [{}, { offsets: `${u}` }, { offsets: [1.5] }, { offsets: [null] }]) {
      const answer = await as('POST', `/${c.name}/parked/${act}`, body);
      t.equal(answer.status, 400, JSON.stringify(body));
      t.match(answer.body.fields[0].path, /^body\.offsets/);
    }
  }
  t.same(await c.parked(), [u]);
});
