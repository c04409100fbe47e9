import { type Curves, downsample } from './lttb.js';
import { type Moment, makeCounts, type RunShape } from './run.js';
import { givenAt, makeSeries, type Series } from './series.js';

/** The points of a chart: of all moments of a history those that show its shape. */

export interface ChartPoint extends Moment {
  /** Milliseconds since 1970. */
  readonly at: number;
}

export interface ChartAsk {
  /** At most so many points, 2 or more. */
  readonly points: number;
  /** Predictions of one model family only. */
  readonly family: string | null;
  /** Only moments of this stretch of time, in milliseconds since 1970; both ends count. */
  readonly since: number;
  readonly until: number;
}

/** Complete in itself: the series may go on. */
export interface Chart {
  readonly shape: RunShape;
  /** Offset of the newest prediction that is counted in; 0 where there is none. */
  readonly offset: number;
  /** How many predictions the history has. */
  readonly total: number;
  /** How many moments there are to choose from. */
  readonly moments: number;
  readonly points: readonly ChartPoint[];
}

/** The history as it would be with the predictions of one family alone; it has no pool. */
const ofFamily = (series: Series, name: string): Series => {
  const wanted = series.families.indexOf(name);
  const { at, side, value, family } = series;
  const alone = makeSeries(series.shape, { pooled: false });
  for (let n = 0; n < series.length; n += 1) {
    if (family[n] !== wanted) continue;
    const [time, on, states] = [at[n] as number, side[n] as number, value[n] as number];
    const given = givenAt(series, n);
    alone.add({ at: time, side: on, value: states, given, family: name, owner: '' }, series.offset);
  }
  return alone.read();
};

const within = (series: Series, { since, until }: ChartAsk): Int32Array => {
  const { at, moments } = series;
  let from = 0;
  let to = moments.length;
  while (from < to && (at[moments[from] as number] as number) < since) from += 1;
  while (to > from && (at[moments[to - 1] as number] as number) > until) to -= 1;
  return moments.subarray(from, to);
};

/** The consensus after each of the predictions with these numbers, ascending. */
const readMoments = (series: Series, chosen: Int32Array, has_pool: boolean): ChartPoint[] => {
  const { shape, at, side, value, figures } = series;
  const counts = makeCounts(shape);
  const pool = has_pool && counts.is_binary ? figures[2] : undefined;
  let next = 0;
  return Array.from(chosen, (index): ChartPoint => {
    for (; next <= index; next += 1) {
      const one = { side: side[next] as number, value: value[next] as number };
      counts.add({ ...one, given: givenAt(series, next) });
    }
    return { at: at[index] as number, ...counts.read(pool?.[index] ?? null) };
  });
};

export const makeChart = (series: Series, ask: ChartAsk): Chart => {
  const shown = ask.family === null ? series : ofFamily(series, ask.family);
  const moments = within(shown, ask);
  const curves: Curves = { x: shown.at, ys: shown.figures };
  const chosen = downsample(curves, moments, ask.points);
  return {
    ...{ shape: series.shape, offset: series.offset, total: shown.length },
    moments: moments.length,
    points: readMoments(shown, chosen, ask.family === null),
  };
};
