import { test } from 'tap';
import {
  Dispatcher,
  type DispatchLimits,
  dispatch_limits,
  type Job,
} from '../../../src/features/webhooks/delivery/dispatcher.js';

interface Call extends Job {
  readonly name: string;
}

/** Calls stay open until the test ends them. */
const setUp = (limits: Partial<DispatchLimits> = {}) => {
  const open = new Map<Call, () => void>();
  const given_back: Call[] = [];
  const stale = new Set<string>();
  let hungry = 0;
  const dispatcher = new Dispatcher<Call>({
    limits: { ...dispatch_limits, ...limits },
    send: (call) => new Promise((resolve) => void open.set(call, resolve)),
    isFresh: (call) => !stale.has(call.name),
    giveBack: (call) => void given_back.push(call),
    onHungry: () => {
      hungry += 1;
    },
  });
  return {
    dispatcher,
    take: (leased: readonly Call[]) => dispatcher.add(leased),
    given_back,
    stale,
    hungry: () => hungry,
    open: () => [...open.keys()].map((call) => call.name),
    end: async (name: string) => {
      const call = [...open.keys()].find((one) => one.name === name);
      if (call === undefined) throw new Error(`${name} is not open`);
      const finish = open.get(call);
      open.delete(call);
      finish?.();
      await Promise.resolve();
      await Promise.resolve();
    },
  };
};

const job = (webhook_id: string, n: number, owner_id = webhook_id, attempts = 0): Call => ({
  is_replay: false,
  name: `${webhook_id}${n}`,
  webhook_id,
  owner_id,
  attempts,
});
const jobs = (webhook_id: string, count: number, owner_id = webhook_id, attempts = 0): Call[] =>
  Array.from({ length: count }, (_, n) => job(webhook_id, n, owner_id, attempts));

test('an endpoint is sent two at a time, in order', async (t) => {
  const { take, open, end } = setUp();
  take(jobs('a', 4));
  t.same(open(), ['a0', 'a1']);
  await end('a1');
  t.same(open(), ['a0', 'a2']);
  await end('a0');
  await end('a2');
  t.same(open(), ['a3']);
});

test('an owner is sent eight at a time, and a freed slot goes to a sister endpoint', async (t) => {
  const { take, open, end } = setUp();
  for (const id of ['a', 'b', 'c', 'd', 'e']) take(jobs(id, 2, 'one'));
  t.equal(open().length, 8);
  take(jobs('z', 1, 'other'));
  t.ok(open().includes('z0'), 'another owner is not held up');
  await end('a0');
  t.ok(open().includes('e0'));
  t.equal(open().length, 9);
});

test('the total holds, and those that had to wait come first', async (t) => {
  const { take, open, end } = setUp({ total: 2 });
  take([...jobs('a', 4), ...jobs('b', 1), ...jobs('c', 1)]);
  t.same(open(), ['a0', 'b0']);
  await end('a0');
  t.same(open(), ['b0', 'c0']);
  await end('b0');
  t.same(open(), ['c0', 'a1']);
});

test('retries leave a quarter of the slots to first attempts', async (t) => {
  const { take, open, end } = setUp({ total: 4, retries: 3 });
  for (const id of ['a', 'b', 'c', 'd']) take(jobs(id, 1, id, 2));
  t.same(open(), ['a0', 'b0', 'c0']);
  take(jobs('e', 2));
  t.same(open(), ['a0', 'b0', 'c0', 'e0']);
  await end('e0');
  t.same(open(), ['a0', 'b0', 'c0', 'e1'], 'the slot of a first attempt stays one');
  await end('a0');
  t.same(open(), ['b0', 'c0', 'e1', 'd0']);
});

test('a first attempt passes the retries that wait before it', (t) => {
  const { take, open } = setUp({ total: 4, retries: 1 });
  take([job('a', 0, 'a', 3), job('a', 1, 'a', 3), job('a', 2)]);
  t.same(open(), ['a0', 'a2']);
  t.end();
});

test('an endpoint with more than was leased becomes hungry, one without is forgotten', async (t) => {
  const { dispatcher, take, end, hungry } = setUp({ most_queued: 4 });
  take([...jobs('a', 5), ...jobs('b', 1)]);
  t.same(
    [...dispatcher.rooms()],
    [
      ['a', 1],
      ['b', 4],
    ],
  );
  dispatcher.noteMore('a', true);
  t.same([...dispatcher.hungryRooms()], []);
  await end('a0');
  t.equal(hungry(), 1, 'half of its queue is gone');
  t.same([...dispatcher.hungryRooms()], [['a', 2]]);
  await end('b0');
  t.same([...dispatcher.rooms().keys()], ['a']);
  dispatcher.noteMore('a', false);
  for (const name of ['a1', 'a2', 'a3', 'a4']) await end(name);
  t.equal(hungry(), 1);
  t.equal(dispatcher.rooms().size, 0);
  await dispatcher.idle();
});

test('what waited too long is given back and not sent', async (t) => {
  const { take, open, end, stale, given_back } = setUp();
  take(jobs('a', 5));
  stale.add('a2').add('a3');
  await end('a0');
  t.same(open(), ['a1', 'a4']);
  t.same(
    given_back.map((one) => one.name),
    ['a2', 'a3'],
  );
});

test('everything that is not being sent can be taken out', async (t) => {
  const { dispatcher, take, open, end } = setUp({ most_claimed: 9 });
  take([...jobs('a', 5), ...jobs('b', 1)]);
  t.equal(dispatcher.room, 3);
  t.same(
    dispatcher.takeAll().map((one) => one.name),
    ['a2', 'a3', 'a4'],
  );
  t.equal(dispatcher.room, 6);
  for (const name of open()) await end(name);
  await dispatcher.idle();
  t.same(open(), []);
});
