import { t } from 'tap';
import { surviveTerminations } from './help/connection-faults.js';
import { surviveFullDisk, surviveFullLog, surviveReadOnly } from './help/refusal-faults.js';
import { withoutSmallDisks } from './help/small-disk.js';
import { surviveKilledTimers, surviveSleepingTimers } from './help/timer-faults.js';
import { surviveSleepingSigners, surviveWithoutRedis } from './help/webhook-faults.js';

/**
 * `npm run faults`: webhooks under load while each of two signers sleeps for 45 seconds, which is
 * longer than a lease, and while Redis stands still for a minute; settling while its timers are
 * killed and sleep again and again; full disks and a read-only Postgres for half a minute; and
 * connections of a pool that are ended at random for as long.
 */

t.setTimeout(0);
t.test('two signers, each of which sleeps for 45 s', { timeout: 0 }, (t) =>
  surviveSleepingSigners(t, { least_ms: 45_000 }),
);
t.test('Redis stands still for a minute', { timeout: 0 }, (t) =>
  surviveWithoutRedis(t, { least_ms: 60_000 }),
);
t.test('the timer is killed seven times while it settles and reverses', { timeout: 0 }, (t) =>
  surviveKilledTimers(t, { settling: 4, reversing: 3 }),
);
t.test('two timers, each of which sleeps through its lease twice', { timeout: 0 }, (t) =>
  surviveSleepingTimers(t, 4),
);

const half_a_minute = { least_ms: 30_000 };
const skip = withoutSmallDisks();
t.test('the disk of the log is full for 30 s', { timeout: 0, skip }, (t) =>
  surviveFullLog(t, half_a_minute),
);
t.test('the disk of the data is full for 30 s', { timeout: 0, skip }, (t) =>
  surviveFullDisk(t, half_a_minute),
);
t.test('Postgres is read-only for 30 s', { timeout: 0 }, (t) => surviveReadOnly(t, half_a_minute));
t.test('connections are ended at random for 30 s', { timeout: 0 }, (t) =>
  surviveTerminations(t, half_a_minute.least_ms),
);
