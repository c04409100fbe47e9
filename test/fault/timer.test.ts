import { test } from 'tap';
import { startMoreRoles } from '../help/service.js';
import { compareBooks, makeWorld, untilDone, untilUnderWay } from '../help/settling-world.js';
import { until } from '../help/until.js';

/**
 * Resolving while the timers that settle are killed and paused again and again: everybody is paid
 * exactly once, and the books agree to the last point.
 */

/** Each kill costs what is left of a lease. */
const timeout = 150_000;

test('kill -9 of the timer again and again while it settles', { timeout }, async (t) => {
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
  t.ok((await strike(4)) >= 3, 'it was killed under way');
  await compareBooks(t, world, [true]);
  await world.resolve(false);
  t.ok((await strike(3)) >= 2, 'and again during the reversal');
  await compareBooks(t, world, [true, false]);
  t.same(
    world.troubles().filter(({ level }) => level >= 60),
    [],
    'no process died of an error',
  );
});

test('two timers, one of which sleeps through its lease and wakes up again', {
  timeout,
}, async (t) => {
  const world = await makeWorld(t);
  const second = await startMoreRoles(t, world, ['timer']);
  const timers = [...world.pidsOf('timer'), ...second.pidsOf('timer')];
  t.equal(timers.length, 2);
  await world.resolve(true);
  let sleeper = 0;
  let pauses = 0;
  while (pauses < 4 && (await untilUnderWay(world))) {
    const pid = timers[sleeper % 2] as number;
    process.kill(pid, 'SIGSTOP');
    const before = await world.done();
    // Asleep inside a transaction it holds its rows for 5 s, which is longer than a lease: whoever
    // sleeps has lost it when it wakes up.
    await until('the other goes on', async () => (await world.done()) > before, 20_000).finally(
      () => process.kill(pid, 'SIGCONT'),
    );
    pauses += 1;
    sleeper += 1;
  }
  t.ok(pauses >= 2, `${pauses} pauses under way`);
  await untilDone(world);
  await compareBooks(t, world, [true]);
});
