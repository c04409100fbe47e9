import { whole_bp } from '../../kit/percent.js';

/**
 * Pools many forecasts into one, so that no owner and no family dominates by numbers. For yes/no
 * the method is `capped-log-odds-2`. A stated chance p of YES is limited to 1–99 % and converted to
 * x = ln(p / (1 − p)) with nine decimals:
 *
 *   owner     all predictions of an owner on the question share one weight: w = 1 / their number
 *   family    forecasts of a family resemble each other, so a design effect (Kish 1965) reduces
 *             their total weight W: v = W / (1 + 0.25 · max(0, W − 1)), always less than 4
 *   L         Σ v · (mean of x in the family, weighted by w) / Σ v
 *   a         the share of an owner in L, over all families of its agents; Σ a = 1
 *   n         1 / (ρ + (1 − ρ) · Σ a²), the number of independent forecasters who know as much;
 *             ρ is the measured correlation between the errors of two owners (`correlation.ts`)
 *   d         3n / (√(3n² − 3n + 1) + 2)
 *   pooled    1 / (1 + e^(−d·L))
 *
 * `d` is the factor of Neyman and Roughgarden (“Are You Smarter Than a Random Expert?”, 2022) for n
 * forecasters who know different things. It is 1 for one forecaster, and never more than √3.
 *
 * With options, the pool is the mean of the stated distributions, with equal weights.
 */
export const method = 'capped-log-odds-2';

const alike = 0.25;
const min_bp = 100;

const billion = 1e9;

/** Returns log odds in whole billionths, so that sums are exact. `value` is in basis points. */
export const logOdds = (value: number): number => {
  const kept = Math.min(whole_bp - min_bp, Math.max(min_bp, value));
  return Math.round(billion * Math.log(kept / (whole_bp - kept)));
};

/** Returns the share of L that a weight of 1 has in each family. Takes all families' weights. */
export const sharesOf = (weights: readonly number[]): readonly number[] => {
  const capped = weights.map((weight) => weight / (1 + alike * Math.max(0, weight - 1)));
  const sum = capped.reduce((total, one) => total + one, 0);
  return capped.map((one, n) => one / (sum * (weights[n] as number)));
};

/** Takes L in billionths, Σ a² and ρ. Returns n, d and the pooled percentage of YES, unrounded. */
export const extremize = (pooled_log_odds: number, squares: number, rho: number) => {
  const n = 1 / (rho + (1 - rho) * squares);
  const d = (3 * n) / (Math.sqrt(3 * n ** 2 - 3 * n + 1) + 2);
  const percent = 100 / (1 + Math.exp((-d * pooled_log_odds) / billion));
  return { effective_forecasters: n, extremizing: d, percent };
};

export interface PoolForecast {
  /** The predictions of one owner share one weight. */
  readonly owner: string;
  readonly agent: string;
  readonly family: string;
  /** The stated chance of YES in basis points. Ignored if the question has options. */
  readonly value: number;
  /** The share of each option, in a unit that is the same for all forecasts. Empty for yes/no. */
  readonly given: readonly number[];
}

/**
 * Creates a pool that takes forecasts one by one. The cost of a step does not grow with the number
 * of forecasts. It depends on the number of families, and on how many of them the owner's agents
 * belong to. `options` is the number of options; 0 for yes/no.
 */
export const createPool = (options: number) => {
  const forecasts = new Map<string, PoolForecast>();
  const sums = options === 0 ? makeLogOddsSums() : makeMeans(options);
  const change = (forecast: PoolForecast | undefined, sign: 1 | -1): void => {
    if (forecast !== undefined) sums.change(forecast, sign);
  };
  return {
    /** An agent's new forecast replaces its previous one. */
    put(forecast: PoolForecast): void {
      change(forecasts.get(forecast.agent), -1);
      change(forecast, 1);
      forecasts.set(forecast.agent, forecast);
    },
    /**
     * Returns unrounded percentages: the chance of YES, or one for each option. Null if the pool
     * is empty. `rho` comes from the fit in force.
     */
    read: (rho: number): readonly number[] | null => sums.read(rho),
    /** Like `read`, but without this agent's forecast. */
    readWithout(agent: string, rho: number): readonly number[] | null {
      const own = forecasts.get(agent);
      change(own, -1);
      const found = sums.read(rho);
      change(own, 1);
      return found;
    },
  };
};
export type Pool = ReturnType<typeof createPool>;

const makeMeans = (options: number) => {
  const sums = new Array<number>(options).fill(0);
  return {
    change({ given }: PoolForecast, sign: 1 | -1): void {
      for (const [n, one] of given.entries()) sums[n] = (sums[n] as number) + sign * one;
    },
    read(_: number): readonly number[] | null {
      const sum = sums.reduce((total, one) => total + one, 0);
      return sum === 0 ? null : sums.map((one) => (100 * one) / sum);
    },
  };
};

interface Family {
  predictions: number;
  weight: number;
  /** Sum of weight · log odds, in billionths. */
  log_odds: number;
  /** By family: the sum over owners of their weight here times their weight in that family. */
  readonly products: Map<Family, number>;
  /** The share of L that a weight of 1 has in this family. 0 if the family has no forecasts. */
  share: number;
}

/** Predictions of one owner, in total and by family. */
interface Owner {
  predictions: number;
  readonly parts: Map<Family, { predictions: number; log_odds: number }>;
}

const makeLogOddsSums = () => {
  const families = new Map<string, Family>();
  const owners = new Map<string, Owner>();

  const familyOf = (name: string): Family => {
    const known = families.get(name);
    if (known !== undefined) return known;
    const family = { predictions: 0, weight: 0, log_odds: 0, products: new Map(), share: 0 };
    families.set(name, family);
    return family;
  };

  /** Adds an owner's weights to the sums of its families, or subtracts them. */
  const weigh = ({ predictions, parts }: Owner, sign: 1 | -1): void => {
    for (const [family, own] of parts) {
      const weight = own.predictions / predictions;
      family.weight += sign * weight;
      family.log_odds += (sign * own.log_odds) / predictions;
      for (const [other, { predictions: others }] of parts) {
        const product = (weight * others) / predictions;
        family.products.set(other, (family.products.get(other) ?? 0) + sign * product);
      }
    }
  };

  return {
    change({ owner: name, family: family_name, value }: PoolForecast, sign: 1 | -1): void {
      const family = familyOf(family_name);
      const owner = owners.get(name) ?? { predictions: 0, parts: new Map() };
      const part = owner.parts.get(family) ?? { predictions: 0, log_odds: 0 };
      weigh(owner, -1);
      family.predictions += sign;
      owner.predictions += sign;
      part.predictions += sign;
      part.log_odds += sign * logOdds(value);
      owners.set(name, owner);
      owner.parts.set(family, part);
      // Empty entries are deleted, so that no floating-point noise stays in the sums.
      if (part.predictions === 0) owner.parts.delete(family);
      if (owner.predictions === 0) owners.delete(name);
      weigh(owner, 1);
      if (family.predictions > 0) return;
      families.delete(family_name);
      family.share = 0;
    },
    read(rho: number): readonly number[] | null {
      if (families.size === 0) return null;
      const all = [...families.values()];
      const shares = sharesOf(all.map(({ weight }) => weight));
      for (const [n, family] of all.entries()) family.share = shares[n] as number;
      let pooled = 0;
      let squares = 0;
      for (const { share, log_odds, products } of all) {
        pooled += share * log_odds;
        for (const [other, product] of products) squares += share * other.share * product;
      }
      return [extremize(pooled, squares, rho).percent];
    },
  };
};
