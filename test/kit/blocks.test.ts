import fc from 'fast-check';
import { t } from 'tap';
import { Blocks } from '../../src/kit/blocks.js';
import { holds } from '../help/property.js';

interface List {
  start: number;
  power: number;
  readonly numbers: number[];
}

const addTo = (blocks: Blocks, list: List, number: number): void => {
  const { start, power, numbers } = list;
  if (numbers.length === 2 ** power) {
    list.start = blocks.take(power + 1);
    list.power = power + 1;
    blocks.values.copyWithin(list.start, start, start + numbers.length);
    blocks.leave(start, power);
  }
  blocks.values[list.start + numbers.length] = number;
  numbers.push(number);
};

/** Beside the length of each stands where it begins, and a number of no meaning. */
const packAll = (blocks: Blocks, lists: readonly List[]): void => {
  const numbers = Int32Array.from(lists.flatMap((list) => [-7, list.numbers.length, list.start]));
  blocks.pack(numbers, { width: 3, length: 1, start: 2 });
  lists.forEach((list, n) => {
    list.start = numbers[3 * n + 2]!;
    list.power = 32 - Math.clz32(list.numbers.length - 1);
  });
};

t.test('lists keep their numbers, however many grow beside each other', async (t) => {
  await holds(
    t,
    fc.property(fc.array(fc.nat(20), { maxLength: 2_000 }), fc.boolean(), (turns, packs) => {
      const blocks = new Blocks(4, true);
      const lists = new Map<number, List>();
      turns.forEach((which, n) => {
        if (packs && blocks.isWorthPacking) packAll(blocks, [...lists.values()]);
        const list = lists.get(which) ?? { start: blocks.take(0), power: 0, numbers: [] };
        lists.set(which, list);
        addTo(blocks, list, n);
      });
      const are_kept = [...lists.values()].every(({ start, numbers }) =>
        numbers.every((number, at) => blocks.values[start + at] === number),
      );
      // A block is at most twice its list, and less than that again is left for others.
      return are_kept && blocks.length <= 4 * turns.length + 64;
    }),
  );
});

t.test('what was left is taken again before the array grows', async (t) => {
  const blocks = new Blocks();
  const small = [blocks.take(1), blocks.take(1), blocks.take(1)];
  const { length } = blocks;
  blocks.leave(small[0]!, 1);
  blocks.leave(small[2]!, 1);
  t.same([blocks.take(1), blocks.take(1)], [small[2], small[0]]);
  t.equal(blocks.length, length);
  blocks.take(1);
  t.equal(blocks.length, length + 2);
});

t.test('lists that grow side by side are packed, and take less room for it', async (t) => {
  const blocks = new Blocks(64, true);
  const lists = Array.from(
    { length: 40 },
    (): List => ({ start: blocks.take(0), power: 0, numbers: [] }),
  );
  let packed = 0;
  for (let n = 0; n < 8_000; n += 1) {
    if (blocks.isWorthPacking) {
      const before = blocks.length;
      packAll(blocks, lists);
      packed += 1;
      t.ok(blocks.length <= 0.75 * before, `${blocks.length} of ${before}`);
      t.notOk(blocks.isWorthPacking);
    }
    // Some grow faster than others.
    const list = lists[(n * n) % lists.length] as List;
    addTo(blocks, list, n);
  }
  t.ok(packed >= 1, `${packed} times`);
  for (const { start, numbers } of lists.filter((list) => list.numbers.length > 0)) {
    t.same([...blocks.values.subarray(start, start + numbers.length)], numbers);
  }
});
