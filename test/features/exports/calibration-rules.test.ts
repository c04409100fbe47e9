import fc from 'fast-check';
import { calibrate, type StatedCell } from '../../../src/features/exports/calibration-rules.js';
import { holds } from '../../help/property.js';
import { t } from '../../help/tap.js';

/** Calibration of resolved questions: the sums, checked against their definitions. */

const near = (a: number, b: number, within = 5e-9): boolean => Math.abs(a - b) <= within;

const cell = fc
  .record({ value: fc.integer({ min: 0, max: 10_000 }), n: fc.integer({ min: 1, max: 50 }) })
  .chain(({ value, n }) =>
    fc.integer({ min: 0, max: n }).map((hits): StatedCell => ({ value, n, hits })),
  );
const cells = fc.uniqueArray(cell, { selector: ({ value }) => value, minLength: 1 });

/** Each forecast separately: f is its probability, and o its outcome. */
const expand = (given: readonly StatedCell[]) =>
  given.flatMap(({ value, n, hits }) =>
    Array.from({ length: n }, (_, i) => ({ f: value / 10_000, o: i < hits ? 1 : 0 })),
  );

const binOf = (value: number): number => Math.min(Math.floor(value / 1_000), 9);

const meanOf = (values: readonly number[]): number =>
  values.reduce((sum, one) => sum + one, 0) / values.length;

t.test('Brier and log score are the means over single forecasts', async (t) => {
  await holds(
    t,
    fc.property(cells, (given) => {
      const single = expand(given);
      const made = calibrate(given, 10);
      if (made === null) return false;
      const clip = (p: number): number => Math.min(Math.max(p, 0.0001), 0.9999);
      const log = meanOf(single.map(({ f, o }) => Math.log(clip(o === 1 ? f : 1 - f))));
      return (
        near(made.brier, meanOf(single.map(({ f, o }) => (f - o) ** 2))) &&
        near(made.log_score, log) &&
        made.n === single.length
      );
    }),
  );
});

t.test('where a bin holds one forecast only, the parts add up to the Brier score', async (t) => {
  await holds(
    t,
    fc.property(cells, (given) => {
      const apart = given.filter(
        ({ value }, n) => given.findIndex((one) => binOf(one.value) === binOf(value)) === n,
      );
      const made = calibrate(apart, 10);
      if (made === null) return true;
      const { brier, reliability, resolution, uncertainty, bins } = made;
      return (
        near(brier, reliability - resolution + uncertainty) &&
        bins.reduce((sum, { n }) => sum + n, 0) === made.n
      );
    }),
  );
});

t.test('each part is what its definition says', async (t) => {
  await holds(
    t,
    fc.property(cells, fc.integer({ min: 1, max: 20 }), (given, count) => {
      const made = calibrate(given, count);
      if (made === null) return false;
      const single = expand(given);
      const base = meanOf(single.map(({ o }) => o));
      let [reliability, resolution, ece] = [0, 0, 0];
      for (const [k, { n, mean_forecast, frequency }] of made.bins.entries()) {
        const mine = single.filter(
          ({ f }) =>
            Math.min(Math.floor((Math.round(f * 10_000) * count) / 10_000), count - 1) === k,
        );
        if (mine.length !== n) return false;
        if (n === 0) continue;
        const f_k = meanOf(mine.map(({ f }) => f));
        const o_k = meanOf(mine.map(({ o }) => o));
        if (!near(f_k, mean_forecast ?? -1) || !near(o_k, frequency ?? -1)) return false;
        reliability += (n * (f_k - o_k) ** 2) / single.length;
        resolution += (n * (o_k - base) ** 2) / single.length;
        ece += (n * Math.abs(f_k - o_k)) / single.length;
      }
      return (
        near(made.reliability, reliability) &&
        near(made.resolution, resolution) &&
        near(made.uncertainty, base * (1 - base)) &&
        near(made.ece, ece)
      );
    }),
  );
});

t.test('nothing has no calibration', async (t) => {
  t.equal(calibrate([], 10), null);
});
