import {
  errorsOf,
  fitOf,
  measureCorrelation,
} from '../../../src/features/consensus/correlation.js';
import { makeRandom } from '../../help/long-run.js';
import { t } from '../../help/tap.js';
import { makeResolved } from './generated.js';

/** How the correlation ρ is measured, and when each fit of it applies. */

t.test('on generated forecasts the estimator finds the ρ they were made with', async (t) => {
  for (const rho of [0, 0.2, 0.6, 0.9]) {
    const all = makeResolved(makeRandom(11), { questions: 3_000, owners: 6, rho });
    const found = measureCorrelation(all.map(errorsOf));
    t.equal(found.questions, 3_000);
    t.ok(Math.abs((found.measured ?? 9) - rho) < 0.03, `${found.measured} for ${rho}`);
    const shrunk = (3_000 * (found.measured ?? 0) + 200 * 0.6) / 3_200;
    t.equal(found.rho, Math.round(1e4 * shrunk) / 1e4);
  }
});

t.test('by hand: two questions of one outcome, one of another, and one of one owner', async (t) => {
  const of = (outcome: boolean, owners: readonly (readonly number[])[]) =>
    ({
      outcome,
      owners: owners.length,
      sum: owners.reduce((sum, own) => sum + mean(own), 0),
      squares: owners.reduce((sum, own) => sum + mean(own) ** 2, 0),
      forecasts: owners.flat().length,
      stated: owners.flat().reduce((sum, x) => sum + x, 0),
    }) as const;
  const mean = (own: readonly number[]) => own.reduce((sum, x) => sum + x, 0) / own.length;
  const found = measureCorrelation([
    // The outcome is YES. The mean of 3, 1, 2, 0, 1 and 5 is 2. The first owner has two agents.
    of(true, [[3, 1], [2], [0]]),
    of(true, [[1], [5]]),
    // The outcome is NO. The mean is −1, and the residuals are 1 and −1.
    of(false, [[0], [-2]]),
    of(false, [[-1]]),
  ]);
  // Products of pairs: 0, 0 and −2 give 0, 0, 0. −1 and 3 give −3. 1 and −1 give −1. The mean is
  // −4/3. Squares: 4/3, 5 and 1, with mean 22/9. ρ̂ = −6/11, and (3 · (−6/11) + 120) / 203 =
  // 0.583072.
  t.equal(found.questions, 3);
  t.equal(found.measured?.toFixed(12), (-6 / 11).toFixed(12));
  t.equal(found.rho, 0.5831);
  t.same(measureCorrelation([]), { questions: 0, measured: null, rho: 0.6 });
});

t.test('a fit is in force from its moment on, and a question keeps that of its end', async (t) => {
  const fits = [1, 2].map((number) => ({
    number,
    rho: number / 10,
    weights: null,
    from_ms: 1_000 * number,
  }));
  const numberAt = (ms: number, ended_ms: number | null = null) =>
    fitOf(fits, { ended_at: ended_ms === null ? null : new Date(ended_ms) }, ms).number;
  t.same(
    [999, 1_000, 1_999, 2_000, 9_000].map((ms) => numberAt(ms)),
    [0, 1, 1, 2, 2],
  );
  t.same(
    [999, 1_500, 2_000].map((ended) => numberAt(9_000, ended)),
    [0, 1, 2],
  );
  t.equal(numberAt(500, 2_000), 0, 'as it stood before its end');
  t.equal(fitOf([], { ended_at: null }, 0).rho, 0.6);
});
