import fc from 'fast-check';
import t from 'tap';
import {
  binaryDistribution,
  type Distribution,
  evenRestDistribution,
  hasTier,
  net,
  percentDistribution,
  stake,
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

/** The formula as written, in floating point, to compare the integer form with. */
const plainNet = (weight: number, { units, whole }: Distribution, correct: number[]): number => {
  const n = units.length;
  const o = units.map((_, i) => (correct.includes(i) ? 1 / correct.length : 0));
  const b = units.reduce((sum, u, i) => sum + (u / whole - o[i]!) ** 2, 0);
  const u = o.reduce((sum, oi) => sum + (1 / n - oi) ** 2, 0);
  return correct.length === n ? 0 : 100 * weight * (1 - b / u);
};

t.test('a yes/no forecast earns and stakes what the contract lists', (t) => {
  const vectors: [number, number, number][] = [
    [50, 0, 0],
    [80, 84, -156],
    [90, 96, -224],
    [100, 100, -300],
  ];
  for (const [percent, right, wrong] of vectors) {
    t.equal(net(1, binaryDistribution(percent), [0]), right, `${percent} % and YES`);
    t.equal(net(1, binaryDistribution(percent), [1]), wrong, `${percent} % and NO`);
    t.equal(net(1, binaryDistribution(100 - percent), [1]), right, 'NO mirrors YES');
    t.equal(stake(1, binaryDistribution(percent)), 0 - wrong);
    t.equal(net(5, binaryDistribution(percent), [1]), 5 * wrong, 'weight multiplies');
  }
  t.end();
});

t.test('a half point is rounded away from zero', (t) => {
  const halves = [];
  for (let n = 3; n <= 10; n += 1) {
    for (let confidence = 0; confidence <= 100; confidence += 1) {
      const p = evenRestDistribution({ options: n, selected: 0, confidence });
      for (const correct of [[0], [1], [0, 1], [1, 2]]) {
        const plain = plainNet(1, p, correct);
        if (Math.abs(Math.abs(plain % 1) - 0.5) > 1e-9) continue;
        halves.push(plain);
        t.equal(net(1, p, correct), Math.sign(plain) * (Math.floor(Math.abs(plain)) + 1));
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
        const got = net(weight, p, correct);
        if (Math.abs(got - plainNet(weight, p, correct)) > 0.5 + 1e-6) return false;
        if (!Number.isInteger(got) || Object.is(got, -0)) return false;
      }
      return true;
    }),
  );
  t.end();
});

t.test('the stake is exactly the worst net over every set of correct options', (t) => {
  fc.assert(
    fc.property(distributions, fc.integer({ min: 1, max: 5 }), (p, weight) => {
      const losses = nonEmptySubsets(p.units.length).map((set) => -net(weight, p, set));
      return stake(weight, p) === Math.max(0, ...losses);
    }),
  );
  t.end();
});

t.test('the even forecast earns and stakes nothing, and so does a question where all win', (t) => {
  for (let n = 2; n <= 10; n += 1) {
    const even: Distribution = { units: new Array<number>(n).fill(1), whole: n };
    t.equal(stake(5, even), 0);
    t.equal(net(5, even, [n - 1]), 0);
    const sure = evenRestDistribution({ options: n, selected: 0, confidence: 100 });
    t.equal(net(5, sure, [...new Array(n).keys()]), 0);
  }
  t.end();
});

t.test('no report beats the belief in expectation by more than rounding', (t) => {
  const beliefs = fc
    .integer({ min: 2, max: 5 })
    .chain((n) => fc.tuple(whole_percents(n), whole_percents(n)));
  const expected = (belief: number[], report: number[]): number =>
    belief.reduce((sum, b, i) => sum + (b / 100) * net(1, percentDistribution(report), [i]), 0);
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
  t.throws(() => net(1, binaryDistribution(60), []), RangeError);
  t.throws(() => net(1, binaryDistribution(60), [2]), RangeError);
  t.equal(net(1, binaryDistribution(80), [0, 0]), 84, 'an index given twice counts once');
  t.end();
});

t.test('a tier begins exactly at its threshold', (t) => {
  const names = ['Observer', 'Predictor', 'Analyst', 'Oracle', 'Architect'] as const;
  const thresholds = [0, 1_000, 5_000, 20_000, 50_000];
  t.same(
    tiers.map(({ tier, from_equity }) => [tier, from_equity]),
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
  t.same(tierProgress(999), { tier: 'Observer', next_tier: 'Predictor', points_to_next: 1 });
  t.same(tierProgress(80_000), { tier: 'Architect', next_tier: null, points_to_next: null });
  t.end();
});
