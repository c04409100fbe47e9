import os from 'node:os';
import { performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';

/** How an export goes on, told anew while it does. */
export interface Pace {
  /** Others are there who ask for much. */
  others_ask: boolean;
}

/** With two cores an export rests as long as it works; with more it takes less from others. */
const rest_share = 1 / Math.max(1, os.availableParallelism() - 1);

/** Rests while others ask, in the measure in which this thread has worked since the last time. */
export const makeRest = (pace: Pace): (() => Promise<void>) => {
  const workedMs = (): number => performance.eventLoopUtilization().active;
  let rested_ms = workedMs();
  return async () => {
    if (pace.others_ask) await delay((workedMs() - rested_ms) * rest_share);
    rested_ms = workedMs();
  };
};
