import { fanOf, isNumber, median_part, number_parts } from './numbers.js';
import { createPool, type PoolForecast } from './pool.js';
import { shown } from './reading.js';
import { leadingOf, makeValueCounts, mean, type QuestionShape, share } from './rules.js';
import type { Moment, MoveWire, Point } from './schema.js';

/**
 * The consensus as it moves, forecast by forecast. After each one its figures are those that
 * `GET /api/questions/{id}/consensus` gave at that moment: the same formulas and the same rounding,
 * with sums that are carried on, so that a step costs the same however many came before.
 */

/** `given` is in basis points · (options − 1), or what `givenByCdf` makes; empty for yes/no. */
export interface TimedForecast extends PoolForecast {
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Binary: 1 for YES, 0 for NO. Multi: number of the option. Of a number 0. */
  readonly side: number;
  /** With a number, what the agent's forecast before gave; null if this is its first. */
  readonly replaced?: readonly number[] | null;
}

/** A forecast, and the one of the same agent that it replaces. */
export interface Step {
  readonly now: TimedForecast;
  readonly before: TimedForecast | undefined;
}

export type RunShape = Omit<QuestionShape, 'id'>;

export const makeRun = (shape: RunShape) => {
  const { question_type, options } = shape;
  const is_binary = question_type === 'binary';
  const of_number = isNumber(shape);
  const pool = createPool(options.length);
  const sides = new Array<number>(is_binary ? 2 : options.length || 1).fill(0);
  const values = makeValueCounts();
  const sums = new Array<number>(of_number ? number_parts : 0).fill(0);
  const standing = new Map<string, TimedForecast>();
  let sum = 0;
  const change = ({ side, value }: TimedForecast, sign: 1 | -1): void => {
    sum += sign * value;
    sides[side] = (sides[side] as number) + sign;
    values.add(value, sign);
  };
  const addGiven = (given: readonly number[], sign: 1 | -1): void => {
    for (const n of sums.keys()) sums[n] = (sums[n] as number) + sign * (given[n] as number);
  };
  return {
    /**
     * Counts a forecast in. It is remembered until the agent's next one; with a number only its
     * median is, because 300 parts of each of 50,000 forecasts would fill 120 MB.
     */
    add({ replaced = null, ...one }: TimedForecast): Step {
      if (of_number) addGiven(one.given, 1);
      if (of_number && replaced !== null) addGiven(replaced, -1);
      const now = of_number ? { ...one, given: [one.given[median_part] as number] } : one;
      const before = standing.get(now.agent);
      if (before !== undefined) change(before, -1);
      change(now, 1);
      standing.set(now.agent, now);
      pool.put(now);
      return { now, before };
    },
    /** As the consensus has it while a fit with this ρ is in force. */
    read(rho: number): Moment {
      const count = standing.size;
      const percents = pool.read(rho) ?? options.map(() => 0);
      const pooled = is_binary && count > 0 ? shown(percents[0] as number) : null;
      const means = options.length === 0 ? [] : percents.map(shown);
      const leading = options.length === 0 ? -1 : leadingOf(percents, count);
      const fan = fanOf(shape, sums, count);
      return {
        count,
        forecast: is_binary ? pooled : (fan?.[2] ?? means[leading] ?? null),
        leading_option: options[leading] ?? null,
        yes_percent: share(sides[is_binary ? 1 : leading] ?? 0, count),
        mean_probability: is_binary ? mean(sum, count) : null,
        median_probability: is_binary ? values.quantile(0.5) : null,
        p25: is_binary ? values.quantile(0.25) : null,
        p75: is_binary ? values.quantile(0.75) : null,
        pooled,
        ...(fan === null ? {} : { fan }),
        option_probabilities: means,
        option_percents: options.length === 0 ? [] : sides.map((n) => share(n, count) ?? 0),
      };
    },
  };
};
export type Run = ReturnType<typeof makeRun>;

/**
 * How the consensus of a question came about, in as many points as a chart can show at most: of all
 * its moments those that show its shape. Forecasts of one millisecond are one moment, so that the
 * order among agents does not matter.
 */
export interface Course {
  readonly shape: RunShape;
  /** Offset of the newest forecast that is counted in; 0 where there is none. */
  readonly offset: number;
  /** Predictions, however often each was revised. */
  readonly total: number;
  readonly moments: number;
  readonly points: readonly Point[];
  readonly drift_events: readonly MoveWire[];
}
