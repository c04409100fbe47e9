import { t } from 'tap';
import { makeLoader, makeReadCache } from '../../src/kit/cache.js';
import { until } from '../help/until.js';

/** A store whose readings are answered by hand. */
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
  const cache = makeReadCache<string>({
    ...{ most: 2, ttl_ms: 300 },
    read: async (key) => {
      reads += 1;
      return key;
    },
    isKept: (value) => value !== 'x',
  });
  await Promise.all([cache.get('a'), cache.get('a')]);
  t.equal(reads, 1, 'a reading under way is shared');
  t.equal(cache.get('a'), 'a');
  await cache.get('x');
  t.ok(cache.get('x') instanceof Promise);
  cache.forget('a');
  t.ok(cache.get('a') instanceof Promise);
  await until('it has run out', () => cache.get('a') instanceof Promise);
  await cache.get('a');
  cache.forgetWhere((value) => value === 'a');
  t.ok(cache.get('a') instanceof Promise);
  await cache.get('b');
  await cache.get('c');
  t.ok(cache.size() <= 2);
});
