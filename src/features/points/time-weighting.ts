import { type Distribution, netOverTime } from './rules.js';
import { type ForecastScore, isCorrect, scoreForecast } from './score-rules.js';

/**
 * Scores of an agent that revised its forecast: each forecast counts for the time for which it
 * stood, B = Σ Bⱼ·(tⱼ₊₁ − tⱼ)/(E − t₁), where t₁ is the time of the first one and E the close, or
 * the moment when the outcome became public, if that came before. Times in which the question was
 * closed and then reopened do not count. Pure; a time is in milliseconds since 1970, and a time
 * `open_ms` is one without those before it in which the question was closed.
 *
 * Source: Metaculus, "Scores FAQ" (time-averaged scores), without its coverage: time counts from
 * the first forecast of the agent on, so that it is no fault to come late.
 */

export interface ScoringTime {
  readonly ends_ms: number;
  /** At the end the outcome became public, so that a forecast of that very moment may know it. */
  readonly is_known: boolean;
  /** From and to, in order. */
  readonly closed: readonly (readonly [number, number])[];
}

export interface QuestionTimes {
  readonly closes_at: Date;
  readonly closed_at: Date | null;
  readonly known_at: Date | null;
  readonly closed_times: readonly (readonly [number, number])[];
}

/** The timer closes a little after `closes_at`, and an import long after. */
export const scoringTime = (times: QuestionTimes): ScoringTime => {
  const { closes_at, closed_at, known_at, closed_times: closed } = times;
  const close_ms = Math.min(closes_at.getTime(), closed_at?.getTime() ?? Number.POSITIVE_INFINITY);
  const known_ms = known_at?.getTime() ?? Number.POSITIVE_INFINITY;
  return { ends_ms: Math.min(close_ms, known_ms), is_known: known_ms <= close_ms, closed };
};

export const openTime = ({ closed }: ScoringTime, at_ms: number): number =>
  closed.reduce((open_ms, [from, to]) => open_ms - Math.max(0, Math.min(at_ms, to) - from), at_ms);

/** Whether a forecast of this time is scored: one that was taken in the instant of the close is. */
export const isScored = ({ ends_ms, is_known }: ScoringTime, at_ms: number): boolean =>
  at_ms < ends_ms || (at_ms === ends_ms && !is_known);

/** A forecast with the time at which it was made. */
export interface TimedForecast {
  readonly distribution: Distribution;
  /** Index of the option taken. */
  readonly selected: number;
  readonly at_ms: number;
}

/** A forecast and the time for which it stood. */
export type Span<F extends Pick<TimedForecast, 'at_ms'> = TimedForecast> = F & {
  readonly to_ms: number;
  readonly open_ms: number;
  readonly stood_ms: number;
  /** What it counts for: `stood_ms`; where all stood for no time, 1 for the last. */
  readonly weight_ms: number;
};

/** Forecasts of one agent in their order; those that are not scored are left out. */
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

/** Of the values by span; those that are null count for no time. Null without any. */
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
    // One value is its own mean to the last bit.
    only = total_ms === 0 ? value : null;
    sum += value * weight_ms;
    total_ms += weight_ms;
  }
  return total_ms === 0 ? null : (only ?? sum / total_ms);
};

interface Decided {
  /** Indices of the correct options, each once; at least one. */
  readonly correct: readonly number[];
  readonly weight: number;
}

export interface TimedScore extends ForecastScore {
  readonly net: number;
  /** By span. */
  readonly parts: readonly ForecastScore[];
}

/** Scores of at least one span. What was stated last says which side was taken (`hit`). */
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
