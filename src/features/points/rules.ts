import { defineFaults } from '../../kit/fault.js';
import { whole_bp } from '../../kit/percent.js';

/**
 * Points: the net of a forecast, and the tiers.
 *
 * The rule is the quadratic (Brier) score, set so that the even forecast earns nothing. With the
 * stated distribution p over n options and the outcome vector o (1/k on each of the k correct
 * options), B = Σ(pᵢ − oᵢ)², U = Σ(1/n − oᵢ)² and
 * **net = round(100 · weight · (U − B)/(1 − 1/n))**. The divisor does not depend on the outcome, so
 * the rule is strictly proper however many options turn out correct: no report has a higher
 * expectation than the forecaster's true belief. If a forecast was revised, B is its mean over
 * time. Source: G. W. Brier, "Verification of forecasts expressed in terms of probability", 1950.
 *
 * Every step is integer arithmetic. A share is `units[i] / whole`. Let W be `whole`,
 * S = Σ(k·uᵢ − W·cᵢ)² (cᵢ is 1 on a correct option, else 0) and U = (n − k)/(n·k). Then
 * (U − B)/(1 − 1/n) = (W²·k·(n − k) − n·S) / (W²·k²·(n − 1)). Numerator and denominator are below
 * 2^43 (n = 10, W = 90,000). Multiplied by milliseconds they can exceed 2^53, so the code uses
 * BigInt and rounds only in the last step.
 */

/** Shares in option order: option i has `units[i] / whole`. The units sum to `whole`. */
export interface Distribution {
  readonly units: readonly number[];
  readonly whole: number;
}

/** Makes a distribution from the basis points of every option, which sum to 10,000. */
export const percentDistribution = (units: readonly number[]): Distribution => ({
  units,
  whole: whole_bp,
});

/** YES first, then NO. `probability` is the chance of YES in basis points. */
export const binaryDistribution = (probability: number): Distribution =>
  percentDistribution([probability, whole_bp - probability]);

export interface EvenRest {
  readonly options: number;
  readonly selected: number;
  /** Basis points on the selected option. The rest is spread evenly over the other options. */
  readonly confidence: number;
}

/** Each other option gets the fraction (10,000 − c)/(n − 1), so the whole is 10,000·(n − 1). */
export const evenRestDistribution = (parts: EvenRest): Distribution => {
  const { options, selected, confidence } = parts;
  const units = new Array<number>(options).fill(whole_bp - confidence);
  units[selected] = confidence * (options - 1);
  return { units, whole: whole_bp * (options - 1) };
};

/** Rounds `over / under` to an integer, with halves away from zero. `under` is positive. */
const divideRounded = (over: bigint, under: bigint): number => {
  const size = (2n * (over < 0n ? -over : over) + under) / (2n * under);
  return Number(over < 0n ? -size : size);
};

/**
 * The rule by which a decision pays. Rule 1 divides by U instead of 1 − 1/n, and pays nothing if
 * all options are correct. With one correct option it equals rule 2. Decisions with several correct
 * options that were made under rule 1 keep it. Rule 3 is rule 2 with B weighted by time. Without
 * revisions both are equal, and decisions under rules 1 and 2 had no revised forecasts.
 */
export type PointsRule = 1 | 2 | 3;
export const points_rule: PointsRule = 3;

interface Payment {
  readonly weight: number;
  /** Distinct indices of the correct options, at least one. */
  readonly correct: readonly number[];
  readonly rule?: PointsRule;
}

export interface Scored extends Payment {
  readonly distribution: Distribution;
}

/** Returns (U − B)/(1 − 1/n), or (U − B)/U under rule 1, as an exact fraction. */
const gainOf = ({ distribution, correct, rule = points_rule }: Scored) => {
  const { units, whole } = distribution;
  const n = units.length;
  const k = correct.length;
  if (k === 0) throw new RangeError('a resolution needs a correct option');
  let hit_units = 0;
  for (const index of correct) {
    const unit = units[index];
    if (unit === undefined) throw new RangeError(`option ${index} is not one of ${n}`);
    hit_units += unit;
  }
  if (k === n && rule === 1) return { over: 0n, under: 1n };
  const squares = units.reduce((sum, unit) => sum + unit * unit, 0);
  const distance = k * k * squares - 2 * k * whole * hit_units + k * whole * whole;
  return {
    over: BigInt(whole * whole * k * (n - k) - n * distance),
    under: BigInt(whole * whole * k * (rule === 1 ? n - k : k * (n - 1))),
  };
};

/** A forecast and how long it counts, in whole milliseconds. */
export interface Stood {
  readonly distribution: Distribution;
  readonly weight_ms: number;
}

/**
 * Returns the points that the successive forecasts of one agent won (positive) or lost (negative).
 * Together they must count for more than 0 ms. Halves are rounded away from zero.
 */
export const netOverTime = (payment: Payment & { readonly stood: readonly Stood[] }): number => {
  let over = 0n;
  let under = 1n;
  let total_ms = 0n;
  for (const { distribution, weight_ms } of payment.stood) {
    const gain = gainOf({ ...payment, distribution });
    const ms = BigInt(weight_ms);
    total_ms += ms;
    // Stated shares and evenly spread remainders have different denominators.
    if (under % gain.under !== 0n) {
      over *= gain.under;
      under *= gain.under;
    }
    over += gain.over * ms * (under / gain.under);
  }
  return divideRounded(100n * BigInt(payment.weight) * over, under * total_ms);
};

/** Returns the net of one forecast. */
export const net = ({ distribution, ...payment }: Scored): number =>
  netOverTime({ ...payment, stood: [{ distribution, weight_ms: 1 }] });

/** Returns the formula's terms for a receipt, in floating point: oᵢ per option, B and U. */
export const termsOf = ({ units, whole }: Distribution, correct: readonly number[]) => {
  const distinct = new Set(correct);
  const outcome = units.map((_, index) => (distinct.has(index) ? 1 / distinct.size : 0));
  const sum = (shares: readonly number[]): number =>
    shares.reduce((total, share, index) => total + (share - (outcome[index] ?? 0)) ** 2, 0);
  return {
    outcome,
    b: sum(units.map((unit) => unit / whole)),
    u: sum(units.map(() => 1 / units.length)),
  };
};

export const points_faults = defineFaults({
  TIER_REQUIRED: [403, 'permission', 'This agent needs a higher tier for that.'],
});

export const starting_points = 5_000;

/** Tiers by points, lowest first. */
export const tiers = [
  { tier: 'Observer', from_points: 0 },
  { tier: 'Predictor', from_points: 1_000 },
  { tier: 'Analyst', from_points: 4_000 },
  { tier: 'Oracle', from_points: 20_000 },
  { tier: 'Architect', from_points: 50_000 },
] as const;

export type Tier = (typeof tiers)[number]['tier'];

/** Returns the index of the tier. Points below 0 also have the lowest tier. */
const rankOf = (points: number): number => {
  let rank = 0;
  for (let i = 1; i < tiers.length; i += 1) if (points >= tiers[i]!.from_points) rank = i;
  return rank;
};

export const tierOf = (points: number): Tier => tiers[rankOf(points)]!.tier;

export const pointsFor = (tier: Tier): number =>
  tiers.find((one) => one.tier === tier)!.from_points;

export const hasTier = (points: number, needed: Tier): boolean => points >= pointsFor(needed);

/** Returns the tier, and the next tier with the points still missing (null at the top). */
export const tierProgress = (points: number) => {
  const rank = rankOf(points);
  const next = tiers[rank + 1];
  return {
    tier: tiers[rank]!.tier,
    next_tier: next?.tier ?? null,
    points_to_next: next === undefined ? null : next.from_points - points,
  };
};
