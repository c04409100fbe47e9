import { setImmediate as nextTurn } from 'node:timers/promises';
import { makePause } from '../../kit/loop.js';
import { isNumber, placeOf } from './numbers.js';
import type { RunShape } from './run.js';
import type { FamilyShare, MoveWire, Point } from './schema.js';

/**
 * Finds the moves of the headline. In a move, it rises or falls by at least 10 percentage points
 * within a window of 24 hours. With options, each option has its own moves. Moves of the same figure
 * do not overlap. The search starts at the oldest point. It finds the first point that is far
 * enough from an extreme in the window up to that point. The move then extends to the farthest
 * point in the same window. A figure keeps its value until the next point, so a value may start
 * before the window.
 */
export const drift = { window: '24h', points: 10 } as const;

const window_ms = 24 * 3_600_000;

/** Rounds to two decimals, because a difference of rounded figures has floating-point noise. */
const round2 = (value: number): number => Math.round(value * 100) / 100;

/** A forecast's effect on the headline. */
export interface Step {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly family: string;
  readonly agent: string;
  /** The change of the headline, or of each option's; for a number in percent of the range. */
  readonly moved: readonly number[];
}

interface Figure {
  readonly option: string | null;
  readonly values: readonly number[];
}

const figuresOf = (shape: RunShape, points: readonly Point[]): Figure[] => {
  const { options } = shape;
  const read = ({ forecast }: Point): number =>
    isNumber(shape) ? round2(placeOf(shape, forecast ?? 0)) : (forecast ?? 0);
  return options.length === 0
    ? [{ option: null, values: points.map(read) }]
    : options.map((option, n) => ({
        option,
        values: points.map(({ option_forecasts }) => option_forecasts[n] ?? 0),
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

const steps_a_turn = 5_000;

/** Counts the steps up to and including a moment. The steps must be in order of time. */
const countUntil = (steps: readonly Step[], at: number): number => {
  let [low, high] = [0, steps.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((steps[middle] as Step).at <= at) low = middle + 1;
    else high = middle;
  }
  return low;
};

/** Returns each family's share in a move: the sum of the changes by its forecasts. */
const shareMove = async (between: readonly Step[], figure: number): Promise<FamilyShare[]> => {
  const pause = makePause(steps_a_turn);
  const shares = new Map<string, { predictions: number; moved: number }>();
  for (const step of between) {
    const { predictions, moved } = shares.get(step.family) ?? { predictions: 0, moved: 0 };
    const by = step.moved[figure] as number;
    shares.set(step.family, { predictions: predictions + 1, moved: moved + by });
    await pause();
  }
  return [...shares]
    .map(([model_family, { predictions, moved }]) => {
      return { model_family, predictions, contribution: round2(moved) };
    })
    .sort(byContribution);
};

const byContribution = (a: FamilyShare, b: FamilyShare): number =>
  Math.abs(b.contribution ?? 0) - Math.abs(a.contribution ?? 0) ||
  (a.model_family < b.model_family ? -1 : 1);

/**
 * Returns the moves, oldest first, from all forecasts and the history of the consensus. A new fit
 * can move the headline too, so families need not explain all of a move.
 */
export const driftOf = async (
  shape: RunShape,
  steps: readonly Step[],
  points: readonly Point[],
): Promise<readonly MoveWire[]> => {
  const times = points.map(({ at }) => at);
  const showMove = async (
    { option, values }: Figure,
    figure: number,
    [from, to]: Move,
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
    const between = steps.slice(countUntil(steps, times[from] as number), countUntil(steps, end));
    return {
      option,
      from: began,
      to: ended,
      change: round2(ended.percent - began.percent),
      predictions: between.length,
      families: await shareMove(between, figure),
    };
  };
  const shown: MoveWire[] = [];
  for (const [n, figure] of figuresOf(shape, points).entries()) {
    for (const move of findMoves(times, figure.values)) {
      shown.push(await showMove(figure, n, move));
    }
    await nextTurn();
  }
  return shown.sort((a, b) => (a.to.at < b.to.at ? -1 : a.to.at > b.to.at ? 1 : 0));
};
