import { makePause } from '../../kit/loop.js';
import { type Fit, first_fit } from './correlation.js';
import type { TimedForecast } from './run.js';

/** Finds the moments at which the consensus of a question may change. */

/** The forecasts on a question and the fits of its time. */
export interface Recorded {
  /** All forecasts, in order of time. */
  readonly all: AsyncIterable<TimedForecast> | Iterable<TimedForecast>;
  readonly fits: readonly Fit[];
  /** When the question ended, or now if it has not. Later fits do not change the figures. */
  readonly until_ms: number;
}

interface RunMoment {
  readonly at: number;
  readonly fit: Fit;
  /** True if a new fit came into force; false if forecasts were made. */
  readonly is_new_fit: boolean;
}

/** Forecasts counted in one turn of the event loop. */
const forecasts_a_turn = 100;

/**
 * Yields each moment at which the consensus may change. A moment is the time of a forecast, or of a
 * new fit. `add` must add the forecast to the run.
 */
export async function* followMoments(
  { all, fits, until_ms }: Recorded,
  add: (one: TimedForecast, fit: Fit) => void,
): AsyncGenerator<RunMoment> {
  const coming = [...fits];
  const pause = makePause(forecasts_a_turn);
  let fit = first_fit;
  let now_ms: number | null = null;
  function* takeFits(ms: number): Generator<RunMoment> {
    for (let next = coming[0]; next !== undefined && next.from_ms <= ms; next = coming[0]) {
      coming.shift();
      fit = next;
      if (now_ms !== null && fit.from_ms !== ms) yield { at: fit.from_ms, fit, is_new_fit: true };
    }
  }
  for await (const one of all) {
    if (one.at !== now_ms) {
      if (now_ms !== null) yield { at: now_ms, fit, is_new_fit: false };
      yield* takeFits(one.at);
      now_ms = one.at;
    }
    add(one, fit);
    await pause();
  }
  if (now_ms !== null) yield { at: now_ms, fit, is_new_fit: false };
  yield* takeFits(until_ms + 1);
}
