/**
 * Figures of a consensus in which nobody counts more for being many. Method `capped-log-odds-1`,
 * with `p` a stated probability of YES, between 0.01 and 0.99:
 *
 *   owner      all predictions of one owner on the question share one weight: w = 1 / how many
 *   family     the weights W of a family are alike, so they count as a design effect (Kish 1965)
 *              says: v = W / (1 + 0.25 · max(0, W − 1)), less than 4 however many they are
 *   effective  n = (Σv)² / Σv², the inverse Simpson index (the Hill number of order 2)
 *   pooled     L = Σ v · (mean of ln(p / (1 − p)) in the family, by w) / Σv
 *   extremized 1 / (1 + e^(−d·L)), d = n·(√(3n²−3n+1) − 2) / (n²−n−1) = 3n / (√(3n²−3n+1) + 2)
 *
 * `d` is the factor of Neyman and Roughgarden (“Are You Smarter Than a Random Expert?”, 2022) for n
 * sources that know different things: 1 for one family, and never more than √3.
 */
export const method = 'capped-log-odds-1';

const alike = 0.25;
const least_percent = 1;
/** Fewer owners than these are never called contested. */
const least_owners = 5;

/** Some predictions of a question that are alike. */
export interface Counted {
  readonly family: string;
  /** What they say: their answer, or the number of their option. */
  readonly side: number;
  readonly value: number;
  readonly count: number;
  /** How many predictions on the question the owner of each has. */
  readonly size: number;
}

/** Of a stated probability in per cent, kept between 1 and 99. */
export const logOdds = (percent: number): number => {
  const p = Math.min(100 - least_percent, Math.max(least_percent, percent)) / 100;
  return Math.log(p / (1 - p));
};

/** To nine places: what floating point adds to a number is gone, and what is even is even. */
const cleaned = (value: number): number => Math.round(value * 1e9) / 1e9;
/** At most two decimals, a half up. */
export const shown = (value: number): number => Math.round(Math.round(value * 1e9) / 1e7) / 100;

/** The weights of the owners of a family, and the sum of weight · log odds. */
export interface Family {
  weight: number;
  log_odds: number;
}

const effectiveOf = (families: readonly Family[]) => {
  const weights = families.map(({ weight }) => weight / (1 + alike * Math.max(0, weight - 1)));
  const sum = weights.reduce((total, weight) => total + weight, 0);
  const squares = weights.reduce((total, weight) => total + weight ** 2, 0);
  return { weights, sum, count: squares === 0 ? 0 : sum ** 2 / squares };
};

/** The pooled figure before it is rounded, in per cent; of one family at least. */
export const extremize = (families: readonly Family[]): number => {
  const { weights, sum, count: n } = effectiveOf(families);
  const pooled = families.reduce(
    (total, { weight, log_odds }, i) => total + ((weights[i] as number) * log_odds) / weight,
    0,
  );
  const factor = (3 * n) / (Math.sqrt(3 * n ** 2 - 3 * n + 1) + 2);
  return 100 / (1 + Math.exp((-factor * pooled) / sum));
};

/** At least five owners, and the runner-up has at least half as much weight as the leader. */
const isContested = (sides: ReadonlyMap<number, number>, owners: number): boolean => {
  const [leader = 0, runner_up = 0] = [...sides.values()].sort((a, b) => b - a).map(cleaned);
  return cleaned(owners) >= least_owners && runner_up * 2 >= leader;
};

export interface Pooled {
  /** Mean over owners of the mean of what they state. */
  readonly by_owner_mean: number | null;
  readonly effective_families: number;
  readonly extremized: number | null;
  readonly contested: boolean;
}

/** With options there is no probability of YES, and so no mean and no pool of it. */
export const poolCells = (cells: Iterable<Counted>, is_binary: boolean): Pooled => {
  const families = new Map<string, Family>();
  const sides = new Map<number, number>();
  let owners = 0;
  let stated = 0;
  for (const { family, side, value, count, size } of cells) {
    const weight = count / size;
    const known = families.get(family) ?? { weight: 0, log_odds: 0 };
    known.weight += weight;
    known.log_odds += weight * logOdds(value);
    families.set(family, known);
    sides.set(side, (sides.get(side) ?? 0) + weight);
    owners += weight;
    stated += weight * value;
  }
  const all = [...families.values()];
  const has_pool = is_binary && owners > 0;
  return {
    by_owner_mean: has_pool ? shown(stated / owners) : null,
    effective_families: shown(effectiveOf(all).count),
    extremized: has_pool ? shown(extremize(all)) : null,
    contested: isContested(sides, owners),
  };
};
