import type { Static } from '@sinclair/typebox';
import { figureNames } from './run.js';
import type { drift_answer, drift_figures, MoveWire } from './schema.js';
import type { Series } from './series.js';

/**
 * Where the consensus moved. A move is a stretch of the history, no longer than a window, over
 * which one figure went up or down by at least so many points. Moves of a figure do not overlap.
 * They are found from the oldest on: the first moment that is far enough from an extreme within the
 * window before it; the move then runs on for as long as the same window holds a farther one.
 */
export interface DriftOptions {
  readonly window_ms: number;
  /** Percentage points, more than 0. */
  readonly points: number;
  /** A move begins where at least so many predictions are counted. */
  readonly least_count: number;
}

/** Numbers of two predictions of the series: the figure after each. */
export interface Move {
  readonly from: number;
  readonly to: number;
  readonly change: number;
}

/** Two decimals: a difference of two figures with two decimals is one again. */
const cleaned = (value: number): number => Math.round(value * 100) / 100;

export interface Scan {
  readonly at: Float64Array;
  readonly figure: Float64Array;
  /** Which numbers of the two to look at, ascending. */
  readonly moments: Int32Array;
}

/**
 * Places in `moments` where the figure was farther than at all later ones so far, so that the first
 * is the extreme. A figure stands until the next moment, and so long it is within reach.
 */
const makeExtremes = (
  { at, figure, moments }: Scan,
  isFarther: (a: number, b: number) => boolean,
) => {
  let queue: number[] = [];
  let start = 0;
  const value = (place: number): number => figure[moments[place] as number] as number;
  const heldUntil = (place: number): number => at[moments[place + 1] as number] as number;
  return {
    push(place: number): void {
      while (queue.length > start) {
        if (isFarther(value(queue[queue.length - 1] as number), value(place))) break;
        queue.pop();
      }
      queue.push(place);
    },
    /** The extreme since a time; undefined when nothing stood then. */
    since(time: number): number | undefined {
      while (start < queue.length && heldUntil(queue[start] as number) <= time) start += 1;
      if (start > 1_024) {
        queue = queue.slice(start);
        start = 0;
      }
      return queue[start];
    },
    restart(place: number): void {
      queue = [place];
      start = 0;
    },
  };
};

/** The farthest place in the direction of the move that is within the window of its beginning. */
const runOn = (
  { at, figure, moments }: Scan,
  { place, from, up }: { place: number; from: number; up: boolean },
  window_ms: number,
): number => {
  let best = place;
  const end = (at[moments[from + 1] as number] as number) + window_ms;
  for (let n = place + 1; n < moments.length; n += 1) {
    const index = moments[n] as number;
    if ((at[index] as number) > end) break;
    const farther = (figure[index] as number) - (figure[moments[best] as number] as number);
    if (up ? farther > 0 : farther < 0) best = n;
  }
  return best;
};

/** The moves of one figure of a series, oldest first. */
export const findMoves = (scan: Scan, options: DriftOptions): readonly Move[] => {
  const { at, figure, moments } = scan;
  const { window_ms, points, least_count } = options;
  const lows = makeExtremes(scan, (a, b) => a < b);
  const highs = makeExtremes(scan, (a, b) => a > b);
  const moves: Move[] = [];
  const value = (place: number): number => figure[moments[place] as number] as number;
  for (let place = 0; place < moments.length; place += 1) {
    const index = moments[place] as number;
    if (index + 1 < least_count) continue;
    const since = (at[index] as number) - window_ms;
    const low = lows.since(since) ?? place;
    const high = highs.since(since) ?? place;
    const rise = cleaned(value(place) - value(low));
    const fall = cleaned(value(high) - value(place));
    if (Math.max(rise, fall) < points) {
      lows.push(place);
      highs.push(place);
      continue;
    }
    const up = rise >= fall;
    const from = up ? low : high;
    place = runOn(scan, { place, from, up }, window_ms);
    moves.push({
      from: moments[from] as number,
      to: moments[place] as number,
      change: cleaned(value(place) - value(from)),
    });
    lows.restart(place);
    highs.restart(place);
  }
  return moves;
};

export interface FamilyShare {
  readonly model_family: string;
  readonly predictions: number;
  /** Points of the move that its predictions account for; null where that cannot be told. */
  readonly contribution: number | null;
}

/**
 * What each family moved. Most figures are a mean of what each prediction puts in (its stated
 * probability, or 100 where it is on the side and 0 where not). With `m` the mean before and `N`
 * predictions after the move, its change is exactly Σ (v − m) / N over the predictions in between;
 * each of these is the contribution of its family. `m` is taken from all predictions before, not
 * from a rounded figure.
 */
export const shareMove = (
  { family, families }: Series,
  { from, to }: Pick<Move, 'from' | 'to'>,
  put: ((index: number) => number) | null,
): readonly FamilyShare[] => {
  let before = 0;
  if (put !== null) for (let index = 0; index <= from; index += 1) before += put(index);
  const mean = before / (from + 1);
  const sums = new Map<number, { predictions: number; sum: number }>();
  for (let index = from + 1; index <= to; index += 1) {
    const number = family[index] as number;
    const known = sums.get(number) ?? { predictions: 0, sum: 0 };
    known.predictions += 1;
    known.sum += (put?.(index) ?? 0) - mean;
    sums.set(number, known);
  }
  const weight = ({ contribution, predictions }: FamilyShare): number =>
    contribution === null ? predictions : Math.abs(contribution);
  return [...sums]
    .map(([number, { predictions, sum }]) => ({
      model_family: families[number] as string,
      predictions,
      contribution: put === null ? null : cleaned(sum / (to + 1)),
    }))
    .sort((a, b) => weight(b) - weight(a) || (a.model_family < b.model_family ? -1 : 1));
};

export interface DriftAsk {
  /** `90m`, `24h`, `7d`. */
  readonly window: string;
  readonly points: number;
  readonly least_count: number;
  /** Binary only; the mean probability where it is not named. Multi: the mean of each option. */
  readonly figure?: (typeof drift_figures)[number] | undefined;
}

const unit_ms: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds of a window that the schema let through. */
export const windowMs = (window: string): number =>
  Number(window.slice(0, -1)) * (unit_ms[window.slice(-1)] ?? 0);

interface Figure {
  readonly name: string;
  readonly option: string | null;
  readonly values: Float64Array;
  /** What a prediction puts into the mean that this figure is; null for one that is no mean. */
  readonly put: ((index: number) => number) | null;
}

const figuresOf = (series: Series, asked: DriftAsk['figure']): readonly Figure[] => {
  const { shape, figures, side, value, given } = series;
  const options = shape.options.length;
  const onSide = (wanted: number) => (index: number) => (side[index] === wanted ? 100 : 0);
  const onOption = (n: number) => (index: number) =>
    (given[index * options + n] as number) / (options - 1);
  if (shape.question_type === 'multi') {
    return shape.options.map((option, n) => ({
      ...{ name: 'option_probabilities', option, put: onOption(n) },
      values: figures[n] as Float64Array,
    }));
  }
  const name = asked ?? 'mean_probability';
  const puts = {
    mean_probability: (index: number) => value[index] as number,
    yes_percent: onSide(1),
    extremized: null,
  };
  const values = figures[figureNames(shape).indexOf(name)] as Float64Array;
  return [{ name, option: null, values, put: puts[name] }];
};

export type Drift = Static<typeof drift_answer>;

/** A figure stands from its moment on: a move begins no earlier than its window. */
const showMove = (series: Series, figure: Figure, move: Move, window_ms: number): MoveWire => {
  const { at } = series;
  const { from, to, change } = move;
  const stand = (index: number, time: number) => ({
    at: new Date(time).toISOString(),
    percent: figure.values[index] as number,
    count: index + 1,
  });
  const began = Math.max(at[from] as number, (at[to] as number) - window_ms);
  return {
    option: figure.option,
    from: stand(from, began),
    to: stand(to, at[to] as number),
    change,
    predictions: to - from,
    families: [...shareMove(series, move, figure.put)],
  };
};

export const driftOf = ({ id }: { readonly id: string }, series: Series, ask: DriftAsk): Drift => {
  const { window, points, least_count } = ask;
  const window_ms = windowMs(window);
  const figures = figuresOf(series, ask.figure);
  const { at, moments } = series;
  const moves = figures.flatMap((figure) =>
    findMoves({ at, figure: figure.values, moments }, { window_ms, points, least_count }).map(
      (move) => ({ end: at[move.to] as number, move: showMove(series, figure, move, window_ms) }),
    ),
  );
  moves.sort((a, b) => a.end - b.end);
  return {
    question_id: id,
    question_type: series.shape.question_type,
    figure: figures[0]?.name ?? 'option_probabilities',
    ...{ window, points },
    offset: series.offset,
    drift_events: moves.map(({ move }) => move),
  };
};
