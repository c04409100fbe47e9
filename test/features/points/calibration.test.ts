import type { Test } from 'tap';
import {
  calibrationError,
  meanInterval,
  wilson,
} from '../../../src/features/points/calibration.js';
import { t } from '../../help/tap.js';

const near = (t: Test, found: number | undefined, wanted: number, digits: number): void => {
  t.ok(Math.abs((found ?? 99) - wanted) < 0.5 * 10 ** -digits, `${found} is ${wanted}`);
};

t.test('the calibration errors are those of torchmetrics', async (t) => {
  // Two forecasts at 0.25 that did not come true. One at 0.55 and two at 0.75 that did.
  const error = calibrationError([
    { n: 2, stated: 0.5, hits: 0 },
    { n: 3, stated: 2.05, hits: 3 },
  ]);
  near(t, error?.ece, 0.29, 4);
  near(t, error?.mce, 0.3167, 4);
});

t.test('empty bins count for nothing', async (t) => {
  t.equal(calibrationError([]), null);
  t.equal(calibrationError([{ n: 0, stated: 0, hits: 0 }]), null);
});

t.test('the interval of a share is that of Wilson', async (t) => {
  // R's prop.test(8, 10, correct = FALSE) and statsmodels give these figures for 8 of 10.
  near(t, wilson(8, 10).low, 0.4901625, 7);
  near(t, wilson(8, 10).high, 0.9433178, 7);
  near(t, wilson(0, 10).high, 0.2775328, 7);
  t.equal(wilson(0, 10).low, 0);
  t.equal(wilson(10, 10).high, 1);
  t.same(wilson(0, 0), { low: 0, high: 1 });
});

t.test('the interval of a mean narrows with the root of its number, within 0 to 1', async (t) => {
  const wide = meanInterval(0.5, 0.04, 25);
  near(t, wide.low, 0.5 - 1.959964 * 0.04, 6);
  near(t, meanInterval(0.5, 0.04, 100).high, 0.5 + 1.959964 * 0.02, 6);
  t.equal(meanInterval(0.01, 0.04, 10).low, 0);
  t.same(meanInterval(0.2, 0, 1), { low: 0, high: 1 });
});
