import assert from 'node:assert/strict';
import fc from 'fast-check';
import { t } from 'tap';
import { openSql } from '../../../src/db/client.js';
import { computeConsensus } from '../../../src/features/consensus/index.js';
import { holds } from '../../help/property.js';
import { openStores } from '../../help/stores.js';

/** Shown figures equal those of SQL to the last digit, halves included. */

const question = { id: 'q', question_type: 'binary', options: [] } as const;

const given = new Map<string, readonly number[]>();

const cellOf = (probability: number, yes: boolean, count: number) => ({
  family: 'gpt',
  yes,
  option: null,
  value: probability,
  count,
  size: 1,
});

t.test('a half of the last digit goes up: 2.175 is 2.18', async (t) => {
  // 33 times 2 and 7 times 3 are 87 in 40.
  const cells = [cellOf(2, true, 33), cellOf(3, true, 7)];
  const { avg_confidence, mean_probability } = computeConsensus(question, {
    cells,
    given,
    offset: 40,
    updated_at: null,
  });
  t.same([avg_confidence, mean_probability], [2.18, 2.18]);
});

t.test('means, shares and quartiles of any predictions are those of SQL', async (t) => {
  const { database_url } = await openStores(t);
  const sql = openSql({ url: database_url, pool: 1, prepare: true, name: 'test' });
  t.teardown(() => sql.end({ timeout: 1 }));
  const stated = fc.record({ probability: fc.integer({ min: 0, max: 100 }), yes: fc.boolean() });
  const property = fc.asyncProperty(
    fc.array(stated, { minLength: 1, maxLength: 200 }),
    async (all) => {
      const [wanted] = await sql`
        select
          round(100.0 * count(*) filter (where yes = 1) / count(*), 2)::float8 as yes_percent,
          round(100.0 * count(*) filter (where yes = 0) / count(*), 2)::float8 as no_percent,
          round(avg(case yes when 1 then p else 100 - p end), 2)::float8 as avg_confidence,
          round(avg(p), 2)::float8 as mean_probability,
          percentile_cont(0.5) within group (order by p) as median_probability,
          percentile_cont(0.25) within group (order by p) as p25,
          percentile_cont(0.75) within group (order by p) as p75
        from unnest(
          ${all.map(({ probability }) => probability)}::int[],
          ${all.map(({ yes }) => (yes ? 1 : 0))}::int[]
        ) as stated (p, yes)`;
      const cells = all.map(({ probability, yes }) => cellOf(probability, yes, 1));
      const found = computeConsensus(question, { cells, given, offset: 1, updated_at: null });
      assert.deepEqual({ ...found, ...wanted }, found);
    },
  );
  await holds(t, property, { numRuns: 100 });
});
