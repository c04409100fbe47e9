import { readFileSync } from 'node:fs';
import { t } from 'tap';
import { calibrateWrites, sharedLayout } from '../../bench/capacity/calibrate.js';
import { simulateWrites, type WriteCost } from '../../bench/capacity/model.js';
import { fillTables, type Results } from '../../bench/capacity/plan.js';

t.test('the tables of the capacity page are those of the results', async (t) => {
  const page = readFileSync('docs/capacity.md', 'utf8');
  const results = JSON.parse(readFileSync('bench/capacity/results.json', 'utf8')) as Results;
  t.equal(fillTables(page, results), page);
  t.throws(() => fillTables('', results), /no markers/);
});

const wide: WriteCost = {
  ...{ api: 0.4, api_others: 0, api_transaction: 2, postgres: 0.2, postgres_others: 0 },
  ...{ transaction: 1.5, commit_wait: 2, relay: 0.1, redis: 0.05, signer: 0.05, client: 0.03 },
};
const hot: WriteCost = {
  ...wide,
  ...{ api_others: 0.3, api_transaction: 0, postgres_others: 0.05, transaction: 0 },
};

t.test('three processes follow from what one and two did', async (t) => {
  for (const [cost, is_hot] of [
    [wide, false],
    [hot, true],
  ] as const) {
    const load = { in_flight: 64, is_hot, seconds: 10 };
    // Measured on a machine whose times are these, of which a tenth is charged to no process.
    const measure = (count: number) => {
      const { per_second, batch } = simulateWrites(sharedLayout(2, count), cost, load);
      const each = {
        api: cost.api + cost.api_others * (count - 1) + cost.api_transaction / batch,
        postgres: cost.postgres + cost.postgres_others * (count - 1) + cost.transaction / batch,
        ...{ relay: cost.relay, redis: cost.redis, rest: cost.signer, client: cost.client },
      };
      const cores = Object.entries(each).map(([name, ms]) => [
        `${name}_cores`,
        (0.9 * ms * per_second) / 1_000,
      ]);
      return { per_second, ...Object.fromEntries(cores) };
    };
    const found = calibrateWrites([measure(1), measure(2)], { in_flight: 64, is_hot, cores: 2 });
    const three = (of: WriteCost) => simulateWrites(sharedLayout(2, 3), of, load).per_second;
    const ratio = three(found) / three(cost);
    t.ok(Math.abs(ratio - 1) < 0.08, `${is_hot ? 'hot' : 'wide'}: ${ratio}`);
  }
});
