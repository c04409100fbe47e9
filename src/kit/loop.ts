import { setImmediate as nextTurn, setTimeout as wait } from 'node:timers/promises';
import type { Logger } from 'pino';
import { describeError } from './log.js';
import { isOutage } from './outage.js';
import type { Service } from './service.js';

/**
 * A job that is done again and again: one turn at a time, a rest between turns that a nudge cuts
 * short, and a turn that throws is logged and tried again later. `again` skips the rest.
 */

/**
 * For work that has no end of its own: `await pause(n)` after each `n` units of it lets the event loop
 * turn whenever `most` of them were done, so that no other request waits for the rest.
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
  /** Rest after a turn that threw. */
  readonly after_error_ms?: number;
}

export interface Loop extends Service {
  /** Makes the next turn start now, or right after the one under way. */
  nudge(): void;
}

export const makeLoop = (options: LoopOptions): Loop => {
  const { name, log, every_ms, turn, after_error_ms = 500 } = options;
  const stopping = new AbortController();
  /** Aborted by whatever cuts the next rest short; a new one for each turn. */
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
