import { test } from 'tap';
import { surviveFullDisk } from '../help/refusal-faults.js';
import { withoutSmallDisks } from '../help/small-disk.js';

/** Short here; `npm run faults` has it last for half a minute. */

test('the disk of the data is full', { skip: withoutSmallDisks() }, (t) => surviveFullDisk(t));
