import { whole_bp } from '../../kit/percent.js';
import {
  type ChanceSums,
  computeCandidates,
  makeValueCounts,
  mix,
  type Weights,
} from './mixture.js';

/**
 * Pools many forecasts into one, so that no owner and no family dominates by numbers. The method is
 * `capped-log-odds-2`. A stated chance p of YES, or of an option, is limited to 1–99 % and
 * converted to x = ln(p / (1 − p)) with nine decimals:
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
 * The pool is one of the candidates of the headline (`mixture.ts`).
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

/** Takes Σ a² and ρ. Returns n and d, unrounded. */
export const extremize = (squares: number, rho: number) => {
  const n = 1 / (rho + (1 - rho) * squares);
  const d = (3 * n) / (Math.sqrt(3 * n ** 2 - 3 * n + 1) + 2);
  return { effective_forecasters: n, extremizing: d };
};

export interface PoolForecast {
  /** The predictions of one owner share one weight. */
  readonly owner: string;
  readonly agent: string;
  readonly family: string;
  /** The stated chance of YES in basis points. Ignored if the question has options. */
  readonly value: number;
  /** The share of each option, in basis points · (options − 1). Ignored without options. */
  readonly given: readonly number[];
}

/** Converts `given` of a question with options to whole basis points. */
export const chancesIn = (given: readonly number[]): readonly number[] =>
  given.map((units) => Math.round(units / (given.length - 1)));

/** Percentages, unrounded: the chance of YES, or one for each option. */
export interface Pooled {
  readonly headline: readonly number[];
  readonly candidates: readonly (readonly number[])[];
  /** The means of the stated chances. */
  readonly means: readonly number[];
}

/**
 * Creates a pool that takes forecasts one by one. The cost of a step does not grow with the number
 * of forecasts. It depends on the number of families, and on how many of them the owner's agents
 * belong to. `options` is the number of options; 0 for yes/no.
 */
export const createPool = (options: number) => {
  const forecasts = new Map<string, PoolForecast>();
  const sums = makeSums(options);
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
    /** Null if the pool is empty. */
    read: (fit: PoolFit): Pooled | null => sums.read(fit),
    /** Like `read`, but without this agent's forecast. */
    readWithout(agent: string, fit: PoolFit): Pooled | null {
      const own = forecasts.get(agent);
      change(own, -1);
      const found = sums.read(fit);
      change(own, 1);
      return found;
    },
  };
};
export type Pool = ReturnType<typeof createPool>;

/** The members of a fit that a pool reads. */
export interface PoolFit {
  readonly rho: number;
  /** Null in fits from before the mixture. */
  readonly weights: Weights | null;
}

/**
 * Returns the headline. Fits from before the mixture have no weights. Their headline is the pool,
 * or with options the mean.
 */
export const headlineOf = (
  candidates: readonly (readonly number[])[],
  means: readonly number[],
  { weights }: Pick<PoolFit, 'weights'>,
): readonly number[] =>
  weights !== null
    ? mix(candidates, weights.chance)
    : means.length > 1
      ? means
      : (candidates[2] as readonly number[]);

interface Family {
  predictions: number;
  weight: number;
  /** For each chance, the sum of weight · log odds, in billionths. */
  readonly log_odds: number[];
  /** By family: the sum over owners of their weight here times their weight in that family. */
  readonly products: Map<Family, number>;
  /** The share of L that a weight of 1 has in this family. 0 if the family has no forecasts. */
  share: number;
}

/** Predictions of one owner, in total and by family. */
interface Owner {
  predictions: number;
  readonly parts: Map<Family, { predictions: number; readonly log_odds: number[] }>;
}

const addTo = (sums: number[], values: readonly number[], factor: number): void => {
  for (let n = 0; n < sums.length; n += 1) {
    sums[n] = (sums[n] as number) + factor * (values[n] as number);
  }
};

const makeSums = (options: number) => {
  const families = new Map<string, Family>();
  const owners = new Map<string, Owner>();
  const zeros = (): number[] => new Array<number>(options || 1).fill(0);
  const values = zeros().map(makeValueCounts);
  /** Sums of the stated chances, in the unit of the forecasts. */
  const stated = zeros();

  const familyOf = (name: string): Family => {
    const known = families.get(name);
    if (known !== undefined) return known;
    const family = { predictions: 0, weight: 0, log_odds: zeros(), products: new Map(), share: 0 };
    families.set(name, family);
    return family;
  };

  /** Adds an owner's weights to the sums of its families, or subtracts them. */
  const weigh = ({ predictions, parts }: Owner, sign: 1 | -1): void => {
    for (const [family, own] of parts) {
      const weight = own.predictions / predictions;
      family.weight += sign * weight;
      addTo(family.log_odds, own.log_odds, sign / predictions);
      for (const [other, { predictions: others }] of parts) {
        const product = (weight * others) / predictions;
        family.products.set(other, (family.products.get(other) ?? 0) + sign * product);
      }
    }
  };

  const change = (forecast: PoolForecast, sign: 1 | -1): void => {
    const { owner: name, family: family_name, value, given } = forecast;
    const family = familyOf(family_name);
    const owner = owners.get(name) ?? { predictions: 0, parts: new Map() };
    const part = owner.parts.get(family) ?? { predictions: 0, log_odds: zeros() };
    const chances = options === 0 ? [value] : chancesIn(given);
    for (const [n, chance] of chances.entries()) values[n]?.add(chance, sign);
    addTo(stated, options === 0 ? [value] : given, sign);
    weigh(owner, -1);
    family.predictions += sign;
    owner.predictions += sign;
    part.predictions += sign;
    addTo(part.log_odds, chances.map(logOdds), sign);
    owners.set(name, owner);
    owner.parts.set(family, part);
    // Empty entries are deleted, so that no floating-point noise stays in the sums.
    if (part.predictions === 0) owner.parts.delete(family);
    if (owner.predictions === 0) owners.delete(name);
    weigh(owner, 1);
    if (family.predictions > 0) return;
    families.delete(family_name);
    family.share = 0;
  };

  const read = (fit: PoolFit): Pooled | null => {
    if (families.size === 0) return null;
    const all = [...families.values()];
    const shares = sharesOf(all.map(({ weight }) => weight));
    for (const [n, family] of all.entries()) family.share = shares[n] as number;
    let squares = 0;
    for (const { share, products } of all) {
      for (const [other, product] of products) squares += share * other.share * product;
    }
    const chances = values.map((counts, n): ChanceSums => {
      const sumOf = (factorOf: (family: Family) => number): number =>
        all.reduce((sum, one) => sum + factorOf(one) * (one.log_odds[n] as number), 0);
      return {
        median: counts.quantile(0.5) as number,
        mean_log_odds: sumOf(() => 1) / owners.size,
        pooled_log_odds: sumOf(({ share }) => share),
      };
    });
    const candidates = computeCandidates(chances, extremize(squares, fit.rho).extremizing);
    const count = all.reduce((sum, one) => sum + one.predictions, 0);
    const whole = whole_bp * count * (options === 0 ? 1 : options - 1);
    const means = stated.map((sum) => (100 * sum) / whole);
    return { headline: headlineOf(candidates, means, fit), candidates, means };
  };

  return { change, read };
};
