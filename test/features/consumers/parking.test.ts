import { pluck } from '../../help/pluck.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { connect } from '../../help/ws-client.js';
import { offsetsOf, questionId, serveConsumers } from './world.js';

/**
 * Events held by a connection are released when it ends, leases can be extended, and poison events
 * are parked.
 */

const { app, as, take, ack, endLeases, write, key } = await serveConsumers(t);

const consume = async (consumer: string, member: string) => {
  const client = await connect(t, app.port, { headers: { 'x-api-key': key } });
  await client.ask({ op: 'consume', consumer, member });
  const offsets = () =>
    client.frames.filter(({ op }) => op === 'delivery').map(({ offset }) => offset as number);
  return { client, offsets };
};

/** Makes a consumer that gets the questions of one test only, so other tests do not disturb it. */
const make = async (name: string, n: number, more: object = {}): Promise<void> => {
  const filter = { question_ids: [questionId(n), questionId(n + 1)] };
  await as('PUT', `/${name}`, { filter, ack_wait_seconds: 3_600, ...more });
};

t.test('what a socket held is free at once when it closes or cancels', async (t) => {
  for (const [name, n, end] of [
    ['closed', 100, ({ ws }: Awaited<ReturnType<typeof connect>>) => ws.terminate()],
    ['left', 110, ({ ws }: Awaited<ReturnType<typeof connect>>) => ws.close()],
    [
      'cancelled',
      120,
      (client: Awaited<ReturnType<typeof connect>>) =>
        void client.ask({ op: 'cancel', consumer: 'cancelled' }),
    ],
    [
      'consumed-anew',
      130,
      (client: Awaited<ReturnType<typeof connect>>) =>
        void client.ask({ op: 'consume', consumer: 'consumed-anew', member: 'c', in_flight: 1 }),
    ],
  ] as const) {
    await make(name, n);
    const one = await consume(name, 'a');
    const fresh = pluck(await write([n, n + 1]), 'offset') as number[];
    await until('all have come', () => one.offsets().length === 2);
    end(one.client);
    const two = await consume(name, 'b');
    await until(`${name}: another has some within the hour of the lease`, () => {
      return two.offsets().length > 0;
    });
    t.ok(fresh.includes(two.offsets()[0] ?? 0));
    one.client.ws.terminate();
    two.client.ws.terminate();
  }
});

t.test(
  'what was acknowledged does not come again, and the same member gets the rest first',
  async (t) => {
    await make('first', 200);
    const one = await consume('first', 'a');
    const old = pluck(await write([200, 201]), 'offset') as number[];
    await until('both have come', () => one.offsets().length === 2);
    await ack('first', 'a', old.slice(0, 1));
    one.client.ws.terminate();
    await until('its events are free', async () => {
      const { body } = await as('GET', '/first');
      return body.members.length === 0;
    });
    await write([200]);
    const again = await take('first', 'a', { limit: 1 });
    t.same(offsetsOf(again), old.slice(1));
    t.match(again.body.events, [{ deliveries: 2 }]);
  },
);

t.test('a take whose client has gone holds nothing', async () => {
  await make('gone', 210);
  const gone = new AbortController();
  const waiting = fetch(`${app.url}/api/me/consumers/gone/take`, {
    method: 'POST',
    signal: gone.signal,
    headers: { 'x-api-key': key, 'content-type': 'application/json' },
    body: JSON.stringify({ member: 'a', wait: 50 }),
  });
  waiting.catch(() => undefined);
  await until('it waits', async () => (await as('GET', '/gone')).status === 200);
  gone.abort();
  const fresh = pluck(await write([210]), 'offset') as number[];
  await until('another gets it', async () => {
    return offsetsOf(await take('gone', 'b'))[0] === fresh[0];
  });
});

t.test('a lease is prolonged, by its usual time or another', async (t) => {
  await make('long', 220, { ack_wait_seconds: 2 });
  const fresh = pluck(await write([220, 221]), 'offset') as number[];
  await take('long', 'a');
  const extend = (body: object) => as('POST', '/long/extend', { member: 'a', ...body });
  t.match((await extend({ offsets: [...fresh, 999_999] })).body, {
    extended: fresh,
    not_held: [999_999],
  });
  await extend({ offsets: fresh.slice(0, 1), seconds: 3_600 });
  const leases = await app.sql<{ left: number }[]>`
    select extract(epoch from leased_until - now())::integer as left
    from consumer_events where "offset" = any (${fresh}) order by "offset"`;
  t.ok((leases[0]?.left ?? 0) > 3_500 && (leases[1]?.left ?? 99) <= 2, JSON.stringify(leases));
  t.match((await as('POST', '/long/extend', { member: 'b', offsets: fresh })).body, {
    extended: [],
    not_held: fresh,
  });
  await endLeases();
  t.match((await extend({ offsets: fresh })).body, { extended: [], not_held: fresh });
  t.match(await extend({ offsets: fresh, seconds: 0 }), { status: 400 });
  t.equal((await as('POST', '/none/extend', { member: 'a', offsets: [1] })).status, 404);
});

t.test('a poison event is parked, and its question goes on', async (t) => {
  await make('poison', 230, { max_deliveries: 3, ack_wait_seconds: 10 });
  const [bad = 0, next = 0] = pluck(await write([230, 230]), 'offset') as number[];
  const rests: number[] = [];
  for (const delivery of [1, 2, 3]) {
    const { body } = await take('poison', 'a', { limit: 1 });
    t.match(body.events, [{ offset: bad, deliveries: delivery }]);
    await as('POST', '/poison/nack', { member: 'a', offsets: [bad] });
    if (delivery === 3) break;
    const [row] = await app.sql<{ rest: number }[]>`
      select round(extract(epoch from leased_until - now()))::integer as rest
      from consumer_events where "offset" = ${bad}`;
    rests.push(row?.rest ?? -1);
    t.same(offsetsOf(await take('poison', 'b')), [], 'it rests, and its question with it');
    await endLeases();
  }
  t.same(rests, [1, 2]);
  t.same(offsetsOf(await take('poison', 'b', { limit: 1 })), [next]);
  await ack('poison', 'b', [next]);
  t.match((await as('GET', '/poison')).body, { parked: 1, lag: 0, max_deliveries: 3 });
  const { body: parked } = await as('GET', '/poison/parked');
  t.match(parked, {
    total: 1,
    next_cursor: null,
    events: [{ offset: bad, deliveries: 3, event: { offset: bad, event: String } }],
  });
  t.match((await as('POST', '/poison/parked/requeue', { offsets: [bad, next] })).body, {
    requeued: [bad],
    not_parked: [next],
  });
  t.match((await take('poison', 'a')).body.events, [{ offset: bad, deliveries: 1 }]);
  t.match((await as('GET', '/poison')).body, { parked: 0, lag: 1 });
});

t.test('leases that end count as deliveries, and what is parked can be dropped', async (t) => {
  await make('dropped', 240, { max_deliveries: 1 });
  const fresh = pluck(await write([240, 241]), 'offset') as number[];
  t.equal(offsetsOf(await take('dropped', 'a')).length, 2);
  await endLeases();
  t.same(offsetsOf(await take('dropped', 'a')), []);
  const page = await as('GET', '/dropped/parked?limit=1');
  t.match(page.body, { total: 2, next_cursor: String(fresh[0]) });
  const rest = await as('GET', `/dropped/parked?limit=1&cursor=${page.body.next_cursor}`);
  t.same(offsetsOf(rest), fresh.slice(1));
  t.match((await as('POST', '/dropped/parked/drop', { offsets: fresh })).body, {
    dropped: fresh,
    not_parked: [],
  });
  t.match((await as('GET', '/dropped')).body, { parked: 0, lag: 0 });
  t.equal((await as('GET', '/dropped/parked?cursor=x')).status, 400);
});

t.test('members that would narrow a consumer and are not known are refused by name', async (t) => {
  for (const name of ['question_id', 'events', 'categories', 'model_family', 'filters', 'topic']) {
    const { status, body } = await as('PUT', '/narrow', { [name]: 'x' });
    t.match({ status, body }, { status: 400, body: { fields: [{ path: `body.${name}` }] } }, name);
  }
  t.equal((await as('PUT', '/narrow', { note: 'of no effect' })).status, 201);
});
