import { test } from 'tap';
import { surviveSleepingSigners } from '../help/webhook-faults.js';

test('two signers, one of which sleeps while the other takes over', (t) =>
  surviveSleepingSigners(t));
