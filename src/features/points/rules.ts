/**
 * Points: what a forecast puts at stake, what it earns, and which tier that makes.
 *
 * The rule is the quadratic (Brier) score, set so that the even forecast earns nothing. With the
 * stated distribution p over n options and the outcome vector o (1/k on each of the k correct
 * options), B = Σ(pᵢ − oᵢ)², U = Σ(1/n − oᵢ)² and **net = round(100 · weight · (1 − B/U))**.
 * It is strictly proper: no report has a higher expectation than the belief itself. Source:
 * G. W. Brier, "Verification of forecasts expressed in terms of probability", 1950.
 *
 * Every step is integer arithmetic. A share is `units[i] / whole`; with W = whole,
 * S = Σ(k·uᵢ − W·cᵢ)² (cᵢ is 1 on a correct option, else 0) and U = (n − k)/(n·k) follows
 * 1 − B/U = (W²·k·(n − k) − n·S) / (W²·k·(n − k)). The largest number on the way is below 2^43
 * (n = 10, weight = 5, W = 900), far from 2^53, so nothing is rounded before the last step.
 */

/** Shares of the options in order: option i has `units[i] / whole`; the units sum to `whole`. */
export interface Distribution {
  readonly units: readonly number[];
  readonly whole: number;
}

/** YES first, then NO. `probability` is the chance of YES in whole percent. */
export const binaryDistribution = (probability: number): Distribution => ({
  units: [probability, 100 - probability],
  whole: 100,
});

/** Whole percents of every option, which sum to 100. */
export const percentDistribution = (percents: readonly number[]): Distribution => ({
  units: percents,
  whole: 100,
});

export interface EvenRest {
  /** Number of options, at least 2. */
  readonly options: number;
  /** Index of the option that carries the confidence. */
  readonly selected: number;
  /** Whole percent on the selected option; the rest is spread evenly over the others. */
  readonly confidence: number;
}

/** The rest is rational, (100 − c)/(n − 1) each, so the whole is 100·(n − 1) instead of 100. */
export const evenRestDistribution = (parts: EvenRest): Distribution => {
  const { options, selected, confidence } = parts;
  const units = new Array<number>(options).fill(100 - confidence);
  units[selected] = confidence * (options - 1);
  return { units, whole: 100 * (options - 1) };
};

/** `over / under` to the nearest integer, a half away from zero; `under` is positive. */
const divideRounded = (over: number, under: number): number => {
  const doubled = 2 * Math.abs(over) + under;
  const size = (doubled - (doubled % (2 * under))) / (2 * under);
  return over < 0 && size > 0 ? -size : size;
};

interface Case {
  readonly weight: number;
  readonly distribution: Distribution;
  /** How many options are correct. */
  readonly k: number;
  /** Sum of the units on the correct options; the score needs to know no more of them. */
  readonly hit_units: number;
}

const netOfCase = ({ weight, distribution, k, hit_units }: Case): number => {
  const { units, whole } = distribution;
  const n = units.length;
  if (k === n) return 0;
  let squares = 0;
  for (const unit of units) squares += unit * unit;
  const distance = k * k * squares - 2 * k * whole * hit_units + k * whole * whole;
  const under = whole * whole * k * (n - k);
  return divideRounded(100 * weight * (under - n * distance), under);
};

/**
 * Points won (positive) or lost (negative) when exactly the options in `correct` (indices, each
 * once, at least one) turn out right. All options correct says nothing about anybody: net 0.
 * A half is rounded away from zero.
 */
export const net = (
  weight: number,
  distribution: Distribution,
  correct: readonly number[],
): number => {
  const { units } = distribution;
  const distinct = new Set(correct);
  let hit_units = 0;
  for (const index of distinct) {
    const unit = units[index];
    if (unit === undefined) throw new RangeError(`option ${index} is not one of ${units.length}`);
    hit_units += unit;
  }
  if (distinct.size === 0) throw new RangeError('a resolution needs a correct option');
  return netOfCase({ weight, distribution, k: distinct.size, hit_units });
};

/**
 * The largest loss over every outcome the question could resolve to, never below 0. Among the sets
 * of k correct options the worst is the k options with the least share, because the score grows
 * with the share on the correct ones and depends on nothing else of the set; so n − 1 cases do for
 * 2ⁿ − 2. A binary question has the one case k = 1.
 */
export const stake = (weight: number, distribution: Distribution): number => {
  const ascending = [...distribution.units].sort((a, b) => a - b);
  let worst = 0;
  let hit_units = 0;
  for (let k = 1; k < ascending.length; k += 1) {
    hit_units += ascending[k - 1]!;
    worst = Math.max(worst, -netOfCase({ weight, distribution, k, hit_units }));
  }
  return worst;
};

/** The terms of the formula as they stand there, for a receipt; `net` does without rounding. */
export interface Terms {
  /** oᵢ, by option. */
  readonly outcome: readonly number[];
  readonly b: number;
  readonly u: number;
}

export const termsOf = ({ units, whole }: Distribution, correct: readonly number[]): Terms => {
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

/** What an agent is worth: its points, wherever they are, less what it owes. */
export const equityOf = (account: {
  readonly balance: number;
  readonly staked: number;
  readonly debt: number;
}): number => account.balance + account.staked - account.debt;

/** Tiers by equity (balance + points staked on open predictions − debt), lowest first. */
export const tiers = [
  { tier: 'Observer', from_equity: 0 },
  { tier: 'Predictor', from_equity: 1_000 },
  { tier: 'Analyst', from_equity: 5_000 },
  { tier: 'Oracle', from_equity: 20_000 },
  { tier: 'Architect', from_equity: 50_000 },
] as const;

export type Tier = (typeof tiers)[number]['tier'];

const rankOf = (equity: number): number => {
  let rank = 0;
  for (let i = 1; i < tiers.length; i += 1) if (equity >= tiers[i]!.from_equity) rank = i;
  return rank;
};

export const tierOf = (equity: number): Tier => tiers[rankOf(equity)]!.tier;

/** The equity from which on an agent has the tier. */
export const equityFor = (tier: Tier): number =>
  tiers.find((one) => one.tier === tier)!.from_equity;

/** Whether this equity reaches the tier that an act needs. */
export const hasTier = (equity: number, needed: Tier): boolean =>
  tiers[rankOf(equity)]!.from_equity >= equityFor(needed);

export interface TierProgress {
  readonly tier: Tier;
  /** Null at the top. */
  readonly next_tier: Tier | null;
  /** Points of equity still missing; null at the top. */
  readonly points_to_next: number | null;
}

export const tierProgress = (equity: number): TierProgress => {
  const rank = rankOf(equity);
  const next = tiers[rank + 1];
  return {
    tier: tiers[rank]!.tier,
    next_tier: next?.tier ?? null,
    points_to_next: next === undefined ? null : next.from_equity - equity,
  };
};
