import assert from 'node:assert/strict';
import fc from 'fast-check';
import { downsample } from '../../../src/features/consensus/lttb.js';
import { holds } from '../../help/property.js';
import { t } from '../../help/tap.js';

/** Downsampling of a curve: which points are kept. */

const curves = fc
  .array(
    fc.tuple(
      fc.integer({ min: 1, max: 1_000 }),
      fc.integer({ min: 0, max: 10_000 }),
      fc.integer({ min: 0, max: 10_000 }),
    ),
    { maxLength: 300 },
  )
  .map((steps) => {
    let x = 0;
    return {
      x: steps.map(([step]) => {
        x += step;
        return x;
      }),
      ys: [steps.map(([, y]) => y / 100), steps.map(([, , y]) => y / 100)],
    };
  });

t.test('first, last and extremes stay, in order, and never more than asked for', async (t) => {
  const property = fc.asyncProperty(
    curves,
    fc.integer({ min: 2, max: 80 }),
    async (given, most) => {
      const { length } = given.x;
      const kept = [...(await downsample(given, most))];
      assert.ok(length <= most ? kept.length === length : kept.length <= most);
      assert.deepEqual(
        kept,
        [...new Set(kept)].sort((a, b) => a - b),
      );
      assert.ok(kept.every((n) => n >= 0 && n < length));
      if (length === 0) return;
      assert.equal(kept[0], 0);
      assert.equal(kept.at(-1), length - 1);
      if (most < 6) return;
      for (const y of given.ys) {
        const values = kept.map((n) => y[n]);
        assert.ok(values.includes(Math.min(...y)) && values.includes(Math.max(...y)));
      }
    },
  );
  await holds(t, property);
});

/** The published algorithm, implemented again from its description. */
const published = (x: readonly number[], y: readonly number[], most: number): number[] => {
  const size = (x.length - 2) / (most - 2);
  const bucket = (n: number): number[] => {
    if (n === most - 2) return [x.length - 1];
    const all: number[] = [];
    for (let k = 1; k < x.length - 1; k += 1) {
      if (k - 1 >= Math.floor(n * size) && k - 1 < Math.floor((n + 1) * size)) all.push(k);
    }
    return all;
  };
  const mean = (all: readonly number[], values: readonly number[]): number =>
    all.reduce((sum, k) => sum + (values[k] as number), 0) / all.length;
  const kept = [0];
  for (let n = 0; n < most - 2; n += 1) {
    const a = kept.at(-1) as number;
    const next = bucket(n + 1);
    const [cx, cy] = [mean(next, x), mean(next, y)];
    let best = -1;
    let largest = -1;
    for (const b of bucket(n)) {
      const [ax, ay, bx, by] = [x[a], y[a], x[b], y[b]] as [number, number, number, number];
      const area = Math.abs((ax - cx) * (by - ay) - (ax - bx) * (cy - ay));
      if (area > largest) [best, largest] = [b, area];
    }
    kept.push(best);
  }
  return [...kept, x.length - 1];
};

t.test('where the ends are the extremes it is LTTB as published', async (t) => {
  const steps = fc.array(
    fc.tuple(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 50 })),
    { minLength: 3, maxLength: 300 },
  );
  const property = fc.asyncProperty(steps, fc.integer({ min: 3, max: 60 }), async (all, most) => {
    const sum = (n: 0 | 1): number[] => {
      let total = 0;
      return all.map((step) => {
        total += step[n];
        return total;
      });
    };
    const [x, y] = [sum(0), sum(1)];
    if (x.length <= most) return;
    assert.deepEqual(await downsample({ x, ys: [y] }, most), published(x, y, most));
  });
  await holds(t, property);
});
