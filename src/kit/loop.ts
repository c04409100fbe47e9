import type { Logger } from 'pino';
import { describeError } from './log.js';
import { isOutage } from './pg/client.js';
import type { Service } from './service.js';

/**
 * A job that is done again and again: one turn at a time, a rest between turns that a nudge cuts
 * short, and a turn that throws is logged and tried again later. `again` skips the rest.
 */

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
  let stopping = false;
  let nudged = false;
  let wake: (() => void) | undefined;
  let running: Promise<void> = Promise.resolve();

  const rest = async (ms: number, deaf = false): Promise<void> => {
    if (stopping || (nudged && !deaf)) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      wake = () => {
        if (deaf && !stopping) return;
        clearTimeout(timer);
        resolve();
      };
    });
    wake = undefined;
  };

  const run = async (): Promise<void> => {
    while (!stopping) {
      nudged = false;
      try {
        if ((await turn()) === 'rest') await rest(every_ms);
      } catch (error) {
        const level = isOutage(error) ? 'warn' : 'error';
        log[level]({ loop: name, ...describeError(error) }, 'loop: a turn failed');
        await rest(after_error_ms, true);
      }
    }
  };

  return {
    name,
    async start() {
      running = run();
    },
    nudge() {
      nudged = true;
      wake?.();
    },
    async stop() {
      stopping = true;
      wake?.();
      await running;
    },
  };
};
