import assert from 'node:assert/strict';
import fc from 'fast-check';
import { t } from 'tap';
import {
  computeConsensus,
  countAll,
  givenBy,
  readCells,
} from '../../../src/features/consensus/index.js';
import {
  makeChart,
  makeSeries,
  type RunShape,
  type Stated,
} from '../../../src/features/history/index.js';
import { holds } from '../../help/property.js';

/** The running consensus is at each moment the consensus of the predictions until then. */

const binary: RunShape = { question_type: 'binary', options: [] };
const multi: RunShape = { question_type: 'multi', options: ['Rises', 'Stays', 'Falls'] };

const parts = {
  // Few times, so that several predictions share one.
  at: fc.integer({ min: 1_700_000_000_000, max: 1_700_000_000_040 }),
  family: fc.constantFrom('claude', 'gemini', 'gpt'),
  owner: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
  side: fc.integer({ min: 0, max: 1 }),
  value: fc.integer({ min: 0, max: 100 }),
};

const statedOn = ({ options }: RunShape) =>
  fc
    .record({
      ...parts,
      // Of three options, which sum to 100; null: one option alone is named.
      percents: fc.option(fc.tuple(fc.nat(50), fc.nat(50)), { nil: null }),
    })
    .map(({ percents, ...one }): Stated => {
      const whole = percents === null ? null : [...percents, 100 - percents[0] - percents[1]];
      const option = options.length === 0 ? null : one.side;
      return { ...one, given: givenBy({ option, value: one.value }, whole, options.length) ?? [] };
    });

const stated = statedOn(binary);

const all_time = { family: null, since: 0, until: Number.POSITIVE_INFINITY };

/** By the formulas of the live consensus, from nothing. */
const consensusOf = (shape: RunShape, all: readonly Stated[]) => {
  const is_binary = shape.question_type === 'binary';
  const said = all.map(({ family, side, value, owner, given }) => ({
    given: is_binary ? null : Array.from(given),
    family,
    yes: is_binary ? side === 1 : null,
    option: is_binary ? null : side,
    value,
    owner,
  }));
  const at = { offset: all.length, updated_at: null };
  const tally = readCells(countAll(said).cells, at);
  const found = computeConsensus({ id: 'q', ...shape }, tally);
  return {
    count: found.total_predictions,
    forecast: found.forecast,
    leading_option: found.leading_option,
    yes_percent: found.yes_percent,
    mean_probability: found.mean_probability,
    median_probability: found.median_probability,
    p25: found.p25,
    p75: found.p75,
    extremized: found.extremized,
    option_probabilities: (found.options ?? []).map(({ mean_probability }) => mean_probability),
    option_percents: (found.options ?? []).map(({ percent }) => percent),
  };
};

const bruteForce = (shape: RunShape, all: readonly Stated[]) =>
  [...new Set(all.map(({ at }) => at))]
    .sort((a, b) => a - b)
    .map((at) => ({
      at,
      ...consensusOf(
        shape,
        all.filter((one) => one.at <= at),
      ),
    }));

const seriesOf = (shape: RunShape, all: readonly Stated[]) => {
  const series = makeSeries(shape);
  const in_order = [...all].sort((a, b) => a.at - b.at);
  for (const [n, one] of in_order.entries()) series.add(one, n + 1);
  return series.read();
};

for (const shape of [binary, multi]) {
  t.test(`${shape.question_type}: each moment is exact`, async (t) => {
    const property = fc.property(fc.array(statedOn(shape), { maxLength: 60 }), (all) => {
      const chart = makeChart(seriesOf(shape, all), { points: 1_000, ...all_time });
      assert.deepEqual(chart.points, bruteForce(shape, all));
      assert.equal(chart.total, all.length);
      assert.equal(chart.offset, all.length);
      assert.equal(chart.moments, chart.points.length);
    });
    await holds(t, property);
  });
}

t.test('a chart of one family is that of its predictions alone, without a pool', async (t) => {
  const property = fc.property(fc.array(stated, { maxLength: 60 }), (all) => {
    const chart = makeChart(seriesOf(binary, all), { points: 1_000, ...all_time, family: 'gpt' });
    const wanted = bruteForce(
      binary,
      all.filter(({ family }) => family === 'gpt'),
    );
    assert.deepEqual(
      chart.points,
      wanted.map((point) => ({ ...point, forecast: null, extremized: null })),
    );
  });
  await holds(t, property);
});

t.test('a stretch of time has its moments, as they were with all before them', async (t) => {
  const times = fc.integer({ min: 1_700_000_000_000, max: 1_700_000_000_040 });
  const property = fc.property(fc.array(stated, { maxLength: 60 }), times, times, (all, a, b) => {
    const [since, until] = [Math.min(a, b), Math.max(a, b)];
    const chart = makeChart(seriesOf(binary, all), { points: 1_000, family: null, since, until });
    const wanted = bruteForce(binary, all).filter(({ at }) => at >= since && at <= until);
    assert.deepEqual(chart.points, wanted);
  });
  await holds(t, property);
});
