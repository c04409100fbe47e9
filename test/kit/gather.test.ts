import { t } from 'tap';
import { makeGather } from '../../src/kit/gather.js';

/** A store whose readings are answered by hand. */
const makeStore = () => {
  const readings: { ids: readonly string[]; answer(): void; fail(error: Error): void }[] = [];
  const read = (ids: readonly string[]): Promise<string[]> =>
    new Promise((resolve, reject) => {
      readings.push({ ids, answer: () => resolve(ids.map((id) => `${id}!`)), fail: reject });
    });
  return { readings, read };
};

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

t.test('what is asked for in one turn is read together, and each gets its own', async (t) => {
  const { readings, read } = makeStore();
  const get = makeGather({ read, most: 10, lanes: 1 });
  const asked = [get('a'), get('b'), get('a')];
  await turn();
  t.same(
    readings.map(({ ids }) => ids),
    [['a', 'b']],
  );
  readings[0]?.answer();
  t.same(await Promise.all(asked), ['a!', 'b!', 'a!']);
});

t.test('while its lanes are taken the next reading gathers, of at most so many', async (t) => {
  const { readings, read } = makeStore();
  const get = makeGather({ read, most: 2, lanes: 2 });
  const first = get('a');
  await turn();
  const second = get('b');
  await turn();
  const rest = [get('c'), get('d'), get('e')];
  await turn();
  t.same(
    readings.map(({ ids }) => ids),
    [['a'], ['b']],
  );
  readings[0]?.answer();
  t.equal(await first, 'a!');
  await turn();
  t.same(readings[2]?.ids, ['c', 'd']);
  for (const { answer } of readings.slice(1)) answer();
  t.equal(await second, 'b!');
  await turn();
  t.same(readings[3]?.ids, ['e']);
  readings[3]?.answer();
  t.same(await Promise.all(rest), ['c!', 'd!', 'e!']);
});

t.test('a reading that fails fails for those that asked, and is asked for again', async (t) => {
  const { readings, read } = makeStore();
  const get = makeGather({ read, most: 10, lanes: 1 });
  const failed = [get('a'), get('b')];
  await turn();
  readings[0]?.fail(new Error('away'));
  for (const one of failed) await t.rejects(one, { message: 'away' });
  const again = get('a');
  await turn();
  readings[1]?.answer();
  t.equal(await again, 'a!');
});
