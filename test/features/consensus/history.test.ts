import assert from 'node:assert/strict';
import fc from 'fast-check';
import { fitAt } from '../../../src/features/consensus/correlation.js';
import {
  countAll,
  makeCourse,
  readCells,
  thinCourse,
} from '../../../src/features/consensus/index.js';
import { equal_weights } from '../../../src/features/consensus/mixture.js';
import { givenByCdf, showFan } from '../../../src/features/consensus/numbers.js';
import { computeConsensus, givenBy } from '../../../src/features/consensus/rules.js';
import type { RunShape, TimedForecast } from '../../../src/features/consensus/run.js';
import { makeCounter, sumUpInTurns } from '../../../src/features/consensus/tally.js';
import { makePause } from '../../../src/kit/loop.js';
import { no_range } from '../../help/number.js';
import { holds } from '../../help/property.js';
import { t } from '../../help/tap.js';
import { countTurns } from '../../help/turns.js';

/** At every moment, the running consensus equals the consensus of the predictions so far. */

const binary: RunShape = { ...no_range, question_type: 'binary', options: [] };
const multi: RunShape = {
  ...no_range,
  question_type: 'multi',
  options: ['Rises', 'Stays', 'Falls'],
};

const start = 1_700_000_000_000;
/** One fit before the start, one without effect, some among the forecasts, one after the end. */
const skewed = { chance: [0.1, 0.2, 0.3, 0.4], number: [0.3, 0.7] };
const fits = [
  { number: 1, rho: 0.5, weights: null, from_ms: start - 1 },
  { number: 2, rho: 0.2, weights: equal_weights, from_ms: start + 10 },
  { number: 3, rho: 0.2, weights: equal_weights, from_ms: start + 15 },
  { number: 4, rho: 0.7, weights: skewed, from_ms: start + 50 },
  { number: 5, rho: 0.9, weights: null, from_ms: start + 61 },
];
const until_ms = start + 60;

const parts = {
  // With only a few distinct times, several predictions are made at the same time.
  at: fc.integer({ min: start, max: start + 40 }),
  side: fc.integer({ min: 0, max: 1 }),
  value: fc.integer({ min: 0, max: 10_000 }),
  // With only a few agents, many forecasts are revisions. An agent keeps its family and owner.
  agent: fc.constantFrom(...'abcdefghijklmnopqrstuvwx'),
};

const statedOn = ({ options }: RunShape) =>
  fc
    .record({
      ...parts,
      // Shares of three options, which sum to 10,000. Null if only one option is named.
      shares: fc.option(fc.tuple(fc.nat(5_000), fc.nat(5_000)), { nil: null }),
    })
    .map(({ shares, ...one }): TimedForecast => {
      const whole = shares === null ? null : [...shares, 10_000 - shares[0] - shares[1]];
      const option = options.length === 0 ? null : one.side;
      const n = one.agent.charCodeAt(0);
      const family = ['claude', 'gemini', 'gpt'][n % 3] as string;
      const who = { family, owner: String((n * 7) % 5) };
      return {
        ...one,
        ...who,
        given: givenBy({ option, value: one.value }, whole, options.length) ?? [],
      };
    });

/** Computes the consensus from scratch, by the formulas of the live consensus. */
const consensusOf = (shape: RunShape, all: readonly TimedForecast[], at_ms: number) => {
  const is_binary = shape.question_type === 'binary';
  const latest = new Map(all.map((one) => [one.agent, one])).values();
  const said = [...latest].map(({ family, side, value, owner, given }) => ({
    given: is_binary ? null : given,
    family,
    yes: is_binary ? side === 1 : null,
    option: is_binary ? null : side,
    value,
    owner,
  }));
  const at = { offset: all.length, updated_at: null };
  const tally = readCells(countAll(said).cells, at);
  const found = computeConsensus({ id: 'q', ...shape }, tally, fitAt(fits, at_ms));
  return {
    count: found.total_predictions,
    forecast: found.forecast,
    leading_option: found.leading_option,
    yes_percent: found.yes_percent,
    mean_probability: found.mean_probability,
    median_probability: found.median_probability,
    p25: found.p25,
    p75: found.p75,
    pooled: found.pooled,
    option_forecasts: (found.options ?? []).map(({ forecast }) => forecast),
    option_probabilities: (found.options ?? []).map(({ mean_probability }) => mean_probability),
    option_percents: (found.options ?? []).map(({ percent }) => percent),
  };
};

/** The consensus at each forecast, and whenever a later fit takes effect and changes it. */
const bruteForce = (shape: RunShape, all: readonly TimedForecast[]) => {
  const times = new Set(all.map(({ at }) => at));
  const first = Math.min(...times);
  const fitted = fits.map(({ from_ms }) => from_ms).filter((ms) => ms > first && ms <= until_ms);
  const points = [...new Set([...times, ...fitted])]
    .sort((a, b) => a - b)
    .map((at) => {
      const until = all.filter((one) => one.at <= at);
      return { at, ...consensusOf(shape, until, at) };
    });
  const figuresIn = ({ pooled, forecast, option_forecasts }: (typeof points)[number]) =>
    JSON.stringify([pooled, forecast, option_forecasts]);
  return points.filter((point, n) => {
    const before = points[n - 1];
    return times.has(point.at) || before === undefined || figuresIn(point) !== figuresIn(before);
  });
};

for (const shape of [binary, multi]) {
  t.test(`${shape.question_type}: each moment is exact`, async (t) => {
    const stated = fc.array(statedOn(shape), { maxLength: 60 });
    const property = fc.asyncProperty(stated, async (all) => {
      const in_order = [...all].sort((a, b) => a.at - b.at);
      const course = await makeCourse(shape, { all: in_order, offset: all.length, fits, until_ms });
      assert.deepEqual(course.points, bruteForce(shape, in_order));
      assert.equal(course.total, new Set(all.map(({ agent }) => agent)).size);
      assert.equal(course.offset, all.length);
      assert.equal(course.moments, course.points.length);
      assert.equal(course.last_forecast_ms, in_order.at(-1)?.at ?? null);
      const { points } = await thinCourse(course, 7);
      assert.ok(points.length <= 7 && points.every((one) => course.points.includes(one)));
    });
    await holds(t, property);
  });
}

const number: RunShape = { question_type: 'numeric', options: [], range_min: 0, range_max: 100 };
const halves = fc.array(fc.nat(100), { minLength: 1, maxLength: 5 }).map((values) => {
  const inner = [...values].sort((a, b) => a - b);
  return [0, 0, ...inner.flatMap((value, n) => [value, (n + 1) / (inner.length + 1)]), 100, 1];
});

t.test('numeric: each moment is exact, also where forecasts replace others', async (t) => {
  const stated = fc.array(fc.record({ ...parts, cdf: halves }), { maxLength: 40 });
  const property = fc.asyncProperty(stated, async (rows) => {
    const latest = new Map<string, readonly number[]>();
    const all = [...rows]
      .sort((a, b) => a.at - b.at)
      .map(({ cdf, at, agent }): TimedForecast => {
        const given = givenByCdf(cdf);
        const replaced = latest.get(agent) ?? null;
        latest.set(agent, given);
        const who = { agent, owner: agent, family: 'gpt' };
        return { at, ...who, side: 0, value: 5_000, given, replaced };
      });
    const of_all = { all, offset: all.length, fits, until_ms };
    const { points } = await makeCourse(number, of_all);
    for (const { at, count, fan } of points) {
      const until = all.filter((one) => one.at <= at);
      const found = consensusOf(number, until, at);
      assert.equal(count, found.count);
      assert.equal(showFan(number, fan ?? []).p50, found.forecast);
    }
  });
  await holds(t, property);
});

t.test('of more moments than a chart shows, first, last and extremes are kept', async (t) => {
  const all = Array.from({ length: 3_000 }, (_, n): TimedForecast => {
    const value = n === 1_500 ? 10_000 : n === 1_501 ? 0 : 5_000;
    const who = { agent: String(n), owner: String(n), family: 'gpt' };
    return { at: 1_700_000_000_000 + n, ...who, side: Number(value > 5_000), value, given: [] };
  });
  const course = await makeCourse(binary, { all, offset: 3_000, fits: [], until_ms: 0 });
  t.equal(course.moments, 3_000);
  t.ok(course.points.length <= 1_000);
  t.match([course.points[0], course.points.at(-1)], [{ count: 1 }, { count: 3_000 }]);
  t.ok(course.points.some(({ count }) => count === 1_501));
});

t.test('a long history is counted in many turns of the event loop', async (t) => {
  const count = 20_000;
  const options = Array.from({ length: 10 }, (_, n) => `Option ${n}`);
  const shape = { ...multi, options };
  const all = Array.from({ length: count }, (_, n): TimedForecast => {
    const who = { agent: String(n), owner: String(n), family: 'gpt' };
    const given = options.map((_, k) => (k === n % 10 ? 9 * 10_000 : 0));
    return { at: 1_700_000_000_000 + n * 60_000, ...who, side: n % 10, value: 10_000, given };
  });
  const turns = await countTurns(() =>
    makeCourse(shape, { all, offset: count, fits: [], until_ms: 0 }),
  );
  t.ok(turns >= count / 100, `${turns} turns`);
  const forecasts = all.map((one) => ({ ...one, yes: null, option: one.side }));
  const counter = makeCounter();
  for (const one of forecasts) counter.add(one);
  const counting = await countTurns(() => sumUpInTurns(counter, makePause(200)));
  t.ok(counting >= count / 200, `${counting} turns`);
});
