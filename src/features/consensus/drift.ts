import { setImmediate as nextTurn } from 'node:timers/promises';
import { makePause } from '../../kit/loop.js';
import { isNumber, placeOf, units } from './numbers.js';
import type { RunShape, Step, TimedForecast } from './run.js';
import type { FamilyShare, MoveWire, Point } from './schema.js';

/**
 * Finds the moves of the consensus. In a move, one figure rises or falls by at least 10 percentage
 * points within a window of 24 hours. Moves of the same figure do not overlap. The search starts at
 * the oldest point. It finds the first point that is far enough from an extreme in the window up to
 * that point. The move then extends to the farthest point in the same window. A figure keeps its
 * value until the next point, so a value may start before the window.
 */
export const drift = { window: '24h', points: 10 } as const;

const window_ms = 24 * 3_600_000;

/** Rounds to two decimals, because a difference of rounded figures has floating-point noise. */
const round2 = (value: number): number => Math.round(value * 100) / 100;

interface Figure {
  readonly option: string | null;
  readonly values: readonly number[];
  /** Returns the value of one forecast, in percent. The figure is the mean of these values. */
  readonly put: (one: TimedForecast) => number;
}

/** Returns the mean of the forecasts' medians, in percent of the range. */
const figureOfNumber = (shape: RunShape, points: readonly Point[]): Figure => ({
  option: null,
  values: points.map(({ forecast }) => round2(placeOf(shape, forecast ?? 0))),
  put: ({ given: [median] }) => (100 * (median as number)) / units,
});

const figuresOf = (shape: RunShape, points: readonly Point[]): Figure[] => {
  if (isNumber(shape)) return [figureOfNumber(shape, points)];
  const { question_type, options } = shape;
  return question_type === 'binary'
    ? [
        {
          option: null,
          values: points.map(({ mean_probability }) => mean_probability ?? 0),
          put: ({ value }) => value / 100,
        },
      ]
    : options.map((option, n) => ({
        option,
        values: points.map(({ option_probabilities }) => option_probabilities[n] ?? 0),
        put: ({ given }) => (given[n] as number) / (options.length - 1) / 100,
      }));
};

type Move = readonly [from: number, to: number];

const findMoves = (at: readonly number[], values: readonly number[]): readonly Move[] => {
  const moves: Move[] = [];
  const change = (from: number, to: number): number =>
    (values[to] as number) - (values[from] as number);
  let start = 0;
  for (let index = 1; index < at.length; index += 1) {
    const since = (at[index] as number) - window_ms;
    let from = index;
    for (let n = index - 1; n >= start && (at[n + 1] as number) > since; n -= 1) {
      if (Math.abs(change(n, index)) > Math.abs(change(from, index))) from = n;
    }
    if (Math.abs(round2(change(from, index))) < drift.points) continue;
    const is_up = change(from, index) > 0;
    const end = (at[from + 1] as number) + window_ms;
    let to = index;
    for (let n = index + 1; n < at.length && (at[n] as number) <= end; n += 1) {
      if (is_up ? change(to, n) > 0 : change(to, n) < 0) to = n;
    }
    moves.push([from, to]);
    start = to;
    index = to;
  }
  return moves;
};

const moveBy =
  (put: Figure['put']) =>
  (step: Step, mean: number): number =>
    put(step.now) - (step.before === undefined ? mean : put(step.before));

/** Sums over all steps before a given step. */
interface Sums {
  readonly sum: number;
  /** Number of steps that do not replace a forecast. */
  readonly firsts: number;
}

const steps_a_turn = 5_000;

/** Returns the sums before each step in `ends`, which are step numbers in ascending order. */
const sumUpTo = async (
  steps: readonly Step[],
  ends: readonly number[],
  put: Figure['put'],
): Promise<ReadonlyMap<number, Sums>> => {
  const pause = makePause(steps_a_turn);
  const moveOf = moveBy(put);
  const found = new Map<number, Sums>();
  let [sum, firsts, n] = [0, 0, 0];
  for (const end of ends) {
    for (; n < end; n += 1) {
      const step = steps[n] as Step;
      sum += moveOf(step, 0);
      if (step.before === undefined) firsts += 1;
      await pause();
    }
    found.set(end, { sum, firsts });
  }
  return found;
};

/** Counts the steps up to and including a moment. The steps must be in order of time. */
const countUntil = (steps: readonly Step[], at: number): number => {
  let [low, high] = [0, steps.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((steps[middle] as Step).now.at <= at) low = middle + 1;
    else high = middle;
  }
  return low;
};

/**
 * Returns each family's share in a move. A figure is a mean over predictions. Let `m` be the exact
 * mean before the move and `N` the number of predictions after it. Each forecast in between
 * replaces a value w with v; w is m for an agent's first forecast. So the figure changes by exactly
 * Σ (v − w) / N. A family contributes the terms of its own forecasts.
 */
const shareMove = async (
  before: Sums,
  between: readonly Step[],
  put: Figure['put'],
): Promise<FamilyShare[]> => {
  const pause = makePause(steps_a_turn);
  const moveOf = moveBy(put);
  const mean = before.sum / before.firsts;
  const shares = new Map<string, { predictions: number; moved: number }>();
  let count = before.firsts;
  for (const step of between) {
    const { family } = step.now;
    const { predictions, moved } = shares.get(family) ?? { predictions: 0, moved: 0 };
    shares.set(family, { predictions: predictions + 1, moved: moved + moveOf(step, mean) });
    if (step.before === undefined) count += 1;
    await pause();
  }
  return [...shares]
    .map(([model_family, { predictions, moved }]) => {
      return { model_family, predictions, contribution: round2(moved / count) };
    })
    .sort(byContribution);
};

const byContribution = (a: FamilyShare, b: FamilyShare): number =>
  Math.abs(b.contribution ?? 0) - Math.abs(a.contribution ?? 0) ||
  (a.model_family < b.model_family ? -1 : 1);

/** Returns the moves, oldest first, from all forecasts and the history of the consensus. */
export const driftOf = async (
  shape: RunShape,
  steps: readonly Step[],
  points: readonly Point[],
): Promise<readonly MoveWire[]> => {
  const times = points.map(({ at }) => at);
  const showMove = async (
    { option, values, put }: Figure,
    [from, to]: Move,
    sums: ReadonlyMap<number, Sums>,
  ): Promise<MoveWire> => {
    const end = times[to] as number;
    const endOf = (index: number, time: number) => ({
      at: new Date(time).toISOString(),
      percent: values[index] as number,
      count: (points[index] as Point).count,
    });
    // A figure keeps its value until the next point, so a move cannot start before its window.
    const began = endOf(from, Math.max(times[from] as number, end - window_ms));
    const ended = endOf(to, end);
    const first = countUntil(steps, times[from] as number);
    const between = steps.slice(first, countUntil(steps, end));
    return {
      option,
      from: began,
      to: ended,
      change: round2(ended.percent - began.percent),
      predictions: between.length,
      families: await shareMove(sums.get(first) as Sums, between, put),
    };
  };
  const shown: MoveWire[] = [];
  for (const figure of figuresOf(shape, points)) {
    const moves = findMoves(times, figure.values);
    const ends = moves.map(([from]) => countUntil(steps, times[from] as number));
    const sums = await sumUpTo(steps, ends, figure.put);
    for (const move of moves) shown.push(await showMove(figure, move, sums));
    await nextTurn();
  }
  return shown.sort((a, b) => (a.to.at < b.to.at ? -1 : a.to.at > b.to.at ? 1 : 0));
};
