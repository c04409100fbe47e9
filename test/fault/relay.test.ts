import { test } from 'tap';
import { survive } from '../help/fault.js';

test('kill -9 of the relay under load', async (t) => {
  await survive(t, { strike: async ({ service }) => service.kill('relay').back });
});
