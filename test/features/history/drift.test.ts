import assert from 'node:assert/strict';
import fc from 'fast-check';
import { t } from 'tap';
import { driftOf, makeSeries, type Stated } from '../../../src/features/history/index.js';
import { holds } from '../../help/property.js';

/** Moves of the consensus. */

const minute = 60_000;
const start = Date.parse('2026-03-01T00:00:00.000Z');
const ask = { window: '24h', points: 10, least_count: 1 };

const seriesOf = (all: readonly Stated[], options: readonly string[] = []) => {
  const series = makeSeries({ question_type: options.length > 0 ? 'multi' : 'binary', options });
  const in_order = [...all].sort((a, b) => a.at - b.at);
  for (const [n, one] of in_order.entries()) series.add(one, n + 1);
  return series.read();
};

const one = (hours: number, value: number, family = 'gpt'): Stated => ({
  at: start + hours * 60 * minute,
  family,
  owner: `${hours} ${value}`,
  side: value >= 50 ? 1 : 0,
  value,
  given: [],
});

t.test('a rise has its ends, its predictions and the families that made it', async (t) => {
  const all = [one(0, 20), one(1, 20), one(80, 20), one(81, 80, 'claude'), one(82, 60, 'gemini')];
  const { drift_events: moves, ...rest } = driftOf({ id: 'q' }, seriesOf(all), ask);
  t.match(rest, { question_id: 'q', figure: 'mean_probability', window: '24h', offset: 5 });
  t.same(moves, [
    {
      option: null,
      from: { at: '2026-03-04T08:00:00.000Z', percent: 20, count: 3 },
      to: { at: '2026-03-04T10:00:00.000Z', percent: 40, count: 5 },
      change: 20,
      predictions: 2,
      families: [
        { model_family: 'claude', predictions: 1, contribution: 12 },
        { model_family: 'gemini', predictions: 1, contribution: 8 },
      ],
    },
  ]);
});

t.test('what stood for long is where a move begins, however long ago it was reached', async (t) => {
  const all = [one(0, 20), one(1_000, 60)];
  const [move] = driftOf({ id: 'q' }, seriesOf(all), { ...ask, window: '1h' }).drift_events;
  t.equal(move?.change, 20);
  t.equal(move?.from.at, new Date(start + 999 * 60 * minute).toISOString());
});

t.test('ten points are a move and 9.99 are none; a longer window sees more', async (t) => {
  const all = [one(0, 40), one(1, 60)];
  t.equal(driftOf({ id: 'q' }, seriesOf(all), ask).drift_events.length, 1);
  t.equal(driftOf({ id: 'q' }, seriesOf(all), { ...ask, points: 10.01 }).drift_events.length, 0);
  const slow = [one(0, 40), one(20, 52), one(40, 70)];
  t.equal(driftOf({ id: 'q' }, seriesOf(slow), { ...ask, window: '10h' }).drift_events.length, 0);
  t.equal(driftOf({ id: 'q' }, seriesOf(slow), { ...ask, window: '48h' }).drift_events.length, 1);
  const few = { ...ask, window: '48h', least_count: 2 };
  t.equal(
    driftOf({ id: 'q' }, seriesOf(slow), few).drift_events.length,
    0,
    'six points from there on',
  );
});

t.test('with options the mean of each moves by itself, and not its share', async (t) => {
  const options = ['Rises', 'Stays', 'Falls'];
  // In percent · 2. The first choices are Rises at every moment but the last.
  const stated = [
    { side: 0, given: [100, 60, 40] },
    { side: 0, given: [100, 60, 40] },
    { side: 0, given: [100, 60, 40] },
    { side: 1, given: [20, 170, 10] },
  ];
  const all = stated.map((given, n) => ({ ...one(n, 50), ...given }));
  const { drift_events: moves, figure } = driftOf({ id: 'q' }, seriesOf(all, options), ask);
  t.equal(figure, 'option_probabilities');
  t.match(moves, [
    {
      ...{ option: 'Rises', change: -10, from: { percent: 50 }, to: { percent: 40 } },
      families: [{ model_family: 'gpt', predictions: 1, contribution: -10 }],
    },
    {
      ...{ option: 'Stays', change: 13.75, from: { percent: 30 }, to: { percent: 43.75 } },
      families: [{ model_family: 'gpt', predictions: 1, contribution: 13.75 }],
    },
  ]);
  t.equal(moves.length, 2, 'Falls went from 20 to 16.25');
});

t.test('moves are long enough, within the window, apart, and shared out whole', async (t) => {
  const stated = fc.record({
    gap: fc.integer({ min: 0, max: 400 }),
    value: fc.integer({ min: 0, max: 100 }),
    family: fc.constantFrom('claude', 'gemini', 'gpt'),
  });
  const property = fc.property(fc.array(stated, { maxLength: 80 }), (steps) => {
    let at = start;
    const series = seriesOf(
      steps.map(({ gap, value, family }, n) => {
        at += gap * minute;
        return { at, family, owner: String(n), side: value >= 50 ? 1 : 0, value, given: [] };
      }),
    );
    const { drift_events: moves } = driftOf({ id: 'q' }, series, { ...ask, window: '600m' });
    let end = 0;
    for (const { from, to, change, predictions, families } of moves) {
      assert.ok(Math.abs(change) >= 10);
      assert.equal(change, Math.round((to.percent - from.percent) * 100) / 100);
      const length = Date.parse(to.at) - Date.parse(from.at);
      assert.ok(length >= 0 && length <= 600 * minute);
      assert.ok(from.count >= end, 'they overlap');
      end = to.count;
      assert.equal(predictions, to.count - from.count);
      const sum = families.reduce((total, { contribution }) => total + (contribution ?? 0), 0);
      assert.ok(Math.abs(sum - change) <= 0.05, `${sum} of ${change}`);
    }
    if (moves.length > 0) return;
    // None was found, so no two moments are far enough apart.
    const figure = series.figures[1] as Float64Array;
    const { moments } = series;
    for (let a = 0; a + 1 < moments.length; a += 1) {
      const held_until = series.at[moments[a + 1] as number] as number;
      for (let b = a + 1; b < moments.length; b += 1) {
        const index = moments[b] as number;
        if ((series.at[index] as number) - held_until >= 600 * minute) break;
        const apart = Math.abs(
          (figure[index] as number) - (figure[moments[a] as number] as number),
        );
        assert.ok(Math.round(apart * 100) / 100 < 10, `${a} to ${b}: ${apart}`);
      }
    }
  });
  await holds(t, property);
});
