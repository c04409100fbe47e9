import type { Static } from '@sinclair/typebox';
import { findMoves, type Move, shareMove } from './drift.js';
import { figureNames } from './run.js';
import type { drift_answer, drift_figures, MoveWire } from './schema.js';
import type { Series } from './series.js';

/** The moves of a question as they go over the wire. */

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
