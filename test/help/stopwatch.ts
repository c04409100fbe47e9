const tick_ms = 10;
const tries_ms = 3_000;
/** A gap between two ticks counts for no more than this; the rest is a machine that stands. */
const counted_ms = 30;

/**
 * Milliseconds since the start in which this process could run. For upper bounds on what takes
 * time: a machine that is busy elsewhere stops the watch, and a wait for something does not.
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
 * Least milliseconds of the tries of a few seconds, until one is quick enough. What is slow by itself
 * is slow each time, and a machine that is busy elsewhere is not busy for so long.
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
