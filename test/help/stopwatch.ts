const tick_ms = 10;
const tries_ms = 3_000;
/** A gap between two ticks counts as at most this long. A longer gap is a stall of the machine. */
const counted_ms = 30;

/**
 * Milliseconds since the start in which this process could run, for upper bounds on a duration.
 * Time spent waiting counts. Time in which the machine is busy with other work does not.
 */
export const startStopwatch = (): (() => number) => {
  let counted = 0;
  let last_ms = performance.now();
  const count = (): void => {
    const now_ms = performance.now();
    counted += Math.min(counted_ms, now_ms - last_ms);
    last_ms = now_ms;
  };
  const timer = setInterval(count, tick_ms);
  timer.unref();
  return () => {
    count();
    clearInterval(timer);
    return counted;
  };
};

/**
 * Milliseconds of the fastest try. Stops after a try that is fast enough, or after a few seconds.
 * Slow work is slow on every try, but a machine is not always busy.
 */
export const timeAtBest = (work: () => unknown, enough_ms: number): number => {
  const until_ms = performance.now() + tries_ms;
  let best = Number.POSITIVE_INFINITY;
  do {
    const started_ms = performance.now();
    work();
    best = Math.min(best, performance.now() - started_ms);
  } while (best > enough_ms && performance.now() < until_ms);
  return best;
};
