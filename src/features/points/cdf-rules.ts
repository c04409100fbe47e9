/**
 * Forecasts of a number: a cumulative distribution F over the question's range, linear between its
 * points. Values are scaled so that the range is 0 to 1. F is also between 0 and 1. Pure functions.
 *
 * The score is the continuous ranked probability score of the outcome x,
 * CRPS = ∫₀¹ (F(z) − 1{z ≥ x})² dz. An outcome outside the range counts as the nearer end. With the
 * CRPS in place of the Brier score, **net = round(100 · weight · (x³ + (1 − x)³ − 3 · CRPS))**. The
 * terms before the CRPS do not depend on the forecast, so the rule is strictly proper. They make
 * the uniform forecast, whose CRPS is (x³ + (1 − x)³)/3, earn nothing. With weight 1 the best net
 * is 100 and the worst is −200. Sources: J. E. Matheson and R. L. Winkler, "Scoring rules for
 * continuous probability distributions", 1976; T. Gneiting and A. E. Raftery, "Strictly proper
 * scoring rules, prediction, and estimation", 2007.
 */

/** Points from x = 0 to x = 1. Both `x` and `f` ascend. Two points with the same x are a jump. */
export type Curve = readonly { readonly x: number; readonly f: number }[];

const within = (x: number): number => Math.min(1, Math.max(0, x));

/** Returns ∫ g² over a length, for g linear from `a` to `b`. */
const squareOf = (length: number, a: number, b: number): number =>
  (length * (a * a + a * b + b * b)) / 3;

/** Returns the CRPS: 0 is best and 1 is worst. */
export const crps = (curve: Curve, outcome: number): number => {
  const x = within(outcome);
  let sum = 0;
  for (let i = 1; i < curve.length; i += 1) {
    const [from, to] = [curve[i - 1]!, curve[i]!];
    const length = to.x - from.x;
    if (to.x <= x) sum += squareOf(length, from.f, to.f);
    else if (from.x >= x) sum += squareOf(length, 1 - from.f, 1 - to.f);
    else {
      const f = from.f + ((x - from.x) / length) * (to.f - from.f);
      sum += squareOf(x - from.x, from.f, f) + squareOf(to.x - x, 1 - f, 1 - to.f);
    }
  }
  return sum;
};

/** Returns the points won or lost. `score` is the CRPS of a forecast, or its mean over time. */
export const netOfCrps = (weight: number, outcome: number, score: number): number => {
  const x = within(outcome);
  const net = Math.round(100 * weight * (x ** 3 + (1 - x) ** 3 - 3 * score));
  return net + 0;
};

/** Returns F at each of the ascending values, in one pass. At a jump it is the upper value. */
export const sharesBelow = (curve: Curve, values: readonly number[]): number[] => {
  let n = 0;
  return values.map((at) => {
    while (n < curve.length && curve[n]!.x <= at) n += 1;
    const [before, after] = [curve[n - 1], curve[n]];
    if (before === undefined) return 0;
    if (after === undefined) return before.f;
    return before.f + ((at - before.x) / (after.x - before.x)) * (after.f - before.f);
  });
};

/**
 * For each of the ascending shares, returns the smallest value at which F reaches it, or the end of
 * the range if F never does. Needs one pass over the curve.
 */
export const quantilesOf = (curve: Curve, shares: readonly number[]): number[] => {
  let n = 0;
  return shares.map((f) => {
    while (n < curve.length && curve[n]!.f < f) n += 1;
    const point = curve[n];
    if (point === undefined) return curve.at(-1)!.x;
    const before = curve[n - 1] ?? point;
    const rise = point.f - before.f;
    return rise === 0 ? point.x : before.x + ((f - before.f) / rise) * (point.x - before.x);
  });
};

export const quantileOf = (curve: Curve, f: number): number => quantilesOf(curve, [f])[0]!;
