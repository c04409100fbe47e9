import fc from 'fast-check';
import type { Test } from 'tap';
import {
  binaryDistribution,
  type Distribution,
  evenRestDistribution,
  net,
  netOverTime,
  percentDistribution,
  type Stood,
} from '../../../src/features/points/rules.js';
import {
  meanOverTime,
  type QuestionTimes,
  scoreOverTime,
  scoringTime,
  spansOf,
} from '../../../src/features/points/time-weighting.js';
import { holds } from '../../help/property.js';
import { t } from '../../help/tap.js';

const near = (t: Test, found: number | null, wanted: number, what = ''): void => {
  t.ok(found !== null && Math.abs(found - wanted) < 1e-9, `${what} ${found} is ${wanted}`);
};

const hour = 3_600_000;
const start = Date.UTC(2030, 0, 1);
const at = (hours: number): Date => new Date(start + hours * hour);

/** The question closes after 100 hours unless `times` says otherwise. */
const timeOf = (times: Partial<QuestionTimes> = {}) =>
  scoringTime({ closes_at: at(100), closed_at: null, known_at: null, closed_times: [], ...times });

/** Probabilities of YES in percent, by hour. */
const yes = (...stated: readonly (readonly [number, number])[]) =>
  stated.map(([hours, percent]) => ({
    distribution: binaryDistribution(Math.round(percent * 100)),
    selected: percent >= 50 ? 0 : 1,
    at_ms: at(hours).getTime(),
  }));

const score = (stated: ReturnType<typeof yes>, times: Partial<QuestionTimes> = {}) => {
  const spans = spansOf(stated, timeOf(times));
  return scoreOverTime(spans, { correct: [0], weight: 1 });
};

t.test('forecasts count for the time for which they stood', async (t) => {
  // 40 hours at 60.4 %, 35 at 80 %, 15 at 99.25 %: E − t₁ = 90.
  const found = score(yes([10, 60.4], [50, 80], [85, 99.25]));
  const mean = (a: number, b: number, c: number): number => (40 * a + 35 * b + 15 * c) / 90;
  near(t, found.forecast, mean(0.604, 0.8, 0.9925));
  near(t, found.brier, mean(0.156816, 0.04, 0.00005625));
  near(t, found.log_score, mean(Math.log(0.604), Math.log(0.8), Math.log(0.9925)));
  near(t, found.baseline, 100 + (100 * found.log_score) / Math.log(2));
  // In this case B has two terms: 100 · (0.5 − 2 · brier)/0.5 = 100 − 400 · 0.0852…
  t.equal(found.net, Math.round(100 - 400 * mean(0.156816, 0.04, 0.00005625)));
  t.equal(found.correct, true);
});

t.test(
  'time in which the question was closed is left out, and so is what follows the end',
  async (t) => {
    // Closed from hour 20 to 60, outcome known at 80: ten hours at 30 %, then 10 + 20 at 90 %.
    const stated = yes([0, 30], [10, 90], [85, 99]);
    const closed_times = [[at(20).getTime(), at(60).getTime()]] as const;
    const found = score(stated, { known_at: at(80), closed_times });
    near(t, found.brier, (10 * 0.49 + 30 * 0.01) / 40);
    t.equal(found.parts.length, 2, 'the last one came too late');
    // Closed manually at hour 15: ten hours at 30 %, then five at 90 %.
    near(t, score(stated, { closed_at: at(15) }).brier, (10 * 0.49 + 5 * 0.01) / 15);
    // The timer and imports may close a question late, but its closing time counts.
    near(
      t,
      score(stated, { closed_at: at(5_000) }).brier,
      (10 * 0.49 + 75 * 0.01 + 15 * 0.0001) / 100,
    );
  },
);

t.test('at or after the moment when the outcome was known nothing is scored', async (t) => {
  const count = (hours: number, times: Partial<QuestionTimes>) =>
    spansOf(yes([hours, 90]), timeOf(times)).length;
  t.equal(count(80, { known_at: at(80) }), 0);
  t.equal(count(79.999, { known_at: at(80) }), 1);
  t.equal(count(90, { closed_at: at(80) }), 0, 'after the close');
  t.equal(count(80, { closed_at: at(80) }), 1, 'in its very millisecond');
  t.equal(count(80, { closed_at: at(80), known_at: at(80) }), 0);
});

t.test('a life of no length takes the last forecast', async (t) => {
  near(t, score(yes([80, 30], [80, 60], [80, 70.5]), { closed_at: at(80) }).brier, 0.295 ** 2);
  // The question was closed during the forecast's whole life.
  const closed_times = [[at(20).getTime(), at(60).getTime()]] as const;
  const found = score(yes([20, 30], [20, 60]), { known_at: at(55), closed_times });
  near(t, found.brier, 0.16);
  t.equal(found.net, 100 - 64);
});

t.test('what has no value counts for no time', async (t) => {
  const spans = [3, 0, 5].map((weight_ms) => ({ weight_ms }));
  t.equal(meanOverTime(spans, [null, 7, null]), null);
  t.equal(meanOverTime(spans, [0.1, 7, null]), 0.1, 'to the last bit');
  near(t, meanOverTime(spans, [1, 7, 2]), 13 / 8);
});

const shares = (n: number, whole: number): fc.Arbitrary<number[]> =>
  fc
    .array(fc.integer({ min: 0, max: whole }), { minLength: n - 1, maxLength: n - 1 })
    .map((cuts) => {
      const edges = [0, ...cuts.sort((a, b) => a - b), whole];
      return edges.slice(1).map((edge, i) => edge - edges[i]!);
    });

const distributionsOf = (n: number): fc.Arbitrary<Distribution> =>
  fc.oneof(
    shares(n, 10_000).map(percentDistribution),
    fc
      .record({ selected: fc.nat(n - 1), confidence: fc.integer({ min: 0, max: 10_000 }) })
      .map((stated) => evenRestDistribution({ options: n, ...stated })),
  );

const lives = fc.integer({ min: 2, max: 6 }).chain((n) => {
  const stood = fc.record({
    distribution: distributionsOf(n),
    weight_ms: fc.integer({ min: 1, max: 90 * 86_400_000 }),
  });
  return fc.record({
    n: fc.constant(n),
    stood: fc.array(stood, { minLength: 1, maxLength: 5 }),
    correct: fc.subarray([...new Array(n).keys()], { minLength: 1, maxLength: n - 1 }),
    weight: fc.integer({ min: 1, max: 5 }),
  });
});

t.test(
  'the net over time is the written formula; with one forecast it is that of rule 2',
  async (t) => {
    await holds(
      t,
      fc.property(lives, ({ n, stood, correct, weight }) => {
        const o = (i: number): number => (correct.includes(i) ? 1 / correct.length : 0);
        const total = stood.reduce((sum, one) => sum + one.weight_ms, 0);
        let b = 0;
        for (const { distribution, weight_ms } of stood) {
          const { units, whole } = distribution;
          const own = units.reduce((sum, unit, i) => sum + (unit / whole - o(i)) ** 2, 0);
          b += (own * weight_ms) / total;
        }
        const u = 1 / correct.length - 1 / n;
        const plain = (100 * weight * (u - b)) / (1 - 1 / n);
        if (Math.abs(netOverTime({ stood, correct, weight }) - plain) > 0.5 + 1e-6) return false;
        const [first] = stood;
        const one = { ...first!, correct, weight };
        return netOverTime({ ...one, stood: [first!] }) === net({ ...one, rule: 2 });
      }),
      { numRuns: 2_000 },
    );
  },
);

/**
 * Honesty pays with revisions too. An agent's belief is a martingale: at each step a signal splits
 * it in two, and the current probability is the mean of both. In each state, the strategic agent
 * makes any forecast or keeps its last one. The honest agent states its belief. The length of each
 * step is drawn independently of the outcome. Expectations are computed over the whole tree,
 * without rounding.
 */
interface Node {
  readonly belief: number;
  readonly report: number | null;
  readonly next: readonly (Node & { readonly chance: number })[];
}

const reports = fc.option(fc.integer({ min: 0, max: 10_000 }), { freq: 3 });

const nodesOf = (belief: number, depth: number): fc.Arbitrary<Node> => {
  if (depth === 0) return reports.map((report) => ({ belief, report, next: [] }));
  return fc
    .tuple(reports, fc.integer({ min: 0, max: belief }), fc.integer({ min: belief, max: 10_000 }))
    .chain(([report, low, high]) => {
      const chance = high === low ? 1 : (high - belief) / (high - low);
      return fc.tuple(nodesOf(low, depth - 1), nodesOf(high, depth - 1)).map(([down, up]) => ({
        belief,
        report,
        next: [
          { ...down, chance },
          { ...up, chance: 1 - chance },
        ],
      }));
    });
};

const trees = fc.record({
  tree: fc.integer({ min: 0, max: 10_000 }).chain((belief) => nodesOf(belief, 3)),
  lasts: fc.array(fc.integer({ min: 1, max: 1_000 }), { minLength: 4, maxLength: 4 }),
});

/** Time-weighted B of a path and an outcome, in floating point. */
const meanB = (stood: readonly (readonly [number, number])[], happened: boolean): number => {
  const total = stood.reduce((sum, [, time]) => sum + time, 0);
  const o = happened ? 1 : 0;
  return stood.reduce((sum, [p, time]) => sum + (2 * (p / 10_000 - o) ** 2 * time) / total, 0);
};

type Report = (node: Node, standing: number | undefined) => number | undefined;

/** Expectation over all paths of beliefs and both outcomes. Time starts with the first forecast. */
const expectedB = (
  node: Node,
  lasts: readonly number[],
  report: Report,
  stood: readonly (readonly [number, number])[] = [],
): number => {
  const [time = 0, ...rest] = lasts;
  const stated = report(node, stood.at(-1)?.[0]);
  const now = stated === undefined ? stood : [...stood, [stated, time] as const];
  if (node.next.length > 0) {
    return node.next.reduce(
      (sum, next) =>
        next.chance === 0 ? sum : sum + next.chance * expectedB(next, rest, report, now),
      0,
    );
  }
  const p = node.belief / 10_000;
  return p * meanB(now, true) + (1 - p) * meanB(now, false);
};

t.test('no strategy of revisions beats stating what is believed whenever it changes', async (t) => {
  const honest: Report = ({ belief }) => belief;
  // Both agents start at the first node. Scores do not depend on when an agent starts.
  const strategic: Report = ({ belief, report }, standing) => report ?? standing ?? belief;
  await holds(
    t,
    fc.property(trees, ({ tree, lasts }) => {
      return expectedB(tree, lasts, honest) <= expectedB(tree, lasts, strategic) + 1e-12;
    }),
    { numRuns: 2_000 },
  );
});

t.test('no report over options beats the belief while each is weighted by its time', async (t) => {
  const cases = fc
    .integer({ min: 2, max: 8 })
    .chain((n) =>
      fc.record({
        n: fc.constant(n),
        belief: shares(n, 10_000),
        reports: fc.array(distributionsOf(n), { minLength: 1, maxLength: 4 }),
        lasts: fc.array(fc.integer({ min: 1, max: 1_000_000 }), { minLength: 4, maxLength: 4 }),
      }),
    );
  await holds(
    t,
    fc.property(cases, ({ belief, reports: stated, lasts }) => {
      const of = (stood: readonly Stood[]): number =>
        belief.reduce(
          (sum, chance, i) => sum + chance * netOverTime({ stood, correct: [i], weight: 5 }),
          0,
        );
      const own = percentDistribution(belief);
      const stood = stated.map((distribution, n) => ({ distribution, weight_ms: lasts[n]! }));
      // Points are rounded to integers, so rounding can change two expectations by up to a point.
      return of(stood) <= of([{ distribution: own, weight_ms: 1 }]) + 10_000;
    }),
    { numRuns: 2_000 },
  );
});

t.test(
  'a close that waits for the outcome would pay a lie, and known_at takes that away',
  async (t) => {
    // The question closes on the first day if it comes true that day, otherwise after 30 days.
    // Suppose the chance that it comes true that day is 30 %. Then it pays to state more that day,
    // because a miss is diluted by 29 days at 1 %.
    const stated = (first: number) => yes([0, first], [24, 1]);
    const expected = (first: number, known_at: Date | null): number => {
      const happened = spansOf(stated(first), timeOf({ closed_at: at(24), known_at }));
      const not = spansOf(stated(first), timeOf({ closes_at: at(720), known_at }));
      const brierOf = (spans: typeof happened, correct: number) =>
        scoreOverTime(spans, { correct: [correct], weight: 1 }).brier;
      return 0.3 * brierOf(happened, 0) + 0.7 * brierOf(not, 1);
    };
    t.ok(expected(90, null) < expected(30, null), 'it pays to exaggerate');
    // Now both outcomes are scored up to the same moment, the end of the first day.
    t.ok(expected(30, at(24)) < expected(90, at(24)), 'and no longer');
  },
);
