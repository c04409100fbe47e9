import type { Test } from 'tap';
import { type FaultWorld, survive } from './fault.js';
import { startMoreRoles } from './service.js';
import { putToSleep } from './service-processes.js';
import { until } from './until.js';

/**
 * Faults that webhooks must survive under load: short in the tests, and for as long as they are
 * named after in `npm run faults`.
 */

export interface Lasting {
  /** How long it lasts at least; no longer than it takes when absent. */
  readonly least_ms?: number;
}

/** Waits until everything that is acknowledged by now has reached the receiver. */
const untilDelivered = async ({ load, receiver, hook }: FaultWorld): Promise<void> => {
  const missing = new Set(load.acknowledged.map(({ event_id }) => event_id));
  let looked = 0;
  await until(
    'what was acknowledged is delivered',
    () => {
      const calls = receiver.of(hook.path);
      for (; looked < calls.length; looked += 1) {
        missing.delete(String(calls[looked]?.headers['webhook-id']));
      }
      return missing.size === 0;
    },
    60_000,
  );
};

export const lastFor = async (started_ms: number, { least_ms = 0 }: Lasting): Promise<void> => {
  await until('its time', () => performance.now() - started_ms >= least_ms, least_ms + 10_000);
};

/**
 * Two signers, of which one stands still, and then the other: each time everything goes on without
 * it, although it holds leases, and what it does after it wakes up changes nothing.
 */
export const surviveSleepingSigners = async (t: Test, lasting: Lasting = {}): Promise<void> => {
  await survive(t, {
    per_second: 50,
    before: 100,
    after: 100,
    // Enough pairs for as long as it takes.
    service: { agents: 500, questions: 40 },
    strike: async (world) => {
      const { service, load } = world;
      const second = await startMoreRoles(t, service, ['signer']);
      const pids = [...service.pidsOf('signer'), ...second.pidsOf('signer')];
      t.equal(pids.length, 2);
      for (const pid of pids) {
        const started_ms = performance.now();
        const wake = putToSleep(pid);
        try {
          await load.reach(load.acknowledged.length + 50);
          await untilDelivered(world);
          await lastFor(started_ms, lasting);
        } finally {
          wake();
        }
      }
    },
  });
};

/** Redis stands still, and webhooks go on at the sweeper's pace. */
export const surviveWithoutRedis = async (t: Test, lasting: Lasting = {}): Promise<void> => {
  await survive(t, {
    per_second: 100,
    before: 200,
    after: 200,
    service: { agents: 500, questions: 40 },
    strike: async (world) => {
      const { service, load } = world;
      const started_ms = performance.now();
      const wake = service.pause('Redis');
      try {
        await load.reach(load.acknowledged.length + 100, 60_000);
        await untilDelivered(world);
        await lastFor(started_ms, lasting);
      } finally {
        wake();
      }
    },
  });
};
