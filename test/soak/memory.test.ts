import { t } from '../help/tap.js';
import { measureGrowth } from './memory.js';

/** Samples from minute 0 to `last`, starting at `level` and growing by `slope` MB per minute. */
const grow = (level: number, slope: number, last: number) =>
  Array.from({ length: last + 1 }, (_, min) => ({ min, mb: level + slope * min }));

t.test('a replaced process is a series of its own, and a warm-up does not count', async (t) => {
  const warming = [{ min: 0, mb: 20 }, { min: 1, mb: 90 }, ...grow(100, 0.5, 12).slice(2)];
  const { series, watched_min, slope, longest } = measureGrowth('api', [
    warming,
    grow(300, 0.5, 8),
  ]);
  t.equal(series, 2);
  t.equal(watched_min, 10);
  t.same(longest.slice(0, 4), [20, 90, 101, 101.5]);
  t.ok(Math.abs(slope - 0.5) < 1e-9, `${slope}`);
  t.match(measureGrowth('api', [grow(100, 5, 1)]), { series: 0, watched_min: 0, slope: 0 });
});
