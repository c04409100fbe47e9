import fc from 'fast-check';
import type { Test } from 'tap';
import {
  binaryDistribution,
  type Distribution,
  evenRestDistribution,
  percentDistribution,
} from '../../../src/features/points/rules.js';
import {
  baselineScore,
  brier,
  dayStreakOf,
  scoreForecast,
  streakOf,
} from '../../../src/features/points/score-rules.js';
import { holds } from '../../help/property.js';
import { t } from '../../help/tap.js';

const near = (t: Test, found: number | null, wanted: number, digits: number): void => {
  t.ok(found !== null && Math.abs(found - wanted) < 0.5 * 10 ** -digits, `${found} is ${wanted}`);
};

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

/** Scores a yes/no forecast with this probability of YES, in percent. */
const scoreYes = (chance: number, happened: boolean) =>
  scoreForecast({
    distribution: binaryDistribution(Math.round(chance * 100)),
    correct: [happened ? 0 : 1],
    selected: chance >= 50 ? 0 : 1,
  });

t.test('the Brier score is that of scikit-learn', async (t) => {
  const check = (happened: readonly number[], chances: readonly number[], wanted: number): void => {
    const plain = chances.map((chance, i) => brier(chance, happened[i] === 1));
    near(t, mean(plain), wanted, 12);
    const scored = chances.map((chance, i) => scoreYes(chance * 100, happened[i] === 1));
    near(t, mean(scored.map((score) => score.brier)), wanted, 12);
  };
  check([0, 1, 1, 0], [0.1, 0.9, 0.8, 0.3], 0.0375);
  check([1, 0, 0, 1, 0, 0], [0.9, 0.1, 0.2, 0.65, 0.8, 0.7], 0.21875);
});

t.test('baseline scores are the published ones', async (t) => {
  near(t, baselineScore(0.9), 84.79969066, 8);
  near(t, baselineScore(0.1), -232.19280949, 8);
  near(t, scoreYes(90, true).baseline, 84.79969066, 8);
  near(t, scoreYes(90, false).baseline, -232.19280949, 8);
});

t.test('tenths and hundredths of a percent are scored as such, by hand', async (t) => {
  // 0.4 %: (0.996)² and 0.004². ln 0.004 = −5.521460917862246, 100 · (1 + log₂ 0.004).
  near(t, scoreYes(0.4, true).brier, 0.992016, 12);
  near(t, scoreYes(0.4, false).brier, 0.000016, 12);
  near(t, scoreYes(0.4, true).log_score, -5.521460917862246, 12);
  near(t, scoreYes(0.4, true).baseline, -696.5784284662087, 9);
  // 97.25 %: 0.0275² and ln 0.9725 = −0.027885203489536.
  near(t, scoreYes(97.25, true).brier, 0.00075625, 12);
  near(t, scoreYes(97.25, true).log_score, -0.027885203489536, 12);
});

t.test('certainty is scored as a basis point less than it', async (t) => {
  near(t, scoreYes(100, true).log_score, Math.log(0.9999), 12);
  near(t, scoreYes(100, false).log_score, -9.210340371976182, 12);
  near(t, scoreYes(99.98, true).log_score, Math.log(0.9998), 12);
  near(t, scoreYes(0.02, true).log_score, Math.log(0.0002), 12);
  t.equal(scoreYes(100, false).brier, 1);
  t.equal(scoreYes(100, true).brier, 0);
});

t.test('an even forecast is neither correct nor better than the baseline', async (t) => {
  const even = scoreForecast({
    distribution: evenRestDistribution({ options: 4, selected: 1, confidence: 2_500 }),
    correct: [2],
    selected: 1,
  });
  t.match(even, { forecast: 0.25, correct: false, hit: false });
  near(t, even.baseline, 0, 9);
  const taken = scoreForecast({
    distribution: evenRestDistribution({ options: 4, selected: 1, confidence: 2_500 }),
    correct: [1, 2],
    selected: 1,
  });
  t.match(taken, { forecast: 0.25, correct: false, hit: true });
  t.equal(scoreYes(50, true).hit, true, 'YES was taken');
  t.equal(scoreYes(50, true).correct, false);
  t.equal(scoreYes(50.01, true).correct, true);
  t.throws(() =>
    scoreForecast({ distribution: binaryDistribution(5_000), correct: [], selected: 0 }),
  );
  t.throws(() =>
    scoreForecast({ distribution: binaryDistribution(5_000), correct: [2], selected: 0 }),
  );
});

t.test('a forecast may be correct although its option was not the one', async (t) => {
  const score = scoreForecast({
    distribution: percentDistribution([5_000, 4_000, 1_000]),
    correct: [1],
    selected: 0,
  });
  t.match(score, { forecast: 0.4, correct: true, hit: false });
  near(t, score.brier, (0.25 + 0.36 + 0.01) / 2, 12);
});

const shares = (n: number): fc.Arbitrary<number[]> =>
  fc
    .array(fc.integer({ min: 0, max: 10_000 }), { minLength: n - 1, maxLength: n - 1 })
    .map((cuts) => {
      const edges = [0, ...cuts.sort((a, b) => a - b), 10_000];
      return edges.slice(1).map((edge, i) => edge - (edges[i] ?? 0));
    });

const belief_and_report = fc
  .integer({ min: 2, max: 10 })
  .chain((n) => fc.tuple(shares(n), shares(n)));

/** Expected score of a report if the belief is the true distribution of the outcome. */
const expected = (
  belief: readonly number[],
  report: Distribution,
  score: 'brier' | 'baseline',
): number =>
  belief.reduce(
    (sum, chance, i) =>
      sum +
      (chance / 10_000) * scoreForecast({ distribution: report, correct: [i], selected: 0 })[score],
    0,
  );

t.test('no report has a better expected score than the belief itself', async (t) => {
  await holds(
    t,
    fc.property(belief_and_report, ([belief, report]) => {
      const own = percentDistribution(belief);
      const other = percentDistribution(report);
      const brier_gain = expected(belief, own, 'brier') - expected(belief, other, 'brier');
      if (brier_gain > 1e-9) return false;
      // Clipping changes a report by at most one basis point, so no report can gain much.
      return expected(belief, other, 'baseline') - expected(belief, own, 'baseline') < 0.02;
    }),
    { numRuns: 1_000 },
  );
});

t.test('a streak counts correct ones in a row and is broken by a miss', async (t) => {
  t.same(streakOf([]), { current: 0, best: 0 });
  t.same(streakOf([true, true, false, true]), { current: 1, best: 2 });
  t.same(streakOf([false, true, true, true]), { current: 3, best: 3 });
  t.same(streakOf([true, false]), { current: 0, best: 1 });
});

t.test('a row of days goes on through today, whether or not it has a prediction yet', async (t) => {
  t.same(dayStreakOf([], 100), { current: 0, best: 0 });
  t.same(dayStreakOf([95, 96, 97, 99, 100], 100), { current: 2, best: 3 });
  t.same(dayStreakOf([95, 96, 97, 98, 99], 100), { current: 5, best: 5 });
  t.same(dayStreakOf([95, 96, 97, 98], 100), { current: 0, best: 4 });
});
