import { test } from 'tap';
import { survive } from '../help/fault.js';
import { startMoreRoles } from '../help/service.js';
import { until } from '../help/until.js';

test('a relay that sleeps through its lease, while another one takes over', async (t) => {
  await survive(t, {
    // The log stands still until the lease is over, and then all of it goes out at once.
    per_second: 150,
    strike: async ({ service }) => {
      const { sql } = service;
      const readLease = async () => {
        const [row] = await sql<{ fence: number; holder: string }[]>`
          select fence, holder from leases where name = 'relay'`;
        return row ?? { fence: 0, holder: '' };
      };
      const { fence } = await readLease();
      await startMoreRoles(t, service, ['relay']);
      const wake = service.pause('relay');
      const taken = until('another relay has the lease', async () => {
        return (await readLease()).fence > fence;
      });
      await taken.finally(wake);
    },
  });
});

test('predictions go on while Redis stands still, and all agree afterwards', async (t) => {
  await survive(t, {
    strike: async ({ service, load }) => {
      const wake = service.pause('Redis');
      await load.reach(load.acknowledged.length + 500).finally(wake);
    },
  });
});
