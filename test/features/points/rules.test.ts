import fc from 'fast-check';
import {
  binaryDistribution,
  type Distribution,
  evenRestDistribution,
  hasTier,
  net,
  type PointsRule,
  percentDistribution,
  type Scored,
  termsOf,
  tierOf,
  tierProgress,
  tiers,
} from '../../../src/features/points/rules.js';
import { holds } from '../../help/property.js';
import { t } from '../../help/tap.js';

/** Distributions of basis points over n options. */
const shares = (n: number): fc.Arbitrary<number[]> =>
  fc
    .array(fc.integer({ min: 0, max: 10_000 }), { minLength: n - 1, maxLength: n - 1 })
    .map((cuts) => {
      const edges = [0, ...cuts.sort((a, b) => a - b), 10_000];
      return edges.slice(1).map((edge, i) => edge - edges[i]!);
    });

/** Forecasts in every form in which they can be stated, including 100 % and equal shares. */
const distributionsOf = (n: number): fc.Arbitrary<Distribution> =>
  fc.oneof(
    shares(n).map(percentDistribution),
    fc
      .record({ selected: fc.nat(n - 1), confidence: fc.integer({ min: 0, max: 10_000 }) })
      .map((stated) => evenRestDistribution({ options: n, ...stated })),
  );

const distributions = fc.integer({ min: 2, max: 8 }).chain(distributionsOf);

const nonEmptySubsets = (n: number): number[][] =>
  Array.from({ length: 2 ** n - 1 }, (_, bits) =>
    Array.from({ length: n }, (_, i) => i).filter((i) => ((bits + 1) >> i) & 1),
  );

const paid = (weight: number, distribution: Distribution, correct: readonly number[]): number =>
  net({ weight, distribution, correct });

/** The formula in floating point, to compare with the integer form. */
const plainNet = ({ weight, distribution, correct, rule }: Scored): number => {
  const { units, whole } = distribution;
  const n = units.length;
  const o = units.map((_, i) => (correct.includes(i) ? 1 / correct.length : 0));
  const b = units.reduce((sum, u, i) => sum + (u / whole - o[i]!) ** 2, 0);
  const u = o.reduce((sum, oi) => sum + (1 / n - oi) ** 2, 0);
  if (rule === 1) return correct.length === n ? 0 : 100 * weight * (1 - b / u);
  return (100 * weight * (u - b)) / (1 - 1 / n);
};

t.test('a yes/no forecast earns what the contract lists', async (t) => {
  const vectors: [number, number, number][] = [
    [5_000, 0, 0],
    [8_000, 84, -156],
    [9_000, 96, -224],
    [10_000, 100, -300],
    // 100 − 400 · 0.004² = 99.9936, 100 − 400 · 0.996² = −296.8064, and so on.
    [9_960, 100, -297],
    [8_250, 88, -172],
    [5_013, 1, -1],
  ];
  for (const [bp, right, wrong] of vectors) {
    t.equal(paid(1, binaryDistribution(bp), [0]), right, `${bp / 100} % and YES`);
    t.equal(paid(1, binaryDistribution(bp), [1]), wrong, `${bp / 100} % and NO`);
    t.equal(paid(1, binaryDistribution(10_000 - bp), [1]), right, 'NO mirrors YES');
    const five = 5 * (100 - 400 * (bp / 10_000) ** 2);
    t.equal(paid(5, binaryDistribution(bp), [1]), Math.round(five) + 0, 'weight multiplies');
  }
});

t.test('a half point is rounded away from zero', async (t) => {
  const halves = [];
  for (let n = 3; n <= 10; n += 1) {
    for (let confidence = 0; confidence <= 10_000; confidence += 50) {
      const p = evenRestDistribution({ options: n, selected: 0, confidence });
      for (const correct of [[0], [1], [0, 1], [1, 2]]) {
        const plain = plainNet({ weight: 1, distribution: p, correct });
        if (Math.abs(Math.abs(plain % 1) - 0.5) > 1e-9) continue;
        halves.push(plain);
        t.equal(paid(1, p, correct), Math.sign(plain) * (Math.floor(Math.abs(plain)) + 1));
      }
    }
  }
  t.ok(halves.some((x) => x > 0) && halves.some((x) => x < 0), 'both signs occur');
});

t.test('net is the written formula, whatever the options and the outcome', async (t) => {
  await holds(
    t,
    fc.property(distributions, fc.integer({ min: 1, max: 5 }), (p, weight) => {
      for (const correct of nonEmptySubsets(p.units.length)) {
        for (const rule of [1, 2] as const) {
          const payment = { weight, distribution: p, correct, rule };
          const got = net(payment);
          if (Math.abs(got - plainNet(payment)) > 0.5 + 1e-6) return false;
          if (!Number.isInteger(got) || Object.is(got, -0)) return false;
        }
      }
      return true;
    }),
  );
});

t.test('no loss is above 300 · weight, whatever the options and the outcome', async (t) => {
  await holds(
    t,
    fc.property(distributions, fc.integer({ min: 1, max: 5 }), (p, weight) =>
      nonEmptySubsets(p.units.length).every((set) => paid(weight, p, set) >= -300 * weight),
    ),
  );
});

t.test('the even forecast earns nothing, however many options are correct', async (t) => {
  for (let n = 2; n <= 10; n += 1) {
    const even: Distribution = { units: new Array<number>(n).fill(1), whole: n };
    for (let k = 1; k < n; k += 1) t.equal(paid(5, even, [...new Array(k).keys()]), 0);
  }
});

t.test('the rules differ with several correct options only', async (t) => {
  const p = percentDistribution([7_000, 1_000, 1_000, 1_000]);
  const of = (rule: PointsRule, correct: readonly number[]) =>
    net({ weight: 2, distribution: p, correct, rule });
  t.equal(of(1, [0]), of(2, [0]));
  t.equal(of(1, [3]), of(2, [3]));
  t.same([of(1, [0, 2]), of(2, [0, 2])], [24, 8]);
  t.equal(of(1, [0, 1, 2, 3]), 0);
});

t.test('an outcome that names no option of the question is a bug, not a score', async (t) => {
  t.throws(() => paid(1, binaryDistribution(6_000), []), RangeError);
  t.throws(() => paid(1, binaryDistribution(6_000), [2]), RangeError);
});

t.test('a tier begins exactly at its threshold', async (t) => {
  const names = ['Observer', 'Predictor', 'Analyst', 'Oracle', 'Architect'] as const;
  const thresholds = [0, 1_000, 4_000, 20_000, 50_000];
  t.same(
    tiers.map(({ tier, from_points }) => [tier, from_points]),
    names.map((name, i) => [name, thresholds[i]]),
  );
  for (const [i, at] of thresholds.entries()) {
    t.equal(tierOf(at), names[i]);
    t.equal(hasTier(at, names[i]!), true);
    if (i === 0) continue;
    t.equal(tierOf(at - 1), names[i - 1]);
    t.equal(hasTier(at - 1, names[i]!), false);
  }
  t.same(tierProgress(5_000), { tier: 'Analyst', next_tier: 'Oracle', points_to_next: 15_000 });
  t.equal(tierOf(-5), 'Observer');
  t.same(tierProgress(999), { tier: 'Observer', next_tier: 'Predictor', points_to_next: 1 });
  t.same(tierProgress(80_000), { tier: 'Architect', next_tier: null, points_to_next: null });
});

/**
 * Honesty pays best: for beliefs over 2 to 10 options, no report has a higher expectation than the
 * belief itself. Points are rounded to integers, so rounding can change two expectations by up to
 * half a point each. Without rounding, the belief wins by exactly 100 · weight · |p − q|² / U.
 */
const cases = fc
  .integer({ min: 2, max: 10 })
  .chain((n) =>
    fc.record({
      belief: distributionsOf(n),
      report: distributionsOf(n),
      weight: fc.integer({ min: 1, max: 5 }),
    }),
  );

/** Expected points of a report times `belief.whole`, as an integer. */
const expected = (weight: number, belief: Distribution, report: Distribution): number =>
  belief.units.reduce(
    (sum, unit, i) => sum + unit * net({ weight, distribution: report, correct: [i] }),
    0,
  );

t.test('no report beats the belief by more than the rounding to a point', async (t) => {
  const sizes = new Set<number>();
  await holds(
    t,
    fc.property(cases, ({ belief, report, weight }) => {
      sizes.add(belief.units.length);
      const gained = expected(weight, belief, report) - expected(weight, belief, belief);
      return gained <= belief.whole;
    }),
    { numRuns: 5_000 },
  );
  t.equal(sizes.size, 9, 'for 2 to 10 options');
});

t.test('for yes/no a report six points away costs more than the rounding', async (t) => {
  const beaten: string[] = [];
  const at = (percent: number) => binaryDistribution(100 * percent);
  for (let belief = 0; belief <= 100; belief += 1) {
    const own = expected(1, at(belief), at(belief));
    for (let report = 0; report <= 100; report += 1) {
      const other = expected(1, at(belief), at(report));
      if (other > own + 10_000) beaten.push(`${belief} by ${report}`);
      // A report that differs from the belief by d costs exactly 400·d².
      if (Math.abs(report - belief) >= 6 && other >= own) beaten.push(`${belief} ties ${report}`);
    }
  }
  t.same(beaten, []);
});

t.test('without rounding the belief wins by the squared distance, always', async (t) => {
  const unrounded = (weight: number, belief: Distribution, report: Distribution): number =>
    belief.units.reduce((sum, unit, i) => {
      const { b, u } = termsOf(report, [i]);
      return sum + (unit / belief.whole) * 100 * weight * (1 - b / u);
    }, 0);
  await holds(
    t,
    fc.property(cases, ({ belief, report, weight }) => {
      const n = belief.units.length;
      const apart = belief.units.reduce((sum, unit, i) => {
        return sum + (unit / belief.whole - report.units[i]! / report.whole) ** 2;
      }, 0);
      const lost = unrounded(weight, belief, belief) - unrounded(weight, belief, report);
      return Math.abs(lost - (100 * weight * apart) / (1 - 1 / n)) < 1e-9;
    }),
    { numRuns: 2_000 },
  );
});

t.test('with several correct options the expected outcome is the best report', async (t) => {
  const sets = (n: number): fc.Arbitrary<number[]> =>
    fc.subarray([...new Array(n).keys()], { minLength: 1, maxLength: n - 1 });
  const two_outcomes = fc
    .integer({ min: 3, max: 10 })
    .chain((n) =>
      fc.record({
        one: sets(n),
        other: sets(n),
        report: distributionsOf(n),
        weight: fc.integer({ min: 1, max: 5 }),
      }),
    );
  await holds(
    t,
    fc.property(two_outcomes, ({ one, other, report, weight }) => {
      // Both outcomes are equally likely. If k options are correct, each gets a share of 1/k.
      const share = (set: readonly number[], i: number): number =>
        set.includes(i) ? (one.length * other.length) / set.length : 0;
      const belief: Distribution = {
        units: report.units.map((_, i) => share(one, i) + share(other, i)),
        whole: 2 * one.length * other.length,
      };
      const expect = (distribution: Distribution): number =>
        net({ weight, distribution, correct: one }) + net({ weight, distribution, correct: other });
      return expect(report) - expect(belief) <= 2;
    }),
    { numRuns: 3_000 },
  );
});
