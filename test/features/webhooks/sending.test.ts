import { createHmac } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Sql } from '../../../src/db/client.js';
import {
  createSlots,
  type SendLimits,
  send_limits,
} from '../../../src/features/webhooks/sending.js';
import { makeId } from '../../../src/kit/ids.js';
import { createSigner } from '../../../src/process/signer.js';
import { pluck } from '../../help/pluck.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { bodyOf, healthOf, makeWorld, many, newAgent } from './world.js';

/** How deliveries are sent. `receivers.test.ts` covers the answers of receivers. */

const world = await makeWorld(t);
const { sql } = world.deps;
t.beforeEach(world.reset);

/** Calls stay open until the test ends them. */
const setUp = (limits: Partial<SendLimits> = {}) => {
  const slots = createSlots({ ...send_limits, ...limits });
  const open = new Map<string, () => void>();
  return {
    slots,
    take: async (webhook_id: string, count: number, owner_id = webhook_id, is_repeat = false) => {
      for (let n = 0; n < count; n += 1) {
        const call = () =>
          new Promise<void>((resolve) => void open.set(`${webhook_id}${n}`, resolve));
        void slots.run({ webhook_id, owner_id: `owner ${owner_id}`, is_repeat }, call);
      }
      await nextTurn();
    },
    open: () => [...open.keys()],
    end: async (name: string) => {
      const finish = open.get(name);
      if (finish === undefined) throw new Error(`${name} is not open`);
      open.delete(name);
      finish();
      await nextTurn();
    },
  };
};

t.test('an endpoint is sent two at a time, in order', async (t) => {
  const { slots, take, open, end } = setUp();
  await take('a', 4);
  t.same(open(), ['a0', 'a1']);
  await end('a1');
  t.same(open(), ['a0', 'a2']);
  t.same([...slots.counts()], [['a', 3]]);
  await end('a0');
  await end('a2');
  t.same(open(), ['a3']);
  await end('a3');
  t.same([...slots.counts()], []);
});

t.test('an owner is sent eight at a time; a freed slot goes to a sister endpoint', async (t) => {
  const { take, open, end } = setUp();
  for (const id of ['a', 'b', 'c', 'd', 'e']) await take(id, 2, 'one');
  t.equal(open().length, 8);
  await take('z', 1, 'other');
  t.ok(open().includes('z0'), 'another owner is not held up');
  await end('a0');
  t.ok(open().includes('e0'));
  t.equal(open().length, 9);
});

t.test('the total holds, and those that had to wait come first', async (t) => {
  const { take, open, end } = setUp({ total: 3 });
  await take('a', 4);
  await take('b', 2);
  t.same(open(), ['a0', 'a1', 'b0']);
  await end('a0');
  t.same(open(), ['a1', 'b0', 'b1']);
  await end('b0');
  t.same(open(), ['a1', 'b1', 'a2']);
});

t.test('retries leave a quarter of the slots to first attempts', async (t) => {
  const { take, open, end } = setUp({ total: 4, retries: 3 });
  for (const id of ['a', 'b', 'c', 'd']) await take(id, 1, id, true);
  t.same(open(), ['a0', 'b0', 'c0']);
  await take('e', 2);
  t.same(open(), ['a0', 'b0', 'c0', 'e0']);
  await end('e0');
  t.same(open(), ['a0', 'b0', 'c0', 'e1'], 'the slot of a first attempt stays one');
  await end('a0');
  t.same(open(), ['b0', 'c0', 'e1', 'd0']);
});

t.test('an event reaches a webhook once, signed, with exactly the bytes of the log', async (t) => {
  const hook = await world.addHook({ path: '/hook?x=1' });
  const data = { question: 'Wird es regnen? ☂ "ja"', n: 1 };
  const [event_id] = await world.record({ data });
  await world.startSigner();
  const [delivery] = await world.settled(1, 'delivered');

  const [got, ...others] = await world.receiver.waitFor('/hook?x=1', 1);
  t.same(others, []);
  t.equal(got?.body.toString(), bodyOf({ data }));
  const hex = createHmac('sha256', hook.secret)
    .update(got?.body ?? '')
    .digest('hex');
  t.match(got?.headers, {
    'content-type': 'application/json',
    'user-agent': /^prediction-forum/,
    'x-svc-event': 'question.created',
    'x-svc-signature': `sha256=${hex}`,
    'x-svc-delivery': delivery?.id,
    'x-svc-attempt': '1',
    'x-svc-offset': String(delivery?.event_offset),
    'webhook-id': event_id,
  });
  t.match(delivery, { attempts: 1, claims: 0, lease_id: null });
  t.same(await world.attempts(event_id), [{ attempt: 1, status: 204, error: null, answer: null }]);
});

t.test('a failure is tried again after five seconds with the same webhook-id', async (t) => {
  await world.addHook({ path: '/' });
  world.receiver.script('/', { status: 500, body: 'boom' }, { status: 200, body: 'ok' });
  const [event_id] = await world.record({});
  await world.startSigner();
  const [waiting] = await world.settled(1, 'waiting');
  t.ok((waiting?.wait_ms ?? 0) > 3_000 && (waiting?.wait_ms ?? 0) <= 6_000);
  t.equal(world.receiver.received.length, 1, 'nothing before its time');
  await world.makeDue();
  await world.settled(1, 'delivered');
  const [first, second] = world.receiver.received;
  t.equal(first?.headers['webhook-id'], event_id);
  t.equal(second?.headers['webhook-id'], event_id);
  t.equal(first?.headers['x-svc-delivery'], second?.headers['x-svc-delivery']);
  t.equal(second?.headers['x-svc-attempt'], '2');
  t.same(second?.body, first?.body);
  t.same(await world.attempts(event_id), [
    { attempt: 1, status: 500, error: null, answer: 'boom' },
    { attempt: 2, status: 200, error: null, answer: 'ok' },
  ]);
});

t.test('the tenth failure exhausts a delivery', async (t) => {
  await world.addHook({ path: '/' });
  const [event_id] = await world.record({});
  for (let i = 0; i < 10; i += 1) world.receiver.script('/', { status: 500 });
  await world.startSigner();
  for (let attempt = 1; attempt < 10; attempt += 1) {
    await until(`attempt ${attempt}`, async () => {
      const [one] = await world.deliveries();
      return one?.state === 'waiting' && one.attempts === attempt;
    });
    await world.makeDue();
  }
  await world.settled(1, 'exhausted');
  t.equal((await world.attempts(event_id)).length, 10);
  t.equal(world.receiver.received.length, 10);
});

t.test('question.closing_soon expires when the question closes', async (t) => {
  const event = 'question.closing_soon';
  await world.addHook({ path: '/', events: [event] });
  const at = (ms: number): string => new Date(Date.now() + ms).toISOString();
  const [late] = await world.record({ event, data: { closes_at: at(-1_000) } });
  const [early] = await world.record({ event, data: { closes_at: at(3_600_000) } });
  await world.startSigner();
  const all = await world.settled(2, 'delivered', 'expired');
  t.equal(all.find((one) => one.event_id === late)?.state, 'expired');
  t.equal(all.find((one) => one.event_id === early)?.state, 'delivered');
  t.equal(world.receiver.received.length, 1);
  t.same(await world.attempts(late), []);
});

t.test('no endpoint has more than two calls in flight and no owner more than eight', async (t) => {
  const owner = newAgent();
  const paths = ['/1', '/2', '/3', '/4', '/5', '/6'];
  for (const path of paths) await world.addHook({ path, owner });
  const held: ServerResponse[] = [];
  for (const path of paths) world.hold(path, 5, held);
  await world.record(...many(5));
  await world.startSigner();

  await until('eight calls', () => held.length === 8);
  let most = 0;
  for (let answered = 0; answered < 30; answered += 1) {
    await until('another call', () => held.length > 0);
    most = Math.max(most, held.length);
    held.shift()?.writeHead(204).end();
  }
  await world.settled(30, 'delivered');
  t.equal(most, 8);
  for (const path of paths) t.equal(world.receiver.load(path).most, 2, path);
  t.equal(world.receiver.received.length, 30);
});

t.test('an endpoint that hangs does not hold up the others', async (t) => {
  await world.addHook({ path: '/hangs' });
  await world.addHook({ path: '/quick' });
  world.hold('/hangs', 50);
  await world.record(...many(50));
  await world.startSigner({ webhooks: world.openWebhooks({ limits: { wall_ms: 1_500 } }) });
  await world.receiver.waitFor('/quick', 50);
  t.ok(world.receiver.received.filter((one) => one.path === '/hangs').length <= 4);
});

t.test('a signer whose lease is over changes nothing', async (t) => {
  await world.addHook({ path: '/' });
  const held = world.hold('/');
  const [event_id] = await world.record({});
  const slow = await world.startSigner();
  await world.receiver.waitFor('/', 1);
  await sql`update deliveries set lease_until = now() - interval '1 second'`;
  await world.startSigner();
  await world.receiver.waitFor('/', 2);
  await world.settled(1, 'delivered');

  held[0]?.writeHead(500).end('too late');
  await slow.stop();
  t.match(await world.deliveries(), [{ state: 'delivered', attempts: 1 }]);
  t.match(await world.attempts(event_id), [{ attempt: 1, status: 204 }]);
  const ids = world.receiver.received.map((one) => one.headers['webhook-id']);
  t.same(ids, [event_id, event_id]);
});

for (const [what, lease] of [
  ['that ran out', () => sql`lease_until = now() - interval '1 second'`],
  ['that another signer has now', () => sql`lease_id = ${makeId()}, signer_id = ${makeId()}`],
] as const) {
  t.test(`a lease ${what} fences its signer before the other one settles`, async (t) => {
    await world.addHook({ path: '/' });
    const held = world.hold('/');
    const [event_id] = await world.record({});
    const signer = await world.startSigner({ sweep_ms: 60_000 });
    await world.receiver.waitFor('/', 1);
    await sql`update deliveries set ${lease()}`;
    held[0]?.writeHead(204).end();
    await signer.stop();
    t.match(await world.deliveries(), [{ state: 'sending', attempts: 0, claims: 1 }]);
    t.same(await world.attempts(event_id), []);
  });
}

t.test('a delivery that was claimed five times without a result ends', async (t) => {
  await world.addHook({ path: '/' });
  await world.record({}, {});
  const lease = sql`
    state = 'sending', lease_id = ${makeId()}, signer_id = ${makeId()},
    lease_until = now() - interval '1 second'`;
  await sql`update deliveries set ${lease}, claims = 4 where event_offset = 1`;
  await sql`update deliveries set ${lease}, claims = 5 where event_offset = 2`;
  await world.startSigner();
  const [fourth, fifth] = await world.settled(2, 'delivered', 'exhausted');
  t.match(fourth, { state: 'delivered' });
  t.match(fifth, { state: 'exhausted', attempts: 0 });
  t.equal(world.receiver.received.length, 1);
});

t.test('a signer that died is noticed long before its leases end', async (t) => {
  const owner = newAgent();
  const leased = await world.addHook({ path: '/leased', owner });
  await world.addHook({ path: '/sister', owner });
  await world.addHook({ path: '/other' });
  await world.record({});
  const silent = makeId();
  await sql`insert into signers (id, seen_at) values (${silent}, now() + interval '1 minute')`;
  await sql`
    update deliveries
    set state = 'sending', claims = 1, lease_id = ${makeId()}, signer_id = ${silent},
      lease_until = now() + interval '1 hour'
    where webhook_id = ${leased.id}`;
  const signer = await world.startSigner({ sweep_ms: 600_000 });
  await until('a scan', async () =>
    (await world.deliveries()).some((one) => one.state === 'delivered'),
  );
  t.same(
    (await world.deliveries()).map((one) => one.state).sort(),
    ['delivered', 'pending', 'sending'],
    'all work of an owner is left to a signer that may be alive',
  );
  await signer.stop();

  await sql`update signers set seen_at = now() - interval '7 seconds' where id = ${silent}`;
  await world.startSigner();
  await world.settled(3, 'delivered');
  t.same(world.receiver.received.map((one) => one.path).sort(), ['/leased', '/other', '/sister']);
});

t.test('deliveries go on without Redis, at the pace of the sweeper', async (t) => {
  const nowhere = 'redis://127.0.0.1:1';
  const apart = await makeWorld(t, { redis_url: nowhere, env: { REDIS_URL: nowhere } });
  await apart.addHook({ path: '/' });
  await apart.startSigner();
  for (const count of [1, 2]) {
    await apart.record({});
    await apart.settled(count, 'delivered');
  }
  t.equal(apart.receiver.received.length, 2);
});

t.test('a stopped signer gives back what it had not sent', async (t) => {
  await world.addHook({ path: '/' });
  const held = world.hold('/', 2);
  await world.record(...many(10));
  const signer = await world.startSigner();
  await world.receiver.waitFor('/', 2);
  const stopped = signer.stop();
  for (const response of held) response.writeHead(204).end();
  await stopped;
  const states = (await world.deliveries()).map((one) => `${one.state} ${one.claims}`).sort();
  t.same(states, [
    ...Array.from({ length: 2 }, () => 'delivered 0'),
    ...Array.from({ length: 8 }, () => 'pending 0'),
  ]);
});

t.test('a secret that does not open is never signed with, and tried again', async (t) => {
  await world.addHook({ path: '/' });
  const [event_id] = await world.record({});
  await world.startSigner({ webhooks: world.openWebhooks({}, { SECRET_KEY: 'z'.repeat(32) }) });
  await world.settled(1, 'waiting');
  t.match(await world.attempts(event_id), [{ error: 'secret_unreadable' }]);
  t.equal(world.receiver.received.length, 0);
});

t.test('what fails after its webhook was switched off does not wait for it', async (t) => {
  const hook = await world.addHook({ path: '/' });
  const held = world.hold('/');
  await world.record({});
  await world.startSigner();
  await world.receiver.waitFor('/', 1);
  await sql`update webhooks set active = false where id = ${hook.id}`;
  held[0]?.writeHead(500).end();
  await world.settled(1, 'skipped_disabled');
  await world.record({});
  await world.settled(2, 'skipped_disabled');
  t.equal(world.receiver.received.length, 1);
});

t.test('the backlog of one webhook larger than a claim is delivered in full', async (t) => {
  await world.addHook({ path: '/a' });
  await world.addHook({ path: '/b' });
  await world.record(...many(60));
  await world.startSigner({ limits: { max_claimed: 7, total: 3 }, sweep_ms: 600_000 });
  await world.settled(120, 'delivered');
  t.equal(world.receiver.received.length, 120);
});

const lost = Object.assign(new Error('the answer was lost'), { code: 'CONNECTION_CLOSED' });

/** Runs every transaction, but loses the answer of the first one that claims deliveries. */
const losingOne = (inner: Sql): { readonly sql: Sql; readonly count: () => number } => {
  let count = 0;
  const begin = async (work: never): Promise<unknown> => {
    const result: unknown = await inner.begin(work);
    const leased = Array.isArray(result) && (result[0] as object | undefined);
    if (count > 0 || !leased || !('lease_id' in leased)) return result;
    count += 1;
    throw lost;
  };
  const proxy = new Proxy(inner, {
    get: (target, name) => (name === 'begin' ? begin : Reflect.get(target, name)),
  });
  return { sql: proxy, count: () => count };
};

t.test('a claim whose answer was lost is sent at once, not when its lease is over', async (t) => {
  await world.addHook({ path: '/hook' });
  await world.record({}, {}, {});
  const losing = losingOne(sql);
  const signer = createSigner(
    { ...world.deps, sql: losing.sql },
    { webhooks: world.webhooks, sweep_ms: 50, lease_ms: 60_000 },
  );
  t.teardown(() => signer.stop());
  await signer.start();
  const deliveries = await world.settled(3, 'delivered');
  t.equal(losing.count(), 1, 'one claim was lost');
  t.equal(world.receiver.received.length, 3, 'nothing was sent twice');
  t.same(pluck(deliveries, 'attempts'), [1, 1, 1]);
});

const endPause = () => sql`update webhooks set paused_until = now() where trips > 0`;

t.test('a webhook that fails ten times is left alone, then probed with one call', async (t) => {
  const hook = await world.addHook({ path: '/bad' });
  await world.addHook({ path: '/good' });
  world.receiver.script('/bad', ...many(11).map(() => ({ status: 500 })));
  await world.record(...many(30));
  const signer = await world.startSigner();
  await world.receiver.waitFor('/good', 30);
  await until('the breaker is open', async () => (await healthOf(world, hook)).trips === 1);
  await until('nothing is in flight', async () =>
    (await world.deliveries()).every((one) => one.state !== 'sending'),
  );
  // Two calls are in flight together, so the eleventh may have started when the tenth failed.
  const calls = world.receiver.of('/bad').length;
  t.ok(calls === 10 || calls === 11, `${calls} calls`);
  const open = await healthOf(world, hook);
  t.ok((open.pause_s ?? 0) <= 30, String(open.pause_s));
  t.equal(open.failures, calls);
  const left = (await world.deliveries()).filter((one) => one.webhook_id === hook.id);
  t.equal(left.filter((one) => one.state === 'pending' && one.claims === 0).length, 30 - calls);

  // From now on the receiver works, except for one call.
  if (calls === 11) world.receiver.script('/bad', { status: 500 });
  await endPause();
  await until('a probe failed', async () => (await healthOf(world, hook)).trips === 2);
  t.equal(world.receiver.of('/bad').length, calls + 1, 'one call and no more');
  const again = await healthOf(world, hook);
  t.ok((again.pause_s ?? 0) > 20 && (again.pause_s ?? 0) <= 60, String(again.pause_s));

  await endPause();
  await until('the rest arrives', () => world.receiver.of('/bad').length >= 30);
  await world.makeDue();
  await world.settled(60, 'delivered');
  const well = await healthOf(world, hook);
  t.match(well, { trips: 0, pause_s: null, failures: 0, failed: 0, active: true });
  await signer.stop();
});

t.test('a healthy webhook is not written to', async (t) => {
  const hook = await world.addHook();
  const versionOf = async () =>
    (await sql`select xmin::text as version from webhooks where id = ${hook.id}`)[0];
  const before = await versionOf();
  await world.record(...many(20));
  await world.startSigner({ maintenance: { every_ms: 20 } });
  await world.settled(20, 'delivered');
  t.same(await versionOf(), before);
});
