import assert from 'node:assert/strict';
import fc from 'fast-check';
import { t } from 'tap';
import {
  computeConsensus,
  countAll,
  givenBy,
  makeCourse,
  type RunShape,
  readCells,
  type TimedForecast,
  thinCourse,
} from '../../../src/features/consensus/index.js';
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
    .map(({ percents, ...one }): TimedForecast => {
      const whole = percents === null ? null : [...percents, 100 - percents[0] - percents[1]];
      const option = options.length === 0 ? null : one.side;
      return { ...one, given: givenBy({ option, value: one.value }, whole, options.length) ?? [] };
    });

/** By the formulas of the live consensus, from nothing. */
const consensusOf = (shape: RunShape, all: readonly TimedForecast[]) => {
  const is_binary = shape.question_type === 'binary';
  const said = all.map(({ family, side, value, owner, given }) => ({
    given: is_binary ? null : given,
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

const bruteForce = (shape: RunShape, all: readonly TimedForecast[]) =>
  [...new Set(all.map(({ at }) => at))]
    .sort((a, b) => a - b)
    .map((at) => ({
      at,
      ...consensusOf(
        shape,
        all.filter((one) => one.at <= at),
      ),
    }));

for (const shape of [binary, multi]) {
  t.test(`${shape.question_type}: each moment is exact`, async (t) => {
    const stated = fc.array(statedOn(shape), { maxLength: 60 });
    const property = fc.asyncProperty(stated, async (all) => {
      const in_order = [...all].sort((a, b) => a.at - b.at);
      const course = await makeCourse(shape, in_order, all.length);
      assert.deepEqual(course.points, bruteForce(shape, all));
      assert.equal(course.total, all.length);
      assert.equal(course.offset, all.length);
      assert.equal(course.moments, course.points.length);
      const { points } = thinCourse(course, 7);
      assert.ok(points.length <= 7 && points.every((one) => course.points.includes(one)));
    });
    await holds(t, property);
  });
}

t.test('of more moments than a chart shows, first, last and extremes are kept', async (t) => {
  const all = Array.from({ length: 3_000 }, (_, n): TimedForecast => {
    const value = n === 1_500 ? 100 : n === 1_501 ? 0 : 50;
    const one = { family: 'gpt', owner: String(n), side: Number(value > 50), value, given: [] };
    return { at: 1_700_000_000_000 + n, ...one };
  });
  const course = await makeCourse(binary, all, 3_000);
  t.equal(course.moments, 3_000);
  t.ok(course.points.length <= 1_000);
  t.match([course.points[0], course.points.at(-1)], [{ count: 1 }, { count: 3_000 }]);
  t.ok(course.points.some(({ count }) => count === 1_501));
});
