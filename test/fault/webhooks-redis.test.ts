import { test } from 'tap';
import { survive } from '../help/fault.js';
import { surviveWithoutRedis } from '../help/webhook-faults.js';

test('webhooks go on while Redis stands still', (t) => surviveWithoutRedis(t));

test('FLUSHALL under load, again and again', async (t) => {
  await survive(t, {
    strike: async ({ service, load }) => {
      for (let n = 0; n < 3; n += 1) {
        await service.redis.flushall();
        await load.reach(load.acknowledged.length + 50);
      }
    },
  });
});
