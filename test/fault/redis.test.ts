import { test } from 'tap';
import { survive } from '../help/fault.js';

test('kill -9 of Redis under load; it comes back empty', async (t) => {
  await survive(t, { strike: async ({ service }) => service.kill('Redis', { empty: true }).back });
});

test('kill -9 of Redis under load; it comes back with what it kept', async (t) => {
  await survive(t, { strike: async ({ service }) => service.kill('Redis').back });
});
