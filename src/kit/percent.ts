/**
 * Probabilities are whole numbers of basis points from 0 to 10,000 in the program and in Postgres,
 * and percent with at most two decimals outside of it.
 */

export type Scale = 'percent' | 'fraction';

/** The floating-point noise that is tolerated at 0 and 1 (or 100), as a part of the scale. */
const tolerance = 1e-6;

/** With a little room, because the difference of two decimals has noise itself. */
const isNear = (value: number, end: number, whole = 1): boolean =>
  Math.abs(value - end) <= whole * tolerance * (1 + 1e-6);

/** Whether a single number could mean 1 % as well as 100 %. */
export const isAmbiguous = (value: number): boolean => isNear(value, 1);

/** Whether a probability can only be in percent. */
export const isAboveOne = (value: number): boolean => value > 1 && !isNear(value, 1);

/** As a fraction. Noise at the ends is removed, so that 0.9999999999 and 1.0000000001 are 1. */
export const toFraction = (value: number, scale: Scale): number => {
  const whole = scale === 'percent' ? 100 : 1;
  if (isNear(value, 0, whole)) return 0;
  return isNear(value, whole, whole) ? 1 : value / whole;
};

export const whole_bp = 10_000;

/** The quotient is the number nearest to the decimal, so it prints as two decimals at most. */
export const toPercent = (bp: number): number => bp / 100;

/** The nearest basis point, a half up; to 12 digits first, so that 0.285 % is 28.5 and not less. */
export const fromPercent = (percent: number): number =>
  Math.round(Number((percent * 100).toPrecision(12)));
