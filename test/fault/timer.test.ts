import { test } from 'tap';
import { surviveKilledTimers, surviveSleepingTimers } from '../help/timer-faults.js';

const timeout = 240_000;

test('kill -9 of the timer again and again while it settles', { timeout }, (t) =>
  surviveKilledTimers(t, { settling: 2, reversing: 2 }),
);

test('two timers, one of which sleeps through its lease and wakes up again', { timeout }, (t) =>
  surviveSleepingTimers(t, 2),
);
