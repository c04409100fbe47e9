import { readFileSync } from 'node:fs';
import { calibrateWrites, in_flight, sharedLayout } from '../../bench/capacity/calibrate.js';
import { simulateWrites, type WriteCost } from '../../bench/capacity/model.js';
import { fillTables, type Results } from '../../bench/capacity/plan.js';
import { t } from '../help/tap.js';

t.test('the tables of the capacity page are those of the results', async (t) => {
  const page = readFileSync('docs/capacity.md', 'utf8');
  const results = JSON.parse(readFileSync('bench/capacity/results.json', 'utf8')) as Results;
  t.equal(fillTables(page, results), page);
  t.throws(() => fillTables('', results), /no markers/);
});

const dear: WriteCost = {
  front: 0.15,
  owner: 0.3,
  handed: 0.03,
  event: 0.05,
  owner_transaction: 2,
  postgres: 0.2,
  transaction: 1.5,
  commit_wait: 2,
  relay: 0.1,
  redis: 0.05,
  signer: 0.05,
  client: 0.03,
};
const cheap: WriteCost = { ...dear, owner: 0.05, handed: 0.06, owner_transaction: 5 };

t.test('three processes follow from what one and two did', async (t) => {
  for (const cost of [dear, cheap]) {
    // Measured on a machine whose times are these, of which a tenth is charged to no process.
    const measure = (count: number, size: keyof typeof in_flight = 'few') => {
      const load = { in_flight: in_flight[size], seconds: 10 };
      const { per_second, batch } = simulateWrites(sharedLayout(2, count), cost, load);
      const handed = (cost.handed * (count - 1)) / count;
      const owner = cost.owner + handed + cost.owner_transaction / batch;
      const each = {
        api: cost.front + handed + owner + cost.event * count,
        owner: cost.front / count + owner + cost.event,
        postgres: cost.postgres + cost.transaction / batch,
        relay: cost.relay,
        redis: cost.redis,
        rest: cost.signer,
        client: cost.client,
      };
      const cores = Object.entries(each).map(([name, ms]) => [
        `${name}_cores`,
        (0.9 * ms * per_second) / 1_000,
      ]);
      return { per_second, ...Object.fromEntries(cores) };
    };
    const measured = { few: measure(1), many: measure(1, 'many'), two: measure(2) };
    const found = calibrateWrites(measured, { cores: 2, event: 0.9 * cost.event });
    const three = (of: WriteCost) =>
      simulateWrites(sharedLayout(2, 3), of, { in_flight: 64 }).per_second;
    const ratio = three(found) / three(cost);
    t.ok(Math.abs(ratio - 1) < 0.08, `${ratio}`);
  }
});
