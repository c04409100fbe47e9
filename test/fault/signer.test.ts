import { test } from 'tap';
import { survive } from '../help/fault.js';

test('kill -9 of the signer at random points under load', async (t) => {
  await survive(t, {
    strike: async ({ service, load }) => {
      for (let kill = 1; kill <= 3; kill += 1) {
        const more = Math.floor(Math.random() * 100);
        t.comment(`kill ${kill} after ${more} more predictions`);
        await load.reach(load.acknowledged.length + more);
        await service.kill('signer').back;
      }
    },
  });
});
