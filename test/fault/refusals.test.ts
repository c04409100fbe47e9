import { test } from 'tap';
import { surviveFullLog, surviveReadOnly } from '../help/refusal-faults.js';
import { withoutSmallDisks } from '../help/small-disk.js';

/** Short here; `npm run faults` has them last for half a minute. */

const skip = withoutSmallDisks();

test('the disk of the log is full', { skip }, (t) => surviveFullLog(t));
test('Postgres is read-only', (t) => surviveReadOnly(t));
