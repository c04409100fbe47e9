import { setImmediate as nextTurn } from 'node:timers/promises';
import { test } from 'tap';
import {
  createSlots,
  type SendLimits,
  send_limits,
} from '../../../src/features/webhooks/sending.js';

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

test('an endpoint is sent two at a time, in order', async (t) => {
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

test('an owner is sent eight at a time, and a freed slot goes to a sister endpoint', async (t) => {
  const { take, open, end } = setUp();
  for (const id of ['a', 'b', 'c', 'd', 'e']) await take(id, 2, 'one');
  t.equal(open().length, 8);
  await take('z', 1, 'other');
  t.ok(open().includes('z0'), 'another owner is not held up');
  await end('a0');
  t.ok(open().includes('e0'));
  t.equal(open().length, 9);
});

test('the total holds, and those that had to wait come first', async (t) => {
  const { take, open, end } = setUp({ total: 3 });
  await take('a', 4);
  await take('b', 2);
  t.same(open(), ['a0', 'a1', 'b0']);
  await end('a0');
  t.same(open(), ['a1', 'b0', 'b1']);
  await end('b0');
  t.same(open(), ['a1', 'b1', 'a2']);
});

test('retries leave a quarter of the slots to first attempts', async (t) => {
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
