import assert from 'node:assert/strict';
import fc from 'fast-check';
import { makeCourse } from '../../../src/features/consensus/index.js';
import type { TimedForecast } from '../../../src/features/consensus/run.js';
import { no_range } from '../../help/number.js';
import { holds } from '../../help/property.js';
import { t } from '../../help/tap.js';

/** Shifts of the consensus: which moves count, and which families caused them. */

const minute = 60_000;
const window_ms = 24 * 60 * minute;
const start = Date.parse('2026-03-01T00:00:00.000Z');
const courseOf = (all: readonly TimedForecast[], options: readonly string[] = []) => {
  const question_type = options.length > 0 ? 'multi' : 'binary';
  const shape = { ...no_range, question_type, options } as const;
  const in_order = [...all].sort((a, b) => a.at - b.at);
  // The headline is the median, so that the numbers are easy to follow.
  const weights = { chance: [1, 0, 0, 0], number: [1, 0] };
  const fits = [{ number: 1, rho: 0.6, weights, from_ms: 0 }];
  return makeCourse(shape, { all: in_order, offset: all.length, fits, until_ms: 0 });
};

const one = (
  hours: number,
  percent: number,
  family = 'gpt',
  agent = `${hours} ${percent}`,
): TimedForecast => ({
  at: start + hours * 60 * minute,
  family,
  agent,
  owner: agent,
  side: percent >= 50 ? 1 : 0,
  value: 100 * percent,
  given: [],
});

t.test('a rise has its ends, its predictions and the families that made it', async (t) => {
  const all = [one(0, 20), one(80, 20), one(81, 80, 'claude'), one(82, 60, 'gemini')];
  t.same((await courseOf(all)).drift_events, [
    {
      option: null,
      from: { at: '2026-03-04T09:00:00.000Z', percent: 20, count: 3 },
      to: { at: '2026-03-04T10:00:00.000Z', percent: 40, count: 4 },
      change: 20,
      predictions: 1,
      families: [
        // The medians are 20, 20, 20 and (20 + 60) / 2 = 40.
        { model_family: 'gemini', predictions: 1, contribution: 20 },
      ],
    },
  ]);
});

t.test('a revision moves the headline by what it changed', async (t) => {
  const all = [one(0, 20, 'gpt', 'a'), one(0, 40, 'claude', 'b'), one(80, 30, 'gemini', 'c')];
  // The medians are 30, then 40 and (40 + 80) / 2 = 60.
  const later = [one(81, 80, 'gpt', 'a'), one(82, 90, 'claude', 'd')];
  t.match((await courseOf([...all, ...later])).drift_events, [
    {
      change: 30,
      predictions: 2,
      from: { percent: 30, count: 3 },
      to: { percent: 60, count: 4 },
      families: [
        { model_family: 'claude', predictions: 1, contribution: 20 },
        { model_family: 'gpt', predictions: 1, contribution: 10 },
      ],
    },
  ]);
});

t.test('what stood for long is where a move begins, however long ago it was reached', async (t) => {
  const [move] = (await courseOf([one(0, 20), one(1_000, 60)])).drift_events;
  t.equal(move?.change, 20);
  t.equal(move?.from.at, new Date(start + 976 * 60 * minute).toISOString());
});

t.test('ten points within a day are a move, less or slower is none', async (t) => {
  const movesOf = async (...all: TimedForecast[]) => (await courseOf(all)).drift_events.length;
  t.equal(await movesOf(one(0, 40), one(1, 60)), 1);
  t.equal(await movesOf(one(0, 40), one(1, 59)), 0);
  t.equal(await movesOf(one(0, 40), one(10, 52), one(20, 70)), 1);
  t.equal(await movesOf(one(0, 40), one(25, 50), one(50, 60), one(75, 70)), 0);
});

t.test('with options the headline of each moves by itself, and not its share', async (t) => {
  const options = ['Rises', 'Stays', 'Falls'];
  // The numbers are percentages times 2 (the number of options minus 1), and become basis points
  // below. Rises is the first choice at every moment except the last.
  const stated = [
    { side: 0, given: [100, 60, 40] },
    { side: 1, given: [20, 170, 10] },
  ];
  const all = stated.map((given, n) => ({
    ...one(n, 50),
    ...given,
    given: given.given.map((units) => 100 * units),
  }));
  const { drift_events: moves } = await courseOf(all, options);
  t.match(moves, [
    {
      option: 'Rises',
      change: -20,
      from: { percent: 50 },
      to: { percent: 30 },
      families: [{ model_family: 'gpt', predictions: 1, contribution: -20 }],
    },
    {
      option: 'Stays',
      change: 27.5,
      from: { percent: 30 },
      to: { percent: 57.5 },
      families: [{ model_family: 'gpt', predictions: 1, contribution: 27.5 }],
    },
  ]);
  t.equal(moves.length, 2, 'Falls went from 20 to 12.5');
});

t.test('moves are long enough, within the window, apart, and shared out whole', async (t) => {
  const stated = fc.record({
    gap: fc.integer({ min: 0, max: 960 }),
    value: fc.integer({ min: 0, max: 100 }),
    family: fc.constantFrom('claude', 'gemini', 'gpt'),
  });
  const property = fc.asyncProperty(fc.array(stated, { maxLength: 80 }), async (steps) => {
    let at = start;
    const { points, drift_events: moves } = await courseOf(
      steps.map(({ gap, value, family }, n) => {
        at += gap * minute;
        const agent = String(n);
        return { ...one(0, value, family, agent), at };
      }),
    );
    let end = 0;
    for (const { from, to, change, predictions, families } of moves) {
      assert.ok(Math.abs(change) >= 10);
      assert.equal(change, Math.round((to.percent - from.percent) * 100) / 100);
      const length = Date.parse(to.at) - Date.parse(from.at);
      assert.ok(length >= 0 && length <= window_ms);
      assert.ok(from.count >= end, 'they overlap');
      end = to.count;
      assert.equal(predictions, to.count - from.count);
      const sum = families.reduce((total, { contribution }) => total + (contribution ?? 0), 0);
      assert.ok(Math.abs(sum - change) <= 0.05, `${sum} of ${change}`);
    }
    if (moves.length > 0) return;
    // No shift was found, so within a window no two headlines may be 10 points apart.
    for (const [a, { forecast: low }] of points.entries()) {
      const held_until = points[a + 1]?.at ?? 0;
      for (const { at, forecast: high } of points.slice(a + 1)) {
        if (at - held_until >= window_ms) break;
        const apart = Math.abs((high ?? 0) - (low ?? 0));
        assert.ok(Math.round(apart * 100) / 100 < 10, `${a}: ${apart}`);
      }
    }
  });
  await holds(t, property);
});
