import { readOrEmpty } from '../embedded/processes.js';

/**
 * A role process says every second that its event loop turns. One that is silent for 5 s stands
 * still (stopped, or in a loop without end): no job of it may take so long, and nobody else does
 * its work meanwhile.
 */

const beat_ms = 1_000;
const silent_ms = 5_000;
/** Until it is ready a process loads, and may do so in one piece. */
const starting_ms = 60_000;
const look_ms = 500;

/** The side of the role process. */
export const startBeating = (say: () => void): void => {
  setInterval(say, beat_ms).unref();
};

export interface Listening {
  heard(): void;
  /** It has started: from now on the short limit counts. */
  ready(): void;
  stop(): void;
}

/** How long a process has wanted a core and got none since it began; 0 where nobody counts that. */
const waitedForCore = (pid: number): number => {
  const [, waited_ns = '0'] = readOrEmpty(`/proc/${pid}/schedstat`).split(' ');
  return Number(waited_ns) / 1e6;
};

/** The side of the supervisor: calls `onSilent` once. */
export const listenToBeats = (pid: number, onSilent: () => void): Listening => {
  let limit_ms = starting_ms;
  let silence_ms = 0;
  let looked_ms = performance.now();
  let waited_ms = 0;
  const look = (): void => {
    const now_ms = performance.now();
    const now_waited_ms = waitedForCore(pid);
    const passed_ms = now_ms - looked_ms;
    // Neither counts: what passes while this process stands still itself, perhaps with the whole
    // machine, and what the other spends in the queue for a core.
    if (passed_ms < 4 * look_ms) silence_ms += Math.max(0, passed_ms - (now_waited_ms - waited_ms));
    looked_ms = now_ms;
    waited_ms = now_waited_ms;
    if (silence_ms < limit_ms) return;
    clearInterval(timer);
    onSilent();
  };
  const timer = setInterval(look, look_ms);
  timer.unref();
  return {
    heard() {
      silence_ms = 0;
    },
    ready() {
      limit_ms = silent_ms;
    },
    stop: () => clearInterval(timer),
  };
};
