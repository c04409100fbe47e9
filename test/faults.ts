import { t } from 'tap';
import { surviveSleepingSigners, surviveWithoutRedis } from './help/webhook-faults.js';

/**
 * `npm run faults`: webhooks under load while each of two signers sleeps for 45 seconds, which is
 * longer than a lease, and while Redis stands still for a minute.
 */

t.setTimeout(0);
t.test('two signers, each of which sleeps for 45 s', { timeout: 0 }, (t) =>
  surviveSleepingSigners(t, { least_ms: 45_000 }),
);
t.test('Redis stands still for a minute', { timeout: 0 }, (t) =>
  surviveWithoutRedis(t, { least_ms: 60_000 }),
);
