import { setTimeout as wait } from 'node:timers/promises';
import type { Deps } from '../../../kit/deps.js';
import { describeError } from '../../../kit/log.js';
import { isOutage } from '../../../kit/pg/client.js';
import { type Settlement, settle } from './store.js';

export interface Settling {
  add(settlement: Settlement): void;
  /** How many wait for Postgres. */
  waiting(): number;
  drain(): Promise<void>;
}

const most_settled = 256;
const retry_ms = 100;

/** Notes attempts: one statement is under way, and what ends meanwhile goes with the next one. */
export const createSettling = (
  { sql, log }: Deps,
  { lease_ms, onSick }: { readonly lease_ms: number; readonly onSick: () => void },
): Settling => {
  const waiting: Settlement[] = [];
  let running: Promise<void> | null = null;

  const settleAll = async (all: readonly Settlement[], until_ms: number): Promise<void> => {
    try {
      const settled = await settle(sql, all);
      if (settled.includes('sick')) onSick();
      const lost = all.filter((_, index) => settled[index] === 'lost');
      for (const { webhook_id, event_id, state } of lost) {
        log.warn({ webhook_id, event_id, state }, 'signer: the lease was over, nothing changed');
      }
    } catch (error) {
      if (isOutage(error) && performance.now() < until_ms) {
        await wait(retry_ms);
        await settleAll(all, until_ms);
      } else if (!isOutage(error) && all.length > 1) {
        for (const one of all) await settleAll([one], until_ms);
      } else {
        // The lease runs out and the deliveries are made again, with the same webhook-id.
        log.error({ count: all.length, ...describeError(error) }, 'signer: not settled');
      }
    }
  };
  const run = async (): Promise<void> => {
    while (waiting.length > 0) {
      await settleAll(waiting.splice(0, most_settled), performance.now() + lease_ms);
    }
    running = null;
  };
  return {
    add(settlement) {
      waiting.push(settlement);
      running ??= Promise.resolve().then(run);
    },
    waiting: () => waiting.length,
    drain: async () => {
      await running;
    },
  };
};
