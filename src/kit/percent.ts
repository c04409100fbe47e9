/**
 * Probabilities are whole numbers of basis points from 0 to 10,000 in the program and in Postgres,
 * and percent with at most two decimals outside of it.
 */

export const whole_bp = 10_000;

/** The quotient is the number nearest to the decimal, so it prints as two decimals at most. */
export const toPercent = (bp: number): number => bp / 100;

/** The nearest basis point, a half up; to 12 digits first, so that 0.285 % is 28.5 and not less. */
export const fromPercent = (percent: number): number =>
  Math.round(Number((percent * 100).toPrecision(12)));
