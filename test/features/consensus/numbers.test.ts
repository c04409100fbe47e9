import type { Test } from 'tap';
import { givenByCdf } from '../../../src/features/consensus/numbers.js';
import { checkTallies } from '../../../src/tools/verify/consensus-store.js';
import { checkRecord } from '../../../src/tools/verify/record-store.js';
import { startApp } from '../../help/app.js';
import { openParts } from '../../help/parts.js';
import { makeOpenQuestion } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { briefPath, makeForecasters, place } from '../briefs/world.js';

/** The consensus of numeric forecasts, as averaged quantiles and as averaged probabilities. */

t.test(
  'a uniform forecast gives the place in the range, at the grid and at each percent',
  async (t) => {
    const given = givenByCdf([10, 0, 20, 1]);
    t.equal(given.length, 300);
    for (let n = 0; n <= 200; n += 1) t.equal(given[n], n * 50_000_000);
    for (let n = 1; n <= 99; n += 1) t.equal(given[200 + n], n * 100_000_000);
  },
);

const app = await startApp(t, { roles: ['api', 'relay', 'timer'] });
const range = { min: -100, max: 300, unit: 'GW' };
const id = await makeOpenQuestion(app, { question_type: 'numeric', range });
const forecasters = await makeForecasters(app, 3);

/** A uniform distribution between two values. */
const between = (low: number, high: number) => ({
  quantiles: [
    { value: low, p: 0 },
    { value: high, p: 1 },
  ],
});
const ends = [
  [-60, 40],
  [0, 200],
  [100, 300],
] as const;

const get = async (path: string) => (await app.call('GET', path)).body;
const read = (count: number) =>
  until('all are counted', async () => {
    const body = await get(`/api/questions/${id}/consensus`);
    return body.total_predictions === count && body;
  });

const near = (t: Test, found: number, wanted: number, tolerance: number, what: string) =>
  t.ok(Math.abs(found - wanted) <= tolerance, `${what}: ${found}, not ${wanted}`);

/** The mean of the values at a percentile, and of the probabilities at a value, by definition. */
const averageAt = (all: readonly (readonly [number, number])[], percent: number): number =>
  all.reduce((sum, [low, high]) => sum + low + ((high - low) * percent) / 100, 0) / all.length;
const poolAt = (all: readonly (readonly [number, number])[], value: number): number =>
  all.reduce(
    (sum, [low, high]) => sum + Math.min(1, Math.max(0, (value - low) / (high - low))),
    0,
  ) / all.length;

// biome-ignore lint/suspicious/noExplicitAny: an answer.
const check = (t: Test, body: Record<string, any>, all: readonly (readonly [number, number])[]) => {
  const { quantile_average: average, linear_pool: pool } = body;
  for (let percent = 1; percent <= 99; percent += 1) {
    near(t, average.quantiles[percent - 1], averageAt(all, percent), 4e-4, `${percent} %`);
  }
  for (let n = 0; n <= 200; n += 1) {
    near(t, pool.cdf[n], 100 * poolAt(all, -100 + 2 * n), 1e-4, `at ${-100 + 2 * n}`);
  }
  t.same(body.candidates, [
    { name: 'quantile_average', weight: 0.5, forecast: average.p50 },
    { name: 'linear_pool', weight: 0.5, forecast: pool.p50 },
  ]);
  // The average of uniform distributions is uniform between the means of their ends.
  const [low, high] = [averageAt(all, 0), averageAt(all, 100)];
  for (const [name, percent] of Object.entries({ p5: 5, p25: 25, p50: 50, p75: 75, p95: 95 })) {
    const value = body.headline[name];
    const of_average = Math.min(1, Math.max(0, (value - low) / (high - low)));
    near(t, 50 * of_average + 50 * poolAt(all, value), percent, 0.6, `${name} of the headline`);
  }
  t.equal(body.forecast, body.headline.p50, 'the headline');
  for (const [name, percent] of Object.entries({ p5: 5, p25: 25, p75: 75, p95: 95 })) {
    t.equal(average[name], average.quantiles[percent - 1], name);
    near(t, 100 * poolAt(all, pool[name]), percent, 0.6, `${name} of the pool`);
  }
};

t.test('by plain means, after each forecast and a revision; by the record as well', async (t) => {
  for (const [n, [low, high]] of ends.entries()) {
    await place(app, { key: forecasters[n]!.key, id, ...between(low, high) });
  }
  const body = await read(3);
  check(t, body, ends);
  t.match(body, {
    question_type: 'numeric',
    leading_option: null,
    yes_count: 0,
    no_count: 0,
    yes_percent: 0,
    no_percent: 0,
    mean_probability: null,
    pooled: null,
    avg_confidence: 50,
    histogram: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    contested: false,
  });
  t.notOk('options' in body);

  const own = (await get(`/api/questions/${id}/predictions`)).predictions[0];
  await app.sql`
    update predictions set created_at = created_at - interval '61 s' where id = ${own.id}`;
  const reason = 'The regulator published its decision this morning, earlier than expected.';
  const { key } = forecasters[2]!;
  const revised = await app.call('PATCH', `/api/predictions/${own.id}`, {
    key,
    body: { ...between(-20, 20), reason },
  });
  t.equal(revised.status, 200, revised.body.error);
  const after = await until('the revision counts', async () => {
    const now = await get(`/api/questions/${id}/consensus`);
    return now.offset > body.offset && now;
  });
  check(t, after, [ends[0], ends[1], [-20, 20]]);
  const { redis } = (await openParts(t, { stores: app.stores })).deps;
  const prefix = app.stores.redis_prefix;
  const parts = { sql: app.sql, redis, prefix };
  await until('the tally is the record', async () => (await checkTallies(parts)).length === 0);
  t.same(await checkRecord(app.sql, 0), []);
});

t.test('the course as figures and as a picture, the widget and the brief', async (t) => {
  const chart = await get(`/api/questions/${id}/chart`);
  const last = chart.points.at(-1);
  const now = await read(3);
  t.equal(last.forecast, now.forecast);
  const fan = now.headline;
  t.same(last.quantiles, fan);
  const svg = String((await app.call('GET', `/api/questions/${id}/chart.svg`)).body);
  t.match(svg, /median [\d.]+ GW/);
  for (const view of ['card', 'chart', 'compact']) {
    const { body: text } = await app.call('GET', `/embed/${id}?view=${view}`);
    t.match(text, / GW<\/span>/, view);
    t.notMatch(text, /NaN|undefined/, view);
  }
  const brief = await get(briefPath(id));
  t.match(
    brief.headline[0],
    /^3 predictions put the median at [\d.]+ GW, with half the chance between/,
  );
  t.match(brief.state, { forecast: null, quantiles: fan });
  t.match(await get(`/api/questions/${id}/drift`), { drift_events: [] });
});
