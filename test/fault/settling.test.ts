import { test } from 'tap';
import { compareBooks, makeWorld, untilDone, untilUnderWay } from '../help/settling-world.js';

/**
 * Postgres and Redis die while a question is settled. A chunk's commit does not wait for the disk,
 * so a crash of Postgres takes chunks away; their cursor goes with them.
 */

test('kill -9 of Postgres and of Redis while a question is settled', async (t) => {
  const world = await makeWorld(t);
  await world.resolve(true);
  let kills = 0;
  for (const store of ['Postgres', 'Redis', 'Postgres'] as const) {
    if (!(await untilUnderWay(world))) break;
    await world.kill(store).back;
    kills += 1;
  }
  t.ok(kills >= 2, `${kills} kills under way`);
  await untilDone(world);
  await compareBooks(t, world, [true]);
  t.same(
    world.troubles().filter(({ level }) => level >= 60),
    [],
    'no process died of an error',
  );
});
