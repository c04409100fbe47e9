import { type Distribution, netOverTime } from './rules.js';
import { type ForecastScore, isCorrect, scoreForecast } from './score-rules.js';

/**
 * Scores of an agent that revised its forecast. Each forecast counts until the next one:
 * B = Σ Bⱼ·(tⱼ₊₁ − tⱼ)/(E − t₁). t₁ is the time of the first forecast. E is the close, or the
 * moment when the outcome became public if that was earlier. Periods in which the question was
 * closed and later reopened do not count. Pure functions. A time is in milliseconds since 1970. A
 * time called `open_ms` does not include the closed periods before it.
 *
 * Source: Metaculus, "Scores FAQ" (time-averaged scores), without its coverage: time counts from
 * the agent's first forecast on, so that joining late is not penalized.
 */

export interface ScoringTime {
  readonly ends_ms: number;
  /** True if the outcome became public at the end, so a forecast at that moment may know it. */
  readonly is_known: boolean;
  /** Closed periods as [from, to], in order. */
  readonly closed: readonly (readonly [number, number])[];
}

export interface QuestionTimes {
  readonly closes_at: Date;
  readonly closed_at: Date | null;
  readonly known_at: Date | null;
  readonly closed_times: readonly (readonly [number, number])[];
}

/** The timer closes a question a little after `closes_at`; an import can close it long after. */
export const scoringTime = (times: QuestionTimes): ScoringTime => {
  const { closes_at, closed_at, known_at, closed_times: closed } = times;
  const close_ms = Math.min(closes_at.getTime(), closed_at?.getTime() ?? Number.POSITIVE_INFINITY);
  const known_ms = known_at?.getTime() ?? Number.POSITIVE_INFINITY;
  return { ends_ms: Math.min(close_ms, known_ms), is_known: known_ms <= close_ms, closed };
};

export const openTime = ({ closed }: ScoringTime, at_ms: number): number =>
  closed.reduce((open_ms, [from, to]) => open_ms - Math.max(0, Math.min(at_ms, to) - from), at_ms);

/** True if a forecast at this time is scored: also at the end, unless the outcome was public. */
export const isScored = ({ ends_ms, is_known }: ScoringTime, at_ms: number): boolean =>
  at_ms < ends_ms || (at_ms === ends_ms && !is_known);

/** A forecast with the time when it was made. */
export interface TimedForecast {
  readonly distribution: Distribution;
  /** Index of the selected option. */
  readonly selected: number;
  readonly at_ms: number;
}

/** A forecast with the period in which it was the agent's latest. */
export type Span<F extends Pick<TimedForecast, 'at_ms'> = TimedForecast> = F & {
  readonly to_ms: number;
  readonly open_ms: number;
  readonly stood_ms: number;
  /** Its weight: `stood_ms`. If all spans have a length of 0, the last one has the weight 1. */
  readonly weight_ms: number;
};

/** Returns the spans of one agent's forecasts, in order. Skips forecasts that are not scored. */
export const spansOf = <F extends Pick<TimedForecast, 'at_ms'>>(
  forecasts: readonly F[],
  time: ScoringTime,
): readonly Span<F>[] => {
  const scored = forecasts.filter(({ at_ms }) => isScored(time, at_ms));
  const spans = scored.map((forecast, n) => {
    const to_ms = scored[n + 1]?.at_ms ?? time.ends_ms;
    const open_ms = openTime(time, forecast.at_ms);
    const stood_ms = openTime(time, to_ms) - open_ms;
    return { ...forecast, to_ms, open_ms, stood_ms, weight_ms: stood_ms };
  });
  if (spans.some(({ stood_ms }) => stood_ms > 0)) return spans;
  return spans.map((one, n) => ({ ...one, weight_ms: n === spans.length - 1 ? 1 : 0 }));
};

/** Returns the weighted mean of one value per span. Skips nulls. Null if no value counts. */
export const meanOverTime = (
  spans: readonly Pick<Span, 'weight_ms'>[],
  values: readonly (number | null)[],
): number | null => {
  let sum = 0;
  let total_ms = 0;
  let only: number | null = null;
  for (const [n, { weight_ms }] of spans.entries()) {
    const value = values[n] ?? null;
    if (value === null || weight_ms === 0) continue;
    // A single value is returned exactly, without a rounding error.
    only = total_ms === 0 ? value : null;
    sum += value * weight_ms;
    total_ms += weight_ms;
  }
  return total_ms === 0 ? null : (only ?? sum / total_ms);
};

interface Decided {
  /** Distinct indices of the correct options, at least one. */
  readonly correct: readonly number[];
  readonly weight: number;
}

export interface TimedScore extends ForecastScore {
  readonly net: number;
  /** Scores per span. */
  readonly parts: readonly ForecastScore[];
}

/** Scores one or more spans. The last forecast decides which side was selected (`hit`). */
export const scoreOverTime = (spans: readonly Span[], { correct, weight }: Decided): TimedScore => {
  const parts = spans.map((span) => scoreForecast({ ...span, correct }));
  const mean = (name: 'forecast' | 'brier' | 'log_score' | 'baseline'): number =>
    meanOverTime(
      spans,
      parts.map((part) => part[name]),
    )!;
  const forecast = mean('forecast');
  return {
    forecast,
    brier: mean('brier'),
    log_score: mean('log_score'),
    baseline: mean('baseline'),
    correct: isCorrect(forecast, spans[0]!.distribution.units.length),
    hit: parts.at(-1)!.hit,
    net: netOverTime({ weight, correct, stood: spans }),
    parts,
  };
};
