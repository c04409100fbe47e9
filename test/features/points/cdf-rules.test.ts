import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  type Curve,
  crps,
  netOfCrps,
  quantileOf,
  quantilesOf,
  sharesBelow,
} from '../../../src/features/points/cdf-rules.js';
import { holds } from '../../help/property.js';
import { t } from '../../help/tap.js';

const uniform: Curve = [
  { x: 0, f: 0 },
  { x: 1, f: 1 },
];
/** A curve with all probability at one value. */
const sure = (x: number): Curve => [
  { x: 0, f: 0 },
  { x, f: 0 },
  { x, f: 1 },
  { x: 1, f: 1 },
];

/** F at one value, computed from its definition instead of step by step along the curve. */
const shareBelow = (curve: Curve, at: number): number => {
  const next = curve.findIndex(({ x }) => x > at);
  if (next === 0) return 0;
  const [before, after] = [curve.at(next === -1 ? -1 : next - 1)!, curve[next]];
  if (after === undefined) return before.f;
  return before.f + ((at - before.x) / (after.x - before.x)) * (after.f - before.f);
};

/** The CRPS by its definition: an integral over the midpoints of many short steps. */
const plainCrps = (curve: Curve, outcome: number, steps = 200_000): number => {
  const x = Math.min(1, Math.max(0, outcome));
  let sum = 0;
  for (let i = 0; i < steps; i += 1) {
    const z = (i + 0.5) / steps;
    sum += (shareBelow(curve, z) - (z >= x ? 1 : 0)) ** 2;
  }
  return sum / steps;
};

const curves: fc.Arbitrary<Curve> = fc
  .array(fc.tuple(fc.integer({ min: 0, max: 1_000 }), fc.integer({ min: 0, max: 1_000 })), {
    minLength: 1,
    maxLength: 12,
  })
  .map((points) => {
    const xs = points.map(([x]) => x).sort((a, b) => a - b);
    const fs = points.map(([, f]) => f).sort((a, b) => a - b);
    const inner = xs.map((x, i) => ({ x: x / 1_000, f: fs[i]! / 1_000 }));
    return [{ x: 0, f: 0 }, ...inner, { x: 1, f: 1 }];
  });
const outcomes = fc.integer({ min: -100, max: 1_100 }).map((n) => n / 1_000);

t.test('the score of known distributions', async (t) => {
  const same = (found: number, wanted: number, what: string) =>
    t.ok(Math.abs(found - wanted) < 1e-9, `${what}: ${found}, not ${wanted}`);
  // The score is ∫₀^x z² dz + ∫ₓ¹ (1 − z)² dz.
  same(crps(uniform, 0.3), (0.027 + 0.343) / 3, 'uniform');
  same(crps(uniform, 0.5), 1 / 12, 'uniform at its middle');
  // If all probability is at the value x, the score is |x − y|.
  same(crps(sure(0.25), 0.75), 0.5, 'sure and wrong');
  same(crps(sure(0.4), 0.4), 0, 'sure and right');
  same(crps(sure(1), 0), 1, 'sure of the other end');
  // With half at 0.2, half at 0.6 and the outcome 0.3, the score is 0.1·0.25 + 0.3·0.25.
  const two: Curve = [
    { x: 0, f: 0 },
    { x: 0.2, f: 0 },
    { x: 0.2, f: 0.5 },
    { x: 0.6, f: 0.5 },
    { x: 0.6, f: 1 },
    { x: 1, f: 1 },
  ];
  same(crps(two, 0.3), 0.1, 'two values');
  // Uniform from 0.2 to 0.4: F = 5(z − 0.2). If the outcome is 0.3, both halves are 0.1·0.25/3.
  const narrow: Curve = [
    { x: 0, f: 0 },
    { x: 0.2, f: 0 },
    { x: 0.4, f: 1 },
    { x: 1, f: 1 },
  ];
  same(crps(narrow, 0.3), (0.1 * 0.25 * 2) / 3, 'uniform on a part');
  // A tenth is below the range and a fifth above it, linear in between: F = 0.1 + 0.7z.
  const open: Curve = [
    { x: 0, f: 0.1 },
    { x: 1, f: 0.8 },
  ];
  same(crps(open, 0), (0.9 ** 3 - 0.2 ** 3) / (3 * 0.7), 'open ends, outcome at the lower');
  same(crps(open, -5), crps(open, 0), 'an outcome outside counts at the end');
  same(crps(open, 1), (0.8 ** 3 - 0.1 ** 3) / (3 * 0.7), 'and at the upper');
});

t.test('it is the integral as it is written', async (t) => {
  await holds(
    t,
    fc.property(curves, outcomes, (curve, outcome) => {
      const wanted = plainCrps(curve, outcome, 4_000);
      return Math.abs(crps(curve, outcome) - wanted) < 2e-3;
    }),
  );
});

t.test('the uniform forecast earns nothing, 100 is the best, -200 the worst', async (t) => {
  for (const x of [-1, 0, 0.1, 0.25, 0.5, 0.9, 1, 2]) {
    t.equal(netOfCrps(5, x, crps(uniform, x)), 0, `${x}`);
  }
  t.equal(netOfCrps(1, 0, crps(sure(0), 0)), 100);
  t.equal(netOfCrps(1, 0.5, crps(sure(0.5), 0.5)), 25);
  t.equal(netOfCrps(1, 0, crps(sure(1), 0)), -200);
  t.equal(netOfCrps(3, 0, crps(sure(1), 0)), -600);
});

t.test('no report has a higher expectation than the belief', async (t) => {
  const steps = 200;
  /** Integrates over the belief, including its jumps. Outcomes are in the middle of each step. */
  const expected = (belief: Curve, report: Curve): number => {
    let sum = 0;
    for (let i = 0; i < steps; i += 1) {
      const x = (i + 0.5) / steps;
      const mass =
        shareBelow(belief, (i + 1) / steps) - (i === 0 ? 0 : shareBelow(belief, i / steps));
      sum += mass * crps(report, x);
    }
    return sum;
  };
  await holds(
    t,
    fc.property(curves, curves, (belief, report) => {
      return expected(belief, belief) <= expected(belief, report) + 1e-2;
    }),
  );
});

t.test('quantiles and shares are each other’s inverse', async (t) => {
  await holds(
    t,
    fc.property(curves, fc.integer({ min: 1, max: 999 }), (curve, n) => {
      const at = quantileOf(curve, n / 1_000);
      return shareBelow(curve, at) >= n / 1_000 - 1e-9;
    }),
  );
  t.equal(quantileOf(uniform, 0.25), 0.25);
  t.equal(quantileOf(sure(0.4), 0.5), 0.4);
});

t.test('many values are looked up in one walk along the curve, and are the same', async (t) => {
  const places = Array.from({ length: 202 }, (_, n) => n / 201);
  const property = fc.property(curves, (curve) => {
    const shares = places.map((at) => shareBelow(curve, at));
    const values = places.map((f) => {
      const n = curve.findIndex((point) => point.f >= f);
      const [before, point] = [curve[n - 1] ?? curve.at(n)!, curve.at(n)!];
      const rise = point.f - before.f;
      const is_flat = n <= 0 || rise === 0;
      return is_flat ? point.x : before.x + ((f - before.f) / rise) * (point.x - before.x);
    });
    assert.deepEqual(sharesBelow(curve, places), shares);
    assert.deepEqual(quantilesOf(curve, places), values);
  });
  await holds(t, property);
});
