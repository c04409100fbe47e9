/**
 * Probabilities are whole basis points from 0 to 10,000 in the program and in Postgres, and percent
 * with at most two decimals everywhere else.
 */

export type Scale = 'percent' | 'fraction';

/** The floating-point noise that is tolerated at 0 and 1 (or 100), as a fraction of the scale. */
const tolerance = 1e-6;

/** Allows a little extra, because subtracting two decimals adds noise of its own. */
const isNear = (value: number, end: number, whole = 1): boolean =>
  Math.abs(value - end) <= whole * tolerance * (1 + 1e-6);

/** True if a single number could mean 1 % as well as 100 %. */
export const isAmbiguous = (value: number): boolean => isNear(value, 1);

/** True if a probability can only be in percent. */
export const isAboveOne = (value: number): boolean => value > 1 && !isNear(value, 1);

/** Converts to a fraction. Removes noise at the ends: 0.9999999999 and 1.0000000001 become 1. */
export const toFraction = (value: number, scale: Scale): number => {
  const whole = scale === 'percent' ? 100 : 1;
  if (isNear(value, 0, whole)) return 0;
  return isNear(value, whole, whole) ? 1 : value / whole;
};

export const whole_bp = 10_000;

/** Converts basis points to percent. The result prints with at most two decimals. */
export const toPercent = (bp: number): number => bp / 100;

/**
 * Rounds to the nearest basis point; halves are rounded up. Noise is removed first: 0.285 % must
 * count as 28.5 basis points, not as slightly less.
 */
export const fromPercent = (percent: number): number =>
  Math.round(Number((percent * 100).toPrecision(12)));
