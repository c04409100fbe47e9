import fc from 'fast-check';
import t from 'tap';
import {
  binaryDistribution,
  type Distribution,
  evenRestDistribution,
  hasTier,
  net,
  type PointsRule,
  percentDistribution,
  tierOf,
  tierProgress,
  tiers,
} from '../../../src/features/points/rules.js';

const whole_percents = (n: number): fc.Arbitrary<number[]> =>
  fc.array(fc.integer({ min: 0, max: 100 }), { minLength: n - 1, maxLength: n - 1 }).map((cuts) => {
    const edges = [0, ...cuts.sort((a, b) => a - b), 100];
    return edges.slice(1).map((edge, i) => edge - edges[i]!);
  });

const distributions: fc.Arbitrary<Distribution> = fc.integer({ min: 2, max: 8 }).chain((n) =>
  fc.oneof(
    whole_percents(n).map(percentDistribution),
    fc
      .record({ selected: fc.nat(n - 1), confidence: fc.integer({ min: 0, max: 100 }) })
      .map((stated) => evenRestDistribution({ options: n, ...stated })),
  ),
);

const nonEmptySubsets = (n: number): number[][] =>
  Array.from({ length: 2 ** n - 1 }, (_, bits) =>
    Array.from({ length: n }, (_, i) => i).filter((i) => ((bits + 1) >> i) & 1),
  );

const paid = (weight: number, distribution: Distribution, correct: readonly number[]): number =>
  net({ weight, distribution, correct });

interface Asked {
  readonly weight: number;
  readonly distribution: Distribution;
  readonly correct: readonly number[];
  readonly rule?: PointsRule;
}

/** The formula as written, in floating point, to compare the integer form with. */
const plainNet = ({ weight, distribution, correct, rule }: Asked): number => {
  const { units, whole } = distribution;
  const n = units.length;
  const o = units.map((_, i) => (correct.includes(i) ? 1 / correct.length : 0));
  const b = units.reduce((sum, u, i) => sum + (u / whole - o[i]!) ** 2, 0);
  const u = o.reduce((sum, oi) => sum + (1 / n - oi) ** 2, 0);
  if (rule === 1) return correct.length === n ? 0 : 100 * weight * (1 - b / u);
  return (100 * weight * (u - b)) / (1 - 1 / n);
};

t.test('a yes/no forecast earns what the contract lists', (t) => {
  const vectors: [number, number, number][] = [
    [50, 0, 0],
    [80, 84, -156],
    [90, 96, -224],
    [100, 100, -300],
  ];
  for (const [percent, right, wrong] of vectors) {
    t.equal(paid(1, binaryDistribution(percent), [0]), right, `${percent} % and YES`);
    t.equal(paid(1, binaryDistribution(percent), [1]), wrong, `${percent} % and NO`);
    t.equal(paid(1, binaryDistribution(100 - percent), [1]), right, 'NO mirrors YES');
    t.equal(paid(5, binaryDistribution(percent), [1]), 5 * wrong, 'weight multiplies');
  }
  t.end();
});

t.test('a half point is rounded away from zero', (t) => {
  const halves = [];
  for (let n = 3; n <= 10; n += 1) {
    for (let confidence = 0; confidence <= 100; confidence += 1) {
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
  t.end();
});

t.test('net is the written formula, whatever the options and the outcome', (t) => {
  fc.assert(
    fc.property(distributions, fc.integer({ min: 1, max: 5 }), (p, weight) => {
      for (const correct of nonEmptySubsets(p.units.length)) {
        for (const rule of [1, 2] as const) {
          const asked = { weight, distribution: p, correct, rule };
          const got = net(asked);
          if (Math.abs(got - plainNet(asked)) > 0.5 + 1e-6) return false;
          if (!Number.isInteger(got) || Object.is(got, -0)) return false;
        }
      }
      return true;
    }),
  );
  t.end();
});

t.test('no loss is above 300 · weight, whatever the options and the outcome', (t) => {
  fc.assert(
    fc.property(distributions, fc.integer({ min: 1, max: 5 }), (p, weight) =>
      nonEmptySubsets(p.units.length).every((set) => paid(weight, p, set) >= -300 * weight),
    ),
  );
  t.end();
});

t.test('the even forecast earns nothing, however many options are correct', (t) => {
  for (let n = 2; n <= 10; n += 1) {
    const even: Distribution = { units: new Array<number>(n).fill(1), whole: n };
    for (let k = 1; k < n; k += 1) t.equal(paid(5, even, [...new Array(k).keys()]), 0);
  }
  t.end();
});

t.test('the rules differ with several correct options only', (t) => {
  const p = percentDistribution([70, 10, 10, 10]);
  const of = (rule: PointsRule, correct: readonly number[]) =>
    net({ weight: 2, distribution: p, correct, rule });
  t.equal(of(1, [0]), of(2, [0]));
  t.equal(of(1, [3]), of(2, [3]));
  t.same([of(1, [0, 2]), of(2, [0, 2])], [24, 8]);
  t.equal(of(1, [0, 1, 2, 3]), 0);
  t.end();
});

t.test('no report beats the belief in expectation by more than rounding', (t) => {
  const beliefs = fc
    .integer({ min: 2, max: 5 })
    .chain((n) => fc.tuple(whole_percents(n), whole_percents(n)));
  const expected = (belief: number[], report: number[]): number =>
    belief.reduce((sum, b, i) => sum + (b / 100) * paid(1, percentDistribution(report), [i]), 0);
  fc.assert(
    fc.property(beliefs, ([belief, report]) => {
      return expected(belief, report) <= expected(belief, belief) + 1;
    }),
    { numRuns: 2_000 },
  );
  // For yes/no the exact cost of a report d away from the belief is 400·d², which outweighs the
  // rounding from six points on.
  const beaten: string[] = [];
  for (let belief = 0; belief <= 100; belief += 1) {
    const own = expected([belief, 100 - belief], [belief, 100 - belief]);
    for (let report = 0; report <= 100; report += 1) {
      const other = expected([belief, 100 - belief], [report, 100 - report]);
      if (other > own + 1) beaten.push(`${belief} by ${report}`);
      if (Math.abs(report - belief) >= 6 && other >= own) beaten.push(`${belief} ties ${report}`);
    }
  }
  t.same(beaten, []);
  t.end();
});

t.test('an outcome that names no option of the question is a bug, not a score', (t) => {
  t.throws(() => paid(1, binaryDistribution(60), []), RangeError);
  t.throws(() => paid(1, binaryDistribution(60), [2]), RangeError);
  t.end();
});

t.test('a tier begins exactly at its threshold', (t) => {
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
  t.end();
});
