/**
 * Fewer points that look like all of them: Largest-Triangle-Three-Buckets (Steinarsson,
 * “Downsampling Time Series for Visual Representation”, University of Iceland, 2013), with two
 * additions. The figures of one question share their times, so a moment is chosen by the sum of the
 * triangles that its figures span. And the extremes of every figure are anchors, as first and last
 * are: LTTB alone may pass over a peak by a hair when its bucket has a larger triangle elsewhere,
 * and a chart that hides the highest value is wrong to read a range from. Between two anchors it is
 * LTTB as published.
 */

export interface Curves {
  /** Ascending. */
  readonly x: Float64Array;
  /** As many values as `x` has in each. */
  readonly ys: readonly Float64Array[];
}

/** Numbers of the moments to look at: which ones there are to choose from. */
type Numbers = Int32Array;

const valueAt = (array: Float64Array, index: number): number => array[index] as number;

/** First, last, and for each figure its lowest and highest moment, as many as fit. */
const anchorsOf = ({ ys }: Curves, from: Numbers, most: number): number[] => {
  const last = from.length - 1;
  const anchors = new Set([0, last]);
  for (const y of ys) {
    let low = 0;
    let high = 0;
    for (let n = 1; n <= last; n += 1) {
      const value = valueAt(y, from[n] as number);
      if (value < valueAt(y, from[low] as number)) low = n;
      if (value > valueAt(y, from[high] as number)) high = n;
    }
    for (const extreme of [low, high]) if (anchors.size < most) anchors.add(extreme);
  }
  return [...anchors].sort((a, b) => a - b);
};

/** How much of `room` each gap between anchors gets: by its length, largest remainders first. */
const divideRoom = (gaps: readonly number[], room: number): number[] => {
  const total = gaps.reduce((sum, gap) => sum + gap, 0);
  if (total <= room) return [...gaps];
  const exact = gaps.map((gap) => (gap * room) / total);
  const given = exact.map(Math.floor);
  let left = room - given.reduce((sum, n) => sum + n, 0);
  const order = exact
    .map((share, index) => ({ index, rest: share - Math.floor(share) }))
    .sort((a, b) => b.rest - a.rest || a.index - b.index);
  for (const { index } of order) {
    if (left === 0) break;
    given[index] = (given[index] as number) + 1;
    left -= 1;
  }
  return given;
};

interface Gap {
  /** Places in `from` of the two anchors. */
  readonly start: number;
  readonly end: number;
  readonly room: number;
}

interface Corner {
  readonly x: number;
  readonly ys: readonly number[];
}

/** The mean of the moments at places from `low` to before `high`. */
const meanOf = ({ x, ys }: Curves, from: Numbers, [low, high]: readonly [number, number]) => {
  const sums = new Array<number>(ys.length).fill(0);
  let sum = 0;
  for (let n = low; n < high; n += 1) {
    const index = from[n] as number;
    sum += valueAt(x, index);
    for (let k = 0; k < ys.length; k += 1) {
      sums[k] = (sums[k] as number) + valueAt(ys[k] as Float64Array, index);
    }
  }
  return { x: sum / (high - low), ys: sums.map((one) => one / (high - low)) };
};

/** Twice the area of the triangles of all curves from `before` over `index` to the third. */
const areaOf = ({ x, ys }: Curves, before: number, index: number, third: Corner): number => {
  const [x0, x1] = [valueAt(x, before), valueAt(x, index)];
  let area = 0;
  for (let k = 0; k < ys.length; k += 1) {
    const y = ys[k] as Float64Array;
    const [y0, y1] = [valueAt(y, before), valueAt(y, index)];
    area += Math.abs((x0 - third.x) * (y1 - y0) - (x0 - x1) * ((third.ys[k] as number) - y0));
  }
  return area;
};

/** LTTB between two anchors: one moment from each bucket. */
const fillGap = (curves: Curves, from: Numbers, { start, end, room }: Gap): number[] => {
  const size = (end - start - 1) / room;
  const edge = (bucket: number): number =>
    bucket === room ? end : start + 1 + Math.floor(bucket * size);
  const chosen: number[] = [];
  let before = from[start] as number;
  for (let bucket = 0; bucket < room; bucket += 1) {
    const next = edge(bucket + 1);
    // The third corner: the mean of the next bucket, or the anchor at the end.
    const third = meanOf(curves, from, [next, bucket === room - 1 ? end + 1 : edge(bucket + 2)]);
    let best = edge(bucket);
    let largest = -1;
    for (let n = edge(bucket); n < next; n += 1) {
      const area = areaOf(curves, before, from[n] as number, third);
      if (area > largest) {
        largest = area;
        best = n;
      }
    }
    chosen.push(best);
    before = from[best] as number;
  }
  return chosen;
};

/**
 * At most `most` (2 or more) of the numbers in `from`, ascending: the first and the last, the
 * extremes of each figure as far as they fit, and between them what shows the shape best. All of
 * them where there are no more than that.
 */
export const downsample = (curves: Curves, from: Int32Array, most: number): Int32Array => {
  if (from.length <= most) return from;
  const anchors = anchorsOf(curves, from, most);
  const gaps = anchors.slice(1).map((end, n) => end - (anchors[n] as number) - 1);
  const rooms = divideRoom(gaps, most - anchors.length);
  const places: number[] = [anchors[0] as number];
  for (const [n, room] of rooms.entries()) {
    const [start, end] = [anchors[n] as number, anchors[n + 1] as number];
    if (room > 0) places.push(...fillGap(curves, from, { start, end, room }));
    places.push(end);
  }
  return Int32Array.from(places, (place) => from[place] as number);
};
