import { test } from 'tap';
import { survive } from '../help/fault.js';

test('kill -9 of the whole service under load, and a new start', async (t) => {
  const { load } = await survive(t, {
    strike: async ({ service }) => service.killAll().back,
  });
  t.ok(
    load.acknowledged.some(({ tries }) => tries > 1),
    'clients noticed',
  );
});
