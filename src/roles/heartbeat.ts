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

/** The side of the supervisor: calls `onSilent` once. */
export const listenToBeats = (onSilent: () => void): Listening => {
  let limit_ms = starting_ms;
  let silence_ms = 0;
  let looked_ms = performance.now();
  const look = (): void => {
    const now_ms = performance.now();
    const passed_ms = now_ms - looked_ms;
    // What passes while this process stands still itself does not count.
    if (passed_ms < 4 * look_ms) silence_ms += passed_ms;
    looked_ms = now_ms;
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
