import type { Test } from 'tap';
import { redeliver, startReplay } from '../../../src/features/webhooks/delivery-store.js';
import { planDeliveries } from '../../../src/features/webhooks/planning-store.js';
import { makeId } from '../../../src/kit/ids.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { editHook, makeWorld } from './world.js';

/** `order: "question"`: the events of one question are sent one after another. */

const world = await makeWorld(t);
const { sql } = world.deps;
t.beforeEach(world.reset);

const [one, other] = [makeId(), makeId()];
const order = 'question';

/** Records events of these questions, in this order. */
const record = (...questions: readonly string[]) =>
  world.record(...questions.map((question_id) => ({ question_id })));
/** Offsets in the order in which the receiver got them. */
const arrived = (): number[] =>
  world.receiver.received.map(({ headers }) => Number(headers['x-svc-offset']));
const waitFor = (...offsets: readonly number[]) =>
  until(`offsets ${offsets}`, () => arrived().length >= offsets.length);
const statesOf = async () => (await world.deliveries()).map(({ state }) => state);
/** Waits until this many deliveries are in this state. */
const reach = (count: number, wanted: string) =>
  until(`${count} are ${wanted}`, async () => {
    const states = await statesOf();
    return states.filter((state) => state === wanted).length >= count;
  });
/** Makes the next attempt of failed deliveries due now. */
const hurry = () => sql`update deliveries set next_at = now() where state = 'waiting'`;

const failFirst = async (t: Test) => {
  world.receiver.script('/', { status: 500 });
  await record(one, one);
  await world.startSigner();
  await reach(1, 'waiting');
  t.same(arrived(), [1]);
};

t.test('while an event is tried again its question waits, and others go on', async (t) => {
  await world.addHook({ order });
  await failFirst(t);
  await record(other, one, other);
  await reach(2, 'delivered');
  t.same(arrived(), [1, 3, 5]);
  t.same(await statesOf(), ['waiting', 'pending', 'delivered', 'pending', 'delivered']);
  await hurry();
  await reach(5, 'delivered');
  t.same(arrived(), [1, 3, 5, 1, 2, 4]);
});

t.test('without an order nothing waits for an event that is tried again', async (t) => {
  await world.addHook();
  world.receiver.script('/', { status: 500 });
  await record(one);
  await world.startSigner();
  await reach(1, 'waiting');
  await record(one, one);
  await reach(2, 'delivered');
  t.same(arrived().toSorted(), [1, 2, 3]);
});

t.test('a question has one delivery under way, however long its answer takes', async (t) => {
  await world.addHook({ order });
  const held = world.hold('/');
  await record(one, one, other);
  await world.startSigner();
  await reach(1, 'delivered');
  t.same(arrived().toSorted(), [1, 3]);
  for (const response of held) response.writeHead(204).end();
  await reach(3, 'delivered');
  t.same(arrived().at(-1), 2);
});

t.test('the events of a question follow each other without a pause', async (t) => {
  await world.addHook({ order });
  await record(...Array.from({ length: 60 }, () => one));
  await world.startSigner({ sweep_ms: 600_000 });
  await reach(60, 'delivered');
  t.same(
    arrived(),
    Array.from({ length: 60 }, (_, index) => index + 1),
  );
});

t.test('an event that is given up lets the later ones of its question go', async (t) => {
  await world.addHook({ order });
  await failFirst(t);
  world.receiver.script('/', { status: 500 });
  await sql`update deliveries set attempts = 9, next_at = now() where state = 'waiting'`;
  await reach(1, 'delivered');
  t.same(await statesOf(), ['exhausted', 'delivered']);
  t.same(arrived(), [1, 1, 2]);
});

t.test('switching the order on and off applies to what waits already', async (t) => {
  const hook = await world.addHook();
  await record(one, one, one);
  await editHook(world, hook, { order });
  const held = world.hold('/', 3);
  const signer = await world.startSigner();
  await waitFor(1);
  await record(other);
  await waitFor(1, 4);
  t.same(arrived(), [1, 4]);
  const stopped = signer.stop();
  for (const response of held) response.writeHead(503).end();
  await stopped;
  await editHook(world, hook, { order: 'none' });
  await world.startSigner();
  await waitFor(1, 4, 2, 3);
  t.same(arrived().slice(2).toSorted(), [2, 3]);
});

t.test('events that a replay has still to queue come before later ones', async (t) => {
  const hook = await world.addHook({ order });
  await editHook(world, hook, { active: false });
  await record(one, one);
  await editHook(world, hook, { active: true });
  await sql.begin((tx) => startReplay(tx, hook.id, { after: 0, until: 2 }));
  // A replay pauses while this many deliveries are waiting.
  await record(other, ...Array.from({ length: 501 }, () => one));
  await world.startSigner({ maintenance: { every_ms: 20 } });
  await reach(4, 'delivered');
  t.same(
    arrived()
      .filter((offset) => offset !== 3)
      .slice(0, 3),
    [1, 2, 4],
  );
});

t.test('an event waits while earlier offsets are not planned', async (t) => {
  await world.addHook({ order });
  await record(one, one);
  await sql`delete from deliveries where event_offset = 1`;
  await sql`update delivery_plan set planned_offset = 0`;
  await sql`insert into planned_ranges (first_offset, last_offset) values (2, 2)`;
  await world.addHook({ path: '/free' });
  await sql`update webhooks set after_offset = 0`;
  await world.startSigner({ late_ms: 600_000 });
  await sql.begin((tx) => planDeliveries(tx, { first: 1, last: 1 }));
  await world.receiver.waitFor('/', 2);
  t.same(
    world.receiver.of('/').map(({ headers }) => headers['x-svc-offset']),
    ['1', '2'],
  );
});

t.test('an event that is sent again comes before the later ones that wait', async (t) => {
  const hook = await world.addHook({ order });
  world.receiver.script('/', { status: 204 }, { status: 500 });
  const [first] = await record(one, one, one);
  await world.startSigner();
  await reach(1, 'waiting');
  const [delivery] = await world.deliveries();
  t.match(delivery, { event_id: first, state: 'delivered' });
  await redeliver(sql, hook.id, delivery?.id as string);
  await hurry();
  await reach(3, 'delivered');
  t.same(arrived(), [1, 2, 1, 2, 3]);
});
