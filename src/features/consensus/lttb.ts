import { makePause } from '../../kit/loop.js';

/**
 * Picks a few points that show the shape of all: Largest-Triangle-Three-Buckets (Steinarsson,
 * “Downsampling Time Series for Visual Representation”, University of Iceland, 2013), with two
 * additions. First, the figures of one question share their times, so a moment is chosen by the sum
 * of the triangles that its figures span. Second, the extremes of every figure stay: LTTB alone can
 * narrowly miss a peak, and the chart would then show a wrong range.
 */

/** Curve values that are read in one turn of the event loop. */
const values_a_turn = 100_000;
type Pause = ReturnType<typeof makePause>;

export interface Curves {
  /** Ascending. */
  readonly x: readonly number[];
  /** Each curve has as many values as `x`. */
  readonly ys: readonly (readonly number[])[];
}

const extremesOf = (y: readonly number[]): readonly number[] => {
  let [low, high] = [0, 0];
  for (const [n, value] of y.entries()) {
    if (value < (y[low] as number)) low = n;
    if (value > (y[high] as number)) high = n;
  }
  return [low, high];
};

const meanOf = (values: readonly number[], low: number, high: number): number => {
  let sum = 0;
  for (let n = low; n < high; n += 1) sum += values[n] as number;
  return sum / (high - low);
};

/** Plain LTTB: returns the first index, the last, and one from each bucket between them. */
const pickFromBuckets = async (
  { x, ys }: Curves,
  most: number,
  pause: Pause,
): Promise<readonly number[]> => {
  const last = x.length - 1;
  const buckets = most - 2;
  const size = (last - 1) / buckets;
  const edge = (bucket: number): number =>
    bucket === buckets ? last : 1 + Math.floor(bucket * size);
  const chosen = [0];
  let before = 0;
  for (let bucket = 0; bucket < buckets; bucket += 1) {
    const next = edge(bucket + 1);
    // The third corner of the triangle is the mean of the next bucket, or the last point.
    const end = bucket === buckets - 1 ? last + 1 : edge(bucket + 2);
    const third_x = meanOf(x, next, end);
    const third_ys = ys.map((y) => meanOf(y, next, end));
    const areaOf = (n: number): number => {
      let area = 0;
      for (let k = 0; k < ys.length; k += 1) {
        const y = ys[k] as readonly number[];
        const [x0, y0] = [x[before] as number, y[before] as number];
        const [x1, y1] = [x[n] as number, y[n] as number];
        area += Math.abs((x0 - third_x) * (y1 - y0) - (x0 - x1) * ((third_ys[k] as number) - y0));
      }
      return area;
    };
    let best = edge(bucket);
    let largest = -1;
    for (let n = best; n < next; n += 1) {
      const area = areaOf(n);
      if (area > largest) [best, largest] = [n, area];
    }
    chosen.push(best);
    before = best;
    await pause((next - edge(bucket)) * ys.length);
  }
  return [...chosen, last];
};

/**
 * Returns the indexes of at most `most` points (2 or more), ascending: the first, the last, the
 * extremes of each figure if they fit, and points that show the shape.
 */
export const downsample = async (curves: Curves, most: number): Promise<readonly number[]> => {
  const pause = makePause(values_a_turn);
  const { x, ys } = curves;
  if (x.length <= most) return [...x.keys()];
  const found: number[] = [];
  for (const y of ys) {
    found.push(...extremesOf(y));
    await pause(y.length);
  }
  const between = found.filter((n) => n > 0 && n < x.length - 1);
  const extremes = [...new Set(between)].slice(0, most - 2);
  const chosen = new Set([
    ...extremes,
    ...(await pickFromBuckets(curves, most - extremes.length, pause)),
  ]);
  return [...chosen].sort((a, b) => a - b);
};
