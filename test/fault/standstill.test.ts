import { type Test, test } from 'tap';
import { startTime } from '../../src/boot/processes.mjs';
import { allow, type FaultWorld, survive } from '../help/fault.js';
import { startReads } from '../help/reads.js';
import type { Part } from '../help/service-processes.js';
import { until } from '../help/until.js';

const few = { before: 100, after: 100, per_second: 100 } as const;

/** Stops the parts and waits until each is replaced; says how long that took. */
const standStill = async (
  t: Test,
  { service }: FaultWorld,
  parts: readonly Part[],
): Promise<void> => {
  const pids = parts.map((part) => service.pidsOf(part)[0] as number);
  const from_ms = performance.now();
  for (const part of parts) service.pause(part);
  await until('each is killed', () => pids.every((pid) => startTime(pid) === null));
  const killed_ms = performance.now() - from_ms;
  t.ok(killed_ms > 3_500 && killed_ms < allow(7_000), `killed after ${Math.round(killed_ms)} ms`);
  await until('each is replaced', () => parts.every((part) => service.pidsOf(part).length === 1));
};

test('roles that stand still are replaced, and events flow within 10 s', async (t) => {
  await survive(t, {
    ...few,
    strike: async (world) => {
      const { service, load, listener } = world;
      const reads = startReads(service);
      const from_ms = performance.now();
      await standStill(t, world, ['relay', 'signer', 'timer']);
      const newest = load.acknowledged.at(-1)?.event_id;
      await until('events flow', () => listener.heard.some(({ id }) => id === newest), 60_000);
      const passed_ms = performance.now() - from_ms;
      t.ok(passed_ms < allow(10_000), `events flow after ${Math.round(passed_ms)} ms`);
      await reads.stop();
      t.same(reads.failed, [], `${reads.count} reads went on`);
      await standStill(t, world, ['api']);
      await load.reach(load.acknowledged.length + 50);
    },
  });
});

test('kill -9 of the relay five times, 2 s apart', async (t) => {
  await survive(t, {
    ...few,
    recovery_ms: 5_000,
    strike: async ({ service }) => {
      const from_ms = performance.now();
      for (let kill = 0; kill < 5; kill += 1) {
        await until('2 s have passed', () => performance.now() >= from_ms + kill * 2_000);
        const pid = await until('there is one', () => service.pidsOf('relay')[0]);
        process.kill(pid, 'SIGKILL');
      }
    },
  });
});
