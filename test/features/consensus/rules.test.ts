import assert from 'node:assert/strict';
import fc from 'fast-check';
import { openSql } from '../../../src/db/client.js';
import { first_fit } from '../../../src/features/consensus/correlation.js';
import { countAll, readCells } from '../../../src/features/consensus/index.js';
import { computeConsensus } from '../../../src/features/consensus/rules.js';
import { no_range } from '../../help/number.js';
import { holds } from '../../help/property.js';
import { openStores } from '../../help/stores.js';
import { t } from '../../help/tap.js';

/** Displayed figures equal SQL's results to the last digit, even when a half is rounded. */

const question = { ...no_range, id: 'q', question_type: 'binary', options: [] } as const;

const consensusOf = (all: readonly { readonly value: number; readonly yes: boolean }[]) => {
  const said = all.map((one, n) => ({
    ...one,
    family: 'gpt',
    option: null,
    owner: String(n),
    given: null,
  }));
  const tally = readCells(countAll(said).cells, { offset: all.length, updated_at: null });
  return computeConsensus(question, tally, first_fit);
};

t.test('a half of the last digit goes up: 0.0175 is 0.02, and 2.175 is 2.18', async (t) => {
  const times = (count: number, value: number) => Array(count).fill({ value, yes: true });
  // The mean of 1, 1, 1 and 4 basis points is 7 / 4. The mean of 33 × 200 and 7 × 300 is 217.5.
  t.equal(consensusOf([...times(3, 1), ...times(1, 4)]).mean_probability, 0.02);
  const { avg_confidence, mean_probability } = consensusOf([...times(33, 200), ...times(7, 300)]);
  t.same([avg_confidence, mean_probability], [2.18, 2.18]);
  // 12.345 is halfway between 12.34 and 12.35. A quarter of the way from 12.34 to 12.38 is 12.35.
  t.equal(consensusOf([...times(1, 1_234), ...times(1, 1_235)]).median_probability, 12.35);
  t.equal(consensusOf([...times(1, 1_234), ...times(1, 1_238)]).p25, 12.35);
});

t.test('means, shares and quartiles of any predictions are those of SQL', async (t) => {
  const { database_url } = await openStores(t);
  const sql = openSql({ url: database_url, pool: 1, prepare: true, name: 'test' });
  t.teardown(() => sql.end({ timeout: 1 }));
  const stated = fc.record({ value: fc.integer({ min: 0, max: 10_000 }), yes: fc.boolean() });
  const property = fc.asyncProperty(
    fc.array(stated, { minLength: 1, maxLength: 200 }),
    async (all) => {
      const quantile = (q: number) =>
        sql`round((percentile_cont(${q}) within group (order by p))::numeric / 100, 2)::float8`;
      const [wanted] = await sql`
        select
          round(100.0 * count(*) filter (where yes = 1) / count(*), 2)::float8 as yes_percent,
          round(100.0 * count(*) filter (where yes = 0) / count(*), 2)::float8 as no_percent,
          round(avg(case yes when 1 then p else 10000 - p end) / 100, 2)::float8 as avg_confidence,
          round(avg(p) / 100, 2)::float8 as mean_probability,
          ${quantile(0.5)} as median_probability,
          ${quantile(0.25)} as p25,
          ${quantile(0.75)} as p75
        from unnest(
          ${all.map(({ value }) => value)}::int[],
          ${all.map(({ yes }) => (yes ? 1 : 0))}::int[]
        ) as stated (p, yes)`;
      const found = consensusOf(all);
      assert.deepEqual({ ...found, ...wanted }, found);
    },
  );
  await holds(t, property, { numRuns: 100 });
});
