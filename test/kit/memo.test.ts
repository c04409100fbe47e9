import { memo } from '../../src/kit/memo.js';
import { t } from '../help/tap.js';

t.test('each key is made once, and after a failure again', async (t) => {
  const calls: string[] = [];
  const read = memo(
    (name: string) => name,
    async (name: string) => {
      calls.push(name);
      if (calls.length === 1) throw new Error('the first one fails');
      return `${name}${calls.length}`;
    },
  );
  await t.rejects(read('a'), /the first one/);
  t.same(await Promise.all([read('a'), read('a'), read('b')]), ['a2', 'a2', 'b3']);
  t.equal(await read('a'), 'a2');
  t.same(calls, ['a', 'a', 'b']);
});
