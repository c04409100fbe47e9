import { prepareOnBed } from './env/bed.js';
import { keepRate, keepWindow, makeRound, startServiceFanout } from './fanout.js';
import { type Bench, ratioOf } from './frame/types.js';
import { startStalled } from './load/stalled.js';
import { startSubscribers } from './load/subscriber.js';

/**
 * What clients that stop reading cost the others: events to many subscribers at the rate of
 * `fanout`, alone and beside clients that ask for a long replay and read nothing of it, again and
 * again. They do not run in the process that measures.
 */

const stalled_clients = 10;

export const slow: Bench = {
  name: 'slow',
  question: `How much later come events while ${stalled_clients} clients read nothing?`,
  ratios: { p99_stalled_over_alone: ratioOf('beside_stalled', 'alone', 'p99_ms') },
  prepare: prepareOnBed(async (bed) => {
    const group = startSubscribers();
    bed.onClose(group.close);
    const target = await startServiceFanout(bed);
    const run = makeRound(bed, group, target);
    const besideStalled = async () => {
      const stalled = startStalled(target.port, stalled_clients);
      try {
        await stalled.ready();
        return { ...(await run(keepRate)), closed_4101: stalled.closed };
      } finally {
        stalled.close();
      }
    };
    return {
      stages: [
        () => ({
          subjects: [
            // Something to replay has to be there.
            {
              name: 'alone',
              warmUp: async () => void (await run(keepWindow, 8)),
              round: () => run(keepRate),
            },
            { name: 'beside_stalled', round: besideStalled },
          ],
        }),
      ],
    };
  }),
};
