import type { Test } from 'tap';
import { startTime } from '../../src/boot/processes.mjs';
import { type Part, putToSleep, startMoreRoles } from '../help/service.js';
import { t } from '../help/tap.js';
import { allow, until } from '../help/until.js';
import {
  activeRelay,
  type Fault,
  type FaultWorld,
  fault_limits,
  is_long,
  lastFor,
  startWorld,
  surviveAll,
  untilDelivered,
  untilHeard,
  whileReading,
} from './world.js';

/** Processes that are paused under load: they stay alive but do not answer. */

t.setTimeout(fault_limits.timeout);

/** The longest time from the recording of an event to its delivery, for events after `since`. */
const longestDelivery = async ({ service }: FaultWorld, since = new Date(0)): Promise<number> => {
  const [row] = await service.sql<{ ms: number }[]>`
    select extract(epoch from max(d.delivered_at - e.recorded_at))::float8 * 1000 as ms
    from deliveries d
    join events e on e.id = d.event_id
    where e.recorded_at > ${since}`;
  return Math.round(row?.ms ?? 0);
};

/** Checks that new events reach the listeners and the webhook within `max_ms`. */
const flowWithin = async (
  t: Test,
  world: FaultWorld,
  max_ms: number,
  sleep: () => () => void,
): Promise<void> => {
  const wake = sleep();
  const from_ms = performance.now();
  const passed = (): number => Math.round(performance.now() - from_ms);
  try {
    await world.load.more(20);
    await untilHeard(world, 60_000);
    const heard_ms = passed();
    await untilDelivered(world);
    const longest_ms = await longestDelivery(world, new Date(Date.now() - passed()));
    t.comment(`events after ${heard_ms} ms, webhooks after ${passed()}, longest ${longest_ms} ms`);
    t.ok(heard_ms < allow(max_ms), 'events flow in time');
    t.ok(passed() < allow(max_ms), 'webhooks flow in time');
  } finally {
    wake();
  }
};

/** The log stops until the lease expires. Then the standby hands over all waiting events. */
const relaySleeps: Fault['strike'] = async (world, t) => {
  const { pid } = await activeRelay(world.service);
  await flowWithin(t, world, 10_000, () => putToSleep(pid));
};

/** The supervisor kills the paused signer. The next signer takes over its leases. */
const signerSleeps: Fault['strike'] = (world, t) =>
  flowWithin(t, world, 10_000, () => world.service.pause('signer'));

/**
 * Pauses one of several signers, and in the long form each in turn. Everything continues although
 * the paused signer holds leases, and its actions after it wakes up have no effect. After six
 * seconds of silence, another signer claims its deliveries.
 */
const signersSleep: Fault['strike'] = async (world, t) => {
  const { service, load } = world;
  const second = await startMoreRoles(t, service, ['signer']);
  const began = new Date();
  const pids = [...service.pidsOf('signer'), ...second.pidsOf('signer')];
  t.equal(pids.length, service.hosts.length + 1);
  for (const pid of is_long ? pids : pids.slice(0, 1)) {
    const from_ms = performance.now();
    const wake = putToSleep(pid);
    try {
      await load.more(50);
      await untilDelivered(world);
      // Longer than a lease.
      await lastFor(from_ms, 45_000);
    } finally {
      wake();
    }
  }
  const longest_ms = await longestDelivery(world, began);
  t.ok(longest_ms < allow(25_000), 'no delivery waits for the sleeper to wake up');
  t.comment(`longest time to a delivery: ${longest_ms} ms`);
};

/** Pauses the parts and waits until each process is replaced. */
const standStill = async (
  t: Test,
  { service }: FaultWorld,
  parts: readonly Part[],
): Promise<void> => {
  const pids = parts.flatMap((part) => service.pidsOf(part));
  const from_ms = performance.now();
  for (const part of parts) service.pause(part);
  await until('each is killed', () => pids.every((pid) => startTime(pid) === null));
  const killed_ms = performance.now() - from_ms;
  t.ok(killed_ms > 3_500 && killed_ms < allow(7_000), `killed after ${Math.round(killed_ms)} ms`);
  const areReplaced = () => parts.flatMap((part) => service.pidsOf(part)).length === pids.length;
  await until('each is replaced', areReplaced, 30_000, 100);
};

const rolesStandStill: Fault['strike'] = async (world, t) => {
  await whileReading(t, world.service, async () => {
    const from_ms = performance.now();
    await standStill(t, world, ['relay', 'signer', 'timer']);
    await untilHeard(world, 60_000);
    const passed_ms = performance.now() - from_ms;
    t.ok(passed_ms < allow(10_000), `events flow after ${Math.round(passed_ms)} ms`);
  });
  await standStill(t, world, ['api']);
  await world.load.more(50);
};

const faults: Readonly<Record<string, Fault>> = {
  'roles that stand still are replaced, and events flow within 10 s': { strike: rolesStandStill },
  'a relay sleeps through its lease, while its standby takes over': { strike: relaySleeps },
  'the only signer stands still, and is replaced': { per_second: 50, strike: signerSleeps },
  'two signers, one of which sleeps while the other takes over': {
    per_second: 50,
    strike: signersSleep,
  },
};

t.test('processes stand still under load', fault_limits, async (t) => {
  await surviveAll(t, await startWorld(t, { env: { LOG_LEVEL: 'info' } }), faults);
});
