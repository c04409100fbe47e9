import { BusyError, makeCache, makeLoader, makeQueue } from '../../src/kit/cache.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

/** A store whose reads the test answers. */
const makeStore = () => {
  const readings: { keys: readonly string[]; answer(): void; fail(error: Error): void }[] = [];
  const read = (keys: readonly string[]): Promise<string[]> =>
    new Promise((resolve, reject) => {
      readings.push({ keys, answer: () => resolve(keys.map((key) => `${key}!`)), fail: reject });
    });
  const asked = (n: number) => until(`reading ${n}`, () => readings.length === n);
  return { readings, read, asked, keys: () => readings.map(({ keys }) => keys.join('')) };
};

t.test('what is asked for in one turn is read together, and each gets its own', async (t) => {
  const { readings, read, asked, keys } = makeStore();
  const get = makeLoader(read, { at_once: 1 });
  const got = [get('a'), get('b'), get('a')];
  await asked(1);
  t.same(keys(), ['ab']);
  readings[0]?.answer();
  t.same(await Promise.all(got), ['a!', 'b!', 'a!']);
});

t.test('the next reading gathers while others are under way, at most so many keys', async (t) => {
  const { readings, read, asked, keys } = makeStore();
  const get = makeLoader(read, { most: 2, at_once: 1 });
  const first = get('a');
  await asked(1);
  const later = ['a', 'b', 'c'].map(get);
  readings[0]?.answer();
  t.equal(await first, 'a!');
  await asked(2);
  t.same(keys(), ['a', 'ab'], 'what is being read is read again for those who ask later');
  readings[1]?.answer();
  await asked(3);
  readings[2]?.answer();
  t.same(await Promise.all(later), ['a!', 'b!', 'c!']);
  t.same(keys(), ['a', 'ab', 'c']);
});

t.test('a reading that fails is told to its own, and makes room for the next', async (t) => {
  const { readings, read, asked } = makeStore();
  const get = makeLoader(read, { at_once: 1 });
  const lost = get('a');
  await asked(1);
  readings[0]?.fail(new Error('Away.'));
  await t.rejects(lost, { message: 'Away.' });
  const next = get('a');
  await asked(2);
  readings[1]?.answer();
  t.equal(await next, 'a!');
});

t.test('a cache keeps what it may, for its time, and forgets what it is told to', async (t) => {
  let reads = 0;
  const cache = makeCache<string>({ most: 2, ttl_ms: 300, isKept: (value) => value !== 'x' });
  const get = (key: string) =>
    cache.get(key, async () => {
      reads += 1;
      return key;
    });
  await Promise.all([get('a'), get('a')]);
  t.equal(reads, 1, 'a reading under way is shared');
  t.same([get('a'), cache.peek('a')], ['a', 'a']);
  await get('x');
  t.ok(get('x') instanceof Promise);
  cache.forget('a');
  const lost = get('a');
  cache.forget('a');
  await lost;
  t.equal(cache.peek('a'), undefined, 'forgotten while it was read');
  await get('a');
  await until('it has run out', () => get('a') instanceof Promise);
  await get('a');
  cache.forgetWhere((_, value) => value === 'a');
  t.ok(get('a') instanceof Promise);
  await get('b');
  await get('c');
  t.equal(cache.peek('a'), undefined, 'the longest unused goes first');
});

t.test('a cache holds so much, and nothing that alone is more', async (t) => {
  const cache = makeCache<string>({ most: 10, sizeOf: (value) => value.length });
  for (const value of ['aaaa', 'bbbb', 'cccc', 'x'.repeat(11)]) {
    await cache.get(value[0] as string, async () => value);
  }
  t.same(['a', 'b', 'c', 'x'].map(cache.peek), [undefined, 'bbbb', 'cccc', undefined]);
});

t.test('a queue lets so many work and so many wait', async (t) => {
  const run = makeQueue(1, 1);
  const work = () => new Promise<number>((resolve) => setImmediate(resolve, 1));
  const settled = await Promise.allSettled([run(work), run(work), run(work)]);
  t.same(
    settled.map((one) => (one.status === 'fulfilled' ? one.value : one.reason.constructor)),
    [1, 1, BusyError],
  );
  t.equal(await run(work), 1);
});
