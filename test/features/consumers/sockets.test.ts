import { pluck } from '../../help/pluck.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { connect } from '../../help/ws-client.js';
import { questionId, serveConsumers } from './world.js';

/** Consumers over the socket: events are pushed, and calls acknowledge them. */

const { app, log, as, take, ack, endLeases, write, key } = await serveConsumers(t);

const open = async (name: string, frame: object = {}) => {
  const client = await connect(t, app.port, { headers: { 'x-api-key': key } });
  const answer = await client.ask({ op: 'consume', consumer: name, member: 'a', ...frame });
  const offsets = () =>
    client.frames.filter(({ op }) => op === 'delivery').map(({ offset }) => offset as number);
  return {
    client,
    answer,
    offsets,
    got: (count: number) => until(`${count} have come`, () => offsets().length >= count),
    ack: (sent: readonly number[], member = 'a') =>
      client.ask({
        op: 'call',
        route: `POST /api/me/consumers/${name}/ack`,
        body: { member, offsets: sent },
      }),
  };
};

t.test('events are pushed with a bounded number in flight', async (t) => {
  await as('PUT', '/bounded', {});
  const one = await open('bounded', { in_flight: 2 });
  t.match(one.answer, { op: 'consuming', consumer: 'bounded', member: 'a', in_flight: 2 });
  const fresh = pluck(await write([1, 2, 3, 4]), 'offset') as number[];
  await one.got(2);
  const [first] = fresh as [number];
  const { event, data, timestamp } = JSON.parse(log.entries[first - 1]?.body ?? '{}');
  const delivery = one.client.frames.find(({ op }) => op === 'delivery');
  const body = { id: log.entries[first - 1]?.id, event, data, timestamp };
  t.same(delivery, { op: 'delivery', consumer: 'bounded', offset: first, deliveries: 1, ...body });
  const { body: seen } = await as('GET', '/bounded');
  t.match(seen, { lag: 4, members: [{ member: 'a', in_flight: 2 }] });
  t.match(await one.ack([first]), { status: 200, body: { acknowledged: [first] } });
  await one.got(3);
  t.same((await ack('bounded', 'a', fresh.slice(1, 3))).body.acknowledged, fresh.slice(1, 3));
  await one.got(4);
  t.same(one.offsets(), fresh);
});

t.test('when a member is gone, another goes on with what it had', async (t) => {
  await as('PUT', '/shared', { filter: { question_ids: [questionId(6)] } });
  const one = await open('shared');
  const fresh = pluck(await write([6, 6]), 'offset') as number[];
  await one.got(1);
  one.client.ws.terminate();
  const two = await open('shared', { member: 'b' });
  await until('the lease is lost', async () => {
    await endLeases();
    return two.offsets().includes(fresh[0] ?? 0);
  });
  await two.ack(two.offsets(), 'b');
  await until('all came in order', () => two.offsets().includes(fresh[1] ?? 0));
  await two.ack(fresh, 'b');
  t.match((await as('GET', '/shared')).body, { lag: 0 });
  t.same([...new Set(two.offsets())], fresh, 'in order');
});

t.test('a cancelled consumption ends, and the socket stays', async (t) => {
  await as('PUT', '/cancelled', {});
  const one = await open('cancelled');
  t.match(await one.client.ask({ op: 'cancel', consumer: 'cancelled' }), { op: 'cancelled' });
  const fresh = pluck(await write([1]), 'offset');
  t.same(pluck((await take('cancelled', 'b', { wait: 20 })).body.events, 'offset'), fresh);
  t.match(await one.client.ask({ op: 'ping' }), { op: 'pong' });
  t.same(one.offsets(), []);
});

t.test('a second consume of the same consumer takes the place of the first', async (t) => {
  await as('PUT', '/twice', {});
  const one = await open('twice');
  await one.client.ask({ op: 'consume', consumer: 'twice', member: 'b' });
  await write([1]);
  await one.got(1);
  t.match((await as('GET', '/twice')).body.members, [{ member: 'b', in_flight: 1 }]);
});

t.test('a consumer that is not there, or goes, is an error frame', async (t) => {
  const client = await connect(t, app.port, { headers: { 'x-api-key': key } });
  client.send({ op: 'consume', id: 'none', consumer: 'none', member: 'a' });
  const isError = (id: string) => (frame: { op: string; id?: unknown }) =>
    frame.op === 'error' && frame.id === id;
  t.match(await client.get('an error', isError('none')), { code: 'NOT_FOUND' });
  await as('PUT', '/going', {});
  client.send({ op: 'consume', id: 'going', consumer: 'going', member: 'a' });
  await client.answer('going');
  await as('DELETE', '/going');
  t.match(await client.get('an error', isError('going')), { code: 'NOT_FOUND' });
  const wrong = await client.ask({ op: 'consume', consumer: 'going', member: 'a', in_flight: 101 });
  t.match(wrong, { op: 'error', code: 'INVALID_FRAME' });
});

t.test('nobody consumes without a credential', async (t) => {
  const client = await connect(t, app.port);
  const answer = await client.ask({ op: 'consume', consumer: 'any', member: 'a' });
  t.match(answer, { op: 'error', code: 'MISSING_AUTH' });
});

t.test('what was missed by retention is a gap', async (t) => {
  await as('PUT', '/missed', { start: 'beginning' });
  await app.sql`update log_head set oldest = 3`;
  const one = await open('missed');
  const gap = await one.client.get('a gap', ({ op }) => op === 'gap');
  t.match(gap, { topic: 'consumer:missed', after: 0, until: 2, reason: 'expired' });
  await one.got(1);
  t.equal(one.offsets()[0], 3);
});

t.test('a member goes on when its connections to Postgres are lost', async (t) => {
  await as('PUT', '/lost', {});
  const cut = new Set<number>();
  const [one, fresh] = await app.sql.begin(async (tx) => {
    await tx`select from consumers where name = 'lost' for update`;
    const member = await open('lost');
    const written = pluck(await write([1]), 'offset') as number[];
    await until('two takes were cut off', async () => {
      const pids = await app.sql<{ pid: number }[]>`
        select pid, pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`;
      for (const { pid } of pids) cut.add(pid);
      return cut.size >= 2;
    });
    return [member, written] as const;
  });
  await one.got(1);
  t.same(one.offsets(), fresh);
  t.match(await one.ack(fresh), { status: 200, body: { acknowledged: fresh } });
});
