import { test } from 'tap';
import { survive } from '../help/fault.js';

test('kill -9 of Postgres under load', async (t) => {
  await survive(t, { strike: async ({ service }) => service.kill('Postgres').back });
});
