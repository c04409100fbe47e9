import fc from 'fast-check';
import t from 'tap';
import {
  type Distribution,
  evenRestDistribution,
  net,
  percentDistribution,
  termsOf,
} from '../../../src/features/points/rules.js';
import { holds } from '../../help/property.js';

/**
 * Honesty pays best: for beliefs over 2 to 10 options no report has a higher expectation than the
 * belief itself. Paid are whole points, so that two expectations can differ by rounding, at most
 * half a point each; without the rounding the belief wins by 100 · weight · |p − q|² / U exactly.
 */

const percents = (n: number): fc.Arbitrary<number[]> =>
  fc.array(fc.integer({ min: 0, max: 100 }), { minLength: n - 1, maxLength: n - 1 }).map((cuts) => {
    const edges = [0, ...cuts.sort((a, b) => a - b), 100];
    return edges.slice(1).map((edge, i) => edge - edges[i]!);
  });

/** Every form in which a forecast can be stated, sure ones and even ones among them. */
const distributionsOf = (n: number): fc.Arbitrary<Distribution> =>
  fc.oneof(
    percents(n).map(percentDistribution),
    fc
      .record({ selected: fc.nat(n - 1), confidence: fc.integer({ min: 0, max: 100 }) })
      .map((stated) => evenRestDistribution({ options: n, ...stated })),
  );

const cases = fc.integer({ min: 2, max: 10 }).chain((n) =>
  fc.record({
    belief: distributionsOf(n),
    report: distributionsOf(n),
    weight: fc.integer({ min: 1, max: 5 }),
  }),
);

/** Expected points of a report times `belief.whole`, in whole numbers. */
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

t.test('a report that is searched for does not beat the belief either', async (t) => {
  await holds(
    t,
    fc.property(
      fc.integer({ min: 2, max: 10 }).chain(percents),
      fc.integer({ min: 1, max: 5 }),
      (units, weight) => {
        const belief = percentDistribution(units);
        const own = expected(weight, belief, belief);
        // Bluffs first, then whatever moving a few percent from one option to another improves.
        let best = own;
        const climb = (start: readonly number[]): void => {
          let at = [...start];
          let here = expected(weight, belief, percentDistribution(at));
          for (let improved = true; improved; ) {
            improved = false;
            for (let from = 0; from < at.length; from += 1) {
              for (let to = 0; to < at.length; to += 1) {
                if (from === to || at[from]! < 1) continue;
                const next = [...at];
                next[from]! -= 1;
                next[to]! += 1;
                const there = expected(weight, belief, percentDistribution(next));
                if (there <= here) continue;
                at = next;
                here = there;
                improved = true;
              }
            }
          }
          best = Math.max(best, here);
        };
        climb(units);
        const favourite = units.indexOf(Math.max(...units));
        climb(units.map((_, i) => (i === favourite ? 100 : 0)));
        return best - own <= belief.whole;
      },
    ),
    { numRuns: 60 },
  );
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
  const two_outcomes = fc.integer({ min: 3, max: 10 }).chain((n) =>
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
      // Either outcome is as likely: on average each of k correct options has 1/k.
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

t.test('a rule that pays the bluffer would be found out', async (t) => {
  // Linear in the probability of what happened: whoever believes 60 % should say 100 %.
  const linear = (belief: Distribution, report: Distribution): number =>
    belief.units.reduce((sum, unit, i) => sum + unit * 100 * (report.units[i]! / report.whole), 0);
  const details = fc.check(
    fc.property(
      cases,
      ({ belief, report }) => linear(belief, report) <= linear(belief, belief) + belief.whole,
    ),
  );
  t.ok(details.failed);
});
