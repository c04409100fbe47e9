import { createHmac } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { Webhook } from 'standardwebhooks';
import { test } from 'tap';
import { createWebhooks, planDeliveries } from '../../../src/features/webhooks/index.js';
import { standardSecret } from '../../../src/features/webhooks/signing.js';
import { makeId } from '../../../src/kit/ids.js';
import { until } from '../../help/until.js';
import { bodyOf, makeWorld, newAgent } from './world.js';

test('an event reaches a webhook once, signed, with exactly the bytes of the log', async (t) => {
  const world = await makeWorld(t);
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
  const library = new Webhook(standardSecret(hook.secret));
  t.doesNotThrow(() => library.verify(got?.body ?? '', got?.headers as Record<string, string>));
  t.match(delivery, { attempts: 1, claims: 0, lease_id: null });
  t.same(await world.attempts(event_id as string), [
    { attempt: 1, status: 204, error: null, answer: null },
  ]);
});

test('an event goes to each active webhook that asked for it and to no other', async (t) => {
  const world = await makeWorld(t);
  await world.addHook({ path: '/a', events: ['question.created', 'question.closed'] });
  await world.addHook({ path: '/b', events: ['question.closed'] });
  await world.addHook({ path: '/c', events: ['question.resolved'] });
  const off = await world.addHook({ path: '/d' });
  await world.deps.sql`update webhooks set active = false where id = ${off.id}`;
  await world.record({}, { event: 'question.closed' });
  const planned = (await world.deliveries()).map((one) => `${one.state} ${one.webhook_id}`);
  t.equal(planned.length, 4);
  t.ok(planned.includes(`skipped_disabled ${off.id}`), 'kept, so that it can be replayed');
  await world.startSigner();
  await world.settled(4, 'delivered', 'skipped_disabled');
  const paths = world.receiver.received.map((one) => `${one.path} ${one.headers['x-svc-event']}`);
  t.same(paths.sort(), ['/a question.closed', '/a question.created', '/b question.closed']);
});

test('an offset is planned once, whatever became of its deliveries', async (t) => {
  const world = await makeWorld(t);
  const { sql } = world.deps;
  await world.addHook();
  await world.record({}, {}, {});
  await sql`delete from deliveries where event_offset = 2`;
  await sql.begin((tx) => planDeliveries(tx, { first: 1, last: 3 }));
  t.same(
    (await world.deliveries()).map((one) => one.event_offset),
    [1, 3],
  );
});

test('a reply goes only to the author and to the human who owns the author', async (t) => {
  const world = await makeWorld(t);
  const { sql } = world.deps;
  const human = makeId();
  const author = newAgent();
  await sql`
    insert into humans (id, email, email_key, password_hash)
    values (${human}, 'a@b.dev', 'a@b.dev', '-')`;
  await sql`
    insert into agents
      (id, name, name_key, model, model_family, persona_archetype, risk_profile, roles,
        referral_code, owner_id, linked_at, key_digest)
    values
      (${author.id}, 'author', 'author', 'm', 'other', 'data_driven', 'moderate', '{predictor}',
        'CODE', ${human}, now(), ${Buffer.alloc(32)})`;
  const events = ['comment.reply'];
  await world.addHook({ path: '/author', owner: author, events });
  await world.addHook({ path: '/owner', owner: { kind: 'human', id: human }, events });
  await world.addHook({ path: '/stranger', events });
  await world.addHook({ path: '/human', owner: { kind: 'human', id: makeId() }, events });
  await world.record({ event: 'comment.reply', audience_id: author.id });
  await world.startSigner();
  await world.settled(2, 'delivered');
  t.same(world.receiver.received.map((one) => one.path).sort(), ['/author', '/owner']);
});

test('a failure is tried again after five seconds with the same webhook-id', async (t) => {
  const world = await makeWorld(t);
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
  t.same(await world.attempts(event_id as string), [
    { attempt: 1, status: 500, error: null, answer: 'boom' },
    { attempt: 2, status: 200, error: null, answer: 'ok' },
  ]);
});

for (const status of [301, 410, 404, 599]) {
  test(`an answer of ${status} is a failure and is not followed`, async (t) => {
    const world = await makeWorld(t);
    await world.addHook({ path: '/' });
    world.receiver.script('/', { status, headers: { Location: world.receiver.url('/else') } });
    const [event_id] = await world.record({});
    await world.startSigner();
    await world.settled(1, 'waiting');
    t.match(await world.attempts(event_id as string), [{ status, error: null }]);
    t.equal(world.receiver.received.length, 1);
  });
}

test('Retry-After of a 429 moves the next attempt, up to twice the step', async (t) => {
  const world = await makeWorld(t);
  await world.addHook({ path: '/eight' });
  await world.addHook({ path: '/hour' });
  world.receiver.script('/eight', { status: 429, headers: { 'Retry-After': '8' } });
  world.receiver.script('/hour', { status: 429, headers: { 'Retry-After': '3600' } });
  await world.record({});
  await world.startSigner();
  const waits = (await world.settled(2, 'waiting')).map((one) => one.wait_ms).sort((a, b) => a - b);
  t.ok((waits[0] ?? 0) > 7_000 && (waits[0] ?? 0) <= 9_700, String(waits));
  t.ok((waits[1] ?? 0) > 9_000 && (waits[1] ?? 0) <= 10_000, String(waits));
});

test('the tenth failure exhausts a delivery', async (t) => {
  const world = await makeWorld(t);
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
  t.equal((await world.attempts(event_id as string)).length, 10);
  t.equal(world.receiver.received.length, 10);
});

test('a receiver that does not answer in time is a failure', async (t) => {
  const world = await makeWorld(t);
  await world.addHook({ path: '/' });
  world.receiver.script('/', () => undefined);
  const [event_id] = await world.record({});
  const webhooks = createWebhooks(world.deps.config, { limits: { wall_ms: 150 } });
  t.teardown(() => webhooks.close());
  await world.startSigner({ webhooks });
  await world.settled(1, 'waiting');
  t.match(await world.attempts(event_id as string), [{ status: null, error: 'timeout' }]);
});

test('an endless answer with a good status is a success', async (t) => {
  const world = await makeWorld(t);
  await world.addHook({ path: '/' });
  world.receiver.script('/', (response) => {
    response.writeHead(200);
    const pour = (): void => {
      while (!response.destroyed && response.write('y'.repeat(1_000)));
      response.once('drain', pour);
    };
    pour();
  });
  const [event_id] = await world.record({});
  await world.startSigner();
  await world.settled(1, 'delivered');
  t.match(await world.attempts(event_id as string), [{ status: 200, answer: 'y'.repeat(1_024) }]);
});

test('a target that the rules refuse by now is blocked and not called', async (t) => {
  const world = await makeWorld(t);
  await world.addHook({ path: '/' });
  await world.addHook({ url: 'https://localhost/' });
  const [event_id] = await world.record({});
  const strict = createWebhooks({ ...world.deps.config, WEBHOOK_ALLOW_CIDRS: [] });
  t.teardown(() => strict.close());
  await world.startSigner({ webhooks: strict });
  await world.settled(2, 'blocked');
  t.equal(world.receiver.received.length, 0);
  t.match(await world.attempts(event_id as string), [
    { attempt: 1, status: null, error: 'target_refused' },
    { attempt: 1, status: null, error: 'target_refused' },
  ]);
});

test('a name that moved to a private address is blocked', async (t) => {
  const world = await makeWorld(t);
  await world.addHook({ url: 'https://hooks.forecast-receiver.com/' });
  const [event_id] = await world.record({});
  const rebound = createWebhooks(world.deps.config, { resolve: async () => ['10.0.0.5'] });
  t.teardown(() => rebound.close());
  await world.startSigner({ webhooks: rebound });
  await world.settled(1, 'blocked');
  t.match(await world.attempts(event_id as string), [{ error: 'address_refused' }]);
});

test('question.closing_soon expires when the question closes', async (t) => {
  const world = await makeWorld(t);
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
  t.same(await world.attempts(late as string), []);
});

const many = (count: number) => Array.from({ length: count }, () => ({}));

test('no endpoint has more than two calls in flight and no owner more than eight', async (t) => {
  const world = await makeWorld(t);
  const owner = newAgent();
  const paths = ['/1', '/2', '/3', '/4', '/5', '/6'];
  for (const path of paths) await world.addHook({ path, owner });
  const held: ServerResponse[] = [];
  const hold = (response: ServerResponse): void => void held.push(response);
  for (const path of paths) world.receiver.script(path, ...many(5).map(() => hold));
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

test('an endpoint that hangs does not hold up the others', async (t) => {
  const world = await makeWorld(t);
  await world.addHook({ path: '/hangs' });
  await world.addHook({ path: '/quick' });
  world.receiver.script('/hangs', ...many(50).map(() => () => undefined));
  await world.record(...many(50));
  const webhooks = createWebhooks(world.deps.config, { limits: { wall_ms: 1_500 } });
  t.teardown(() => webhooks.close());
  await world.startSigner({ webhooks });
  await world.receiver.waitFor('/quick', 50);
  t.ok(world.receiver.received.filter((one) => one.path === '/hangs').length <= 4);
});

test('two signers share the work: nothing is sent twice, the limits hold for both', async (t) => {
  const world = await makeWorld(t);
  const owner = newAgent();
  const paths = ['/1', '/2', '/3', '/4'];
  for (const path of paths) await world.addHook({ path, owner });
  for (const path of ['/5', '/6']) await world.addHook({ path });
  await world.record(...many(40));
  await Promise.all([world.startSigner(), world.startSigner()]);
  await world.record(...many(40));
  await world.settled(480, 'delivered');
  const seen = world.receiver.received.map((one) => `${one.path} ${one.headers['webhook-id']}`);
  t.equal(seen.length, 480);
  t.equal(new Set(seen).size, 480);
  for (const path of [...paths, '/5', '/6']) t.ok(world.receiver.load(path).most <= 2, path);
});

test('a signer whose lease is over changes nothing', async (t) => {
  const world = await makeWorld(t);
  const { sql } = world.deps;
  await world.addHook({ path: '/' });
  const held: ServerResponse[] = [];
  world.receiver.script('/', (response) => void held.push(response));
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
  t.match(await world.attempts(event_id as string), [{ attempt: 1, status: 204 }]);
  const ids = world.receiver.received.map((one) => one.headers['webhook-id']);
  t.same(ids, [event_id, event_id]);
});

test('a lease that ran out fences its signer although nobody took the delivery', async (t) => {
  const world = await makeWorld(t);
  const { sql } = world.deps;
  await world.addHook({ path: '/' });
  const held: ServerResponse[] = [];
  world.receiver.script('/', (response) => void held.push(response));
  const [event_id] = await world.record({});
  const signer = await world.startSigner({ sweep_ms: 60_000 });
  await world.receiver.waitFor('/', 1);
  await sql`update deliveries set lease_until = now() - interval '1 second'`;
  held[0]?.writeHead(204).end();
  await signer.stop();
  t.match(await world.deliveries(), [{ state: 'sending', attempts: 0, claims: 1 }]);
  t.same(await world.attempts(event_id as string), []);
});

test('a delivery that was claimed five times without a result ends', async (t) => {
  const world = await makeWorld(t);
  const { sql } = world.deps;
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

test('a signer that died is noticed long before its leases end', async (t) => {
  const world = await makeWorld(t);
  const { sql } = world.deps;
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

test('deliveries go on without Redis, at the pace of the sweeper', async (t) => {
  const nowhere = 'redis://127.0.0.1:1';
  const world = await makeWorld(t, { redis_url: nowhere, env: { REDIS_URL: nowhere } });
  await world.addHook({ path: '/' });
  await world.startSigner();
  await world.record({});
  await world.settled(1, 'delivered');
  await world.record({});
  await world.settled(2, 'delivered');
  t.equal(world.receiver.received.length, 2);
});

test('a stopped signer gives back what it had not sent', async (t) => {
  const world = await makeWorld(t);
  await world.addHook({ path: '/' });
  const held: ServerResponse[] = [];
  world.receiver.script('/', ...many(2).map(() => (r: ServerResponse) => void held.push(r)));
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

test('a secret that does not open is never signed with, and tried again', async (t) => {
  const world = await makeWorld(t);
  await world.addHook({ path: '/' });
  const [event_id] = await world.record({});
  const other = createWebhooks({ ...world.deps.config, SECRET_KEY: 'z'.repeat(32) });
  t.teardown(() => other.close());
  await world.startSigner({ webhooks: other });
  await world.settled(1, 'waiting');
  t.match(await world.attempts(event_id as string), [{ error: 'secret_unreadable' }]);
  t.equal(world.receiver.received.length, 0);
});

test('what fails after its webhook was switched off does not wait for it', async (t) => {
  const world = await makeWorld(t);
  const hook = await world.addHook({ path: '/' });
  const held: ServerResponse[] = [];
  world.receiver.script('/', (response) => void held.push(response));
  await world.record({});
  await world.startSigner();
  await world.receiver.waitFor('/', 1);
  await world.deps.sql`update webhooks set active = false where id = ${hook.id}`;
  held[0]?.writeHead(500).end();
  await world.settled(1, 'skipped_disabled');
  await world.record({});
  await world.settled(2, 'skipped_disabled');
  t.equal(world.receiver.received.length, 1);
});

test('the backlog of one webhook larger than a claim is delivered in full', async (t) => {
  const world = await makeWorld(t);
  await world.addHook({ path: '/a' });
  await world.addHook({ path: '/b' });
  await world.record(...many(60));
  await world.startSigner({ limits: { most_claimed: 7, total: 3 }, sweep_ms: 600_000 });
  await world.settled(120, 'delivered');
  t.equal(world.receiver.received.length, 120);
});
