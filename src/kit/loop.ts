import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises';
import type { Logger } from 'pino';
import { describeError } from './log.js';
import { isOutage } from './outage.js';
import type { Service } from './service.js';

/**
 * A job that repeats: one turn at a time, with a rest between turns. A nudge ends the rest early.
 * If a turn throws, the error is logged and the turn is retried later. `again` skips the rest.
 */

/**
 * For long work: after each `n` units, call `await pause(n)`. Whenever `most` units are done, it
 * lets the event loop turn, so that other requests need not wait for all of the work.
 */
export const makePause = (most: number): ((units?: number) => Promise<void> | undefined) => {
  let done = 0;
  return (units = 1) => {
    done += units;
    if (done < most) return undefined;
    done = 0;
    return nextTurn();
  };
};

export interface LoopOptions {
  readonly name: string;
  readonly log: Logger;
  readonly every_ms: number;
  readonly turn: () => Promise<'again' | 'rest'>;
  /** How long the loop rests after a turn that threw. */
  readonly after_error_ms?: number;
}

export interface Loop extends Service {
  /** Starts the next turn now, or right after the current one. */
  nudge(): void;
}

export const makeLoop = (options: LoopOptions): Loop => {
  const { name, log, every_ms, turn, after_error_ms = 500 } = options;
  const stopping = new AbortController();
  /** Aborting it ends the next rest early. Each turn gets a new one. */
  let waking = new AbortController();
  let running: Promise<void> = Promise.resolve();

  const rest = (ms: number, { signal }: AbortController): Promise<void> =>
    wait(ms, undefined, { signal }).catch(() => undefined);

  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      waking = new AbortController();
      try {
        if ((await turn()) === 'rest' && !stopping.signal.aborted) await rest(every_ms, waking);
      } catch (error) {
        const level = isOutage(error) ? 'warn' : 'error';
        log[level]({ loop: name, ...describeError(error) }, 'loop: a turn failed');
        await rest(after_error_ms, stopping);
      }
    }
  };

  return {
    name,
    async start() {
      running = run();
    },
    nudge: () => waking.abort(),
    async stop() {
      stopping.abort();
      waking.abort();
      await running;
    },
  };
};
