import { makeValueCounts } from './mixture.js';
import { headlineFan, isNumber, median_part, number_parts, numberCandidates } from './numbers.js';
import { createPool, type Pooled, type PoolFit, type PoolForecast } from './pool.js';
import { shown } from './reading.js';
import { leadingOf, mean, type QuestionShape, share } from './rules.js';
import type { Moment, Mover, MoverRange, MoveWire, Point } from './schema.js';

/**
 * Follows the consensus forecast by forecast. After each forecast, the figures equal the response
 * of `GET /api/questions/{id}/consensus` at that moment, with the same formulas and rounding. The
 * sums are updated in place, so the cost of a step does not grow with the number of forecasts.
 */

/** `given` is in basis points · (options − 1), or the result of `givenByCdf`; empty for yes/no. */
export interface TimedForecast extends PoolForecast {
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Binary: 1 for YES, 0 for NO. Multi: index of the option. Number or date: 0. */
  readonly side: number;
  /** Number or date: `given` of the agent's previous forecast; null if this is its first. */
  readonly replaced?: readonly number[] | null;
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
     * Adds a forecast, which stays in memory until the agent's next one. For a number, only the
     * median stays, because 300 parts of each of 50,000 forecasts would fill 120 MB.
     */
    add({ replaced = null, ...one }: TimedForecast): void {
      if (of_number) addGiven(one.given, 1);
      if (of_number && replaced !== null) addGiven(replaced, -1);
      const now = of_number ? { ...one, given: [one.given[median_part] as number] } : one;
      const before = standing.get(now.agent);
      if (before !== undefined) change(before, -1);
      change(now, 1);
      standing.set(now.agent, now);
      pool.put(now);
    },
    /** Returns the figures of the consensus while this fit is in force. */
    read(fit: PoolFit): Moment {
      const count = standing.size;
      const found = of_number ? null : pool.read(fit);
      const pooled = is_binary && found !== null ? shown(found.candidates[2]![0] as number) : null;
      const chances = options.length === 0 ? [] : (found?.headline ?? options.map(() => 0));
      const leading = options.length === 0 ? -1 : leadingOf(chances, count);
      const fan = headlineFan(shape, { sums, count, weights: fit.weights });
      const headline = found?.headline[Math.max(0, leading)];
      return {
        count,
        forecast: fan?.[2] ?? (headline === undefined ? null : shown(headline)),
        leading_option: options[leading] ?? null,
        yes_percent: share(sides[is_binary ? 1 : leading] ?? 0, count),
        mean_probability: is_binary ? mean(sum, count) : null,
        median_probability: is_binary ? values.quantile(0.5) : null,
        p25: is_binary ? values.quantile(0.25) : null,
        p75: is_binary ? values.quantile(0.75) : null,
        pooled,
        ...(fan === null ? {} : { fan }),
        option_forecasts: chances.map(shown),
        option_probabilities: options.length === 0 ? [] : (found?.means ?? chances).map(shown),
        option_percents: options.length === 0 ? [] : sides.map((n) => share(n, count) ?? 0),
      };
    },
    /** Returns unrounded figures: curves for a number, chances otherwise. Needs a forecast. */
    readCandidates: (fit: PoolFit) =>
      of_number
        ? { curves: numberCandidates(sums, standing.size), chances: undefined }
        : { curves: undefined, chances: pool.read(fit) as Pooled },
  };
};
export type Run = ReturnType<typeof makeRun>;

/**
 * The history of a question's consensus. If a chart cannot show all moments, `points` has only the
 * points that best show the shape. Forecasts in the same millisecond are one moment, so that the
 * order among agents does not matter.
 */
export interface Course {
  readonly shape: RunShape;
  /** Offset of the newest counted forecast; 0 without forecasts. */
  readonly offset: number;
  /** Number of predictions. Revisions do not add to it. */
  readonly total: number;
  readonly moments: number;
  /** Time of the last forecast or revision. A later point belongs to a new fit. Null without any. */
  readonly last_forecast_ms: number | null;
  readonly points: readonly Point[];
  readonly drift_events: readonly MoveWire[];
  /** Forecasts that moved the headline. With options, the headline of the last leading option. */
  readonly movers: Readonly<Record<MoverRange, readonly Mover[]>>;
}
