import { readConfig } from '../src/config.js';
import { t } from './help/tap.js';

t.test('a number that is none is refused in words, with all others at once', async (t) => {
  const read = () => readConfig({ PORT: 'abc', DATABASE_POOL: '1', LIMIT_PREDICTIONS: '1.5' });
  for (const message of [
    /PORT: must be a whole number from 0 to 65535/,
    /DATABASE_POOL: must be a whole number from 2 to 100/,
    /LIMIT_PREDICTIONS: must be a whole number from \d+ to \d+/,
  ]) {
    t.throws(read, { message });
  }
  t.equal(readConfig({ PORT: '8123' }).PORT, 8_123);
});
