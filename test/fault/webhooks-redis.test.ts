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

test('the stream, its group and its tail are lost under load', async (t) => {
  await survive(t, {
    strike: async ({ service, load }) => {
      const { redis, prefix } = service;
      const key = `${prefix}:{log}:events`;
      const lose = [
        () => redis.del(key),
        () => redis.xgroup('DESTROY', key, 'signers'),
        async () => {
          const tail = await redis.xrevrange(key, '+', '-', 'COUNT', 50);
          await redis.xdel(key, ...tail.map(([id]) => id));
        },
        () => redis.xtrim(key, 'MAXLEN', 0),
      ];
      for (const one of lose) {
        await one();
        await load.reach(load.acknowledged.length + 50);
      }
    },
  });
});
