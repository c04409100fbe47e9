import type { Test } from 'tap';
import { startMoreRoles } from './service.js';
import { putToSleep } from './service-processes.js';
import { compareBooks, makeWorld, untilDone, untilUnderWay } from './settling-world.js';
import { until } from './until.js';

/**
 * Resolving while the timers that settle are killed and paused: everybody is paid exactly once, and
 * the books agree to the last point. Each kill costs what is left of a lease: few in the tests, and
 * many in `npm run faults`.
 */

/** Kills that often at most while it settles, and then while that is reversed. */
export const surviveKilledTimers = async (
  t: Test,
  most: { readonly settling: number; readonly reversing: number },
): Promise<void> => {
  const world = await makeWorld(t);
  const strike = async (times: number): Promise<number> => {
    let kills = 0;
    while (kills < times && (await untilUnderWay(world))) {
      await world.kill('timer').back;
      kills += 1;
    }
    await untilDone(world);
    return kills;
  };
  await world.resolve(true);
  t.ok((await strike(most.settling)) >= most.settling - 1, 'it was killed under way');
  await compareBooks(t, world, [true]);
  await world.resolve(false);
  t.ok((await strike(most.reversing)) >= most.reversing - 1, 'and again during the reversal');
  await compareBooks(t, world, [true, false]);
  t.same(
    world.troubles().filter(({ level }) => level >= 60),
    [],
    'no process died of an error',
  );
};

/** Two timers, of which one and then the other sleeps through its lease and wakes up again. */
export const surviveSleepingTimers = async (t: Test, most_pauses: number): Promise<void> => {
  const world = await makeWorld(t);
  const second = await startMoreRoles(t, world, ['timer']);
  const timers = [...world.pidsOf('timer'), ...second.pidsOf('timer')];
  t.equal(timers.length, 2);
  await world.resolve(true);
  let pauses = 0;
  while (pauses < most_pauses && (await untilUnderWay(world))) {
    const pid = timers[pauses % 2] as number;
    const wake = putToSleep(pid);
    const before = await world.done();
    // Asleep inside a transaction it holds its rows for 5 s, which is longer than a lease: whoever
    // sleeps has lost it when it wakes up.
    await until('the other goes on', async () => (await world.done()) > before).finally(wake);
    pauses += 1;
  }
  t.ok(pauses >= 2, `${pauses} pauses under way`);
  await untilDone(world);
  await compareBooks(t, world, [true]);
};
