import { groupBy } from '../../kit/group-by.js';
import { distributionOf } from '../predictions/index.js';

/**
 * The consensus of a question, computed from its tally: how many predictions there are for each
 * family, stated value, and number of predictions that their owner has; and with options the sum of
 * what each family gives to each of them. The tally is the sufficient statistic of everything
 * below, all of it whole numbers, so means and quantiles are exact.
 */

/** The side of a prediction: `yes` and its probability, or an `option` and the confidence in it. */
export interface Position {
  readonly family: string;
  readonly yes: boolean | null;
  readonly option: number | null;
  /** Binary: stated probability of YES, 0–100. Multi: confidence in the option, 0–100. */
  readonly value: number;
}

/** With options also the whole distribution that is stated. */
export interface Forecast extends Position {
  /**
   * What each option is given, in percent · (options − 1): a prediction that names one option
   * spreads the rest evenly, and only so are all shares whole numbers. Null without options.
   */
  readonly given: readonly number[] | null;
}

/** The share that a prediction gives to each of so many options, from its stored fields. */
export const givenBy = (
  { option, value }: Pick<Position, 'option' | 'value'>,
  probabilities: readonly number[] | null,
  options: number,
): readonly number[] | null => {
  if (option === null) return null;
  const one = { prediction: null, probability: null, selected_option: option, probabilities };
  const { units, whole } = distributionOf({ ...one, confidence: 100 * value }, options);
  return units.map((unit) => (unit * 100 * (options - 1)) / whole);
};

export interface Cell extends Position {
  readonly count: number;
  /** How many predictions on the question the owner of each of these has. */
  readonly size: number;
}

export interface Tally {
  readonly cells: readonly Cell[];
  /** By family, for each option the sum of what it is given; empty without options. */
  readonly given: ReadonlyMap<string, readonly number[]>;
  /** Offset of the last prediction that is counted in; 0 where there is none. */
  readonly offset: number;
  readonly updated_at: string | null;
}

export const no_tally: Tally = { cells: [], given: new Map(), offset: 0, updated_at: null };

/**
 * `part / whole` with at most two decimals, a half up as in SQL. The hundredfold is taken before
 * the division: only then is every half exact (2.175 · 100 is 217.49999999999997).
 */
const ratio2 = (part: number, whole: number): number => Math.round((100 * part) / whole) / 100;
/** `part` of `whole` in per cent. */
export const share = (part: number, whole: number): number =>
  whole === 0 ? 0 : ratio2(100 * part, whole);
export const mean = (sum: number, count: number): number | null =>
  count === 0 ? null : ratio2(sum, count);

const sumOf = (cells: readonly Cell[], read: (cell: Cell) => number): number =>
  cells.reduce((sum, cell) => sum + read(cell), 0);

/**
 * Quantile of the stated values by linear interpolation (Hyndman and Fan, type 7); `q` is a number
 * of quarters, and so the result is exact. `counts` has how often each of 0–100 is stated.
 */
export const quantile = (counts: readonly number[], total: number, q: number): number | null => {
  if (total === 0) return null;
  const rank = (total - 1) * q;
  const valueAt = (index: number): number => {
    let seen = 0;
    return counts.findIndex((count) => {
      seen += count;
      return index < seen;
    });
  };
  const low = valueAt(Math.floor(rank));
  const high = valueAt(Math.ceil(rank));
  return low + (high - low) * (rank - Math.floor(rank));
};

/** Ten bins of the stated value: [0,10) … [80,90), [90,100]. */
const histogramOf = (counts: readonly number[]): number[] => {
  const bins = new Array<number>(10).fill(0);
  for (const [value, count] of counts.entries()) {
    bins[Math.min(9, Math.floor(value / 10))]! += count;
  }
  return bins;
};

export interface QuestionShape {
  readonly id: string;
  readonly question_type: 'binary' | 'multi';
  readonly options: readonly string[];
}

/** The option with the highest mean, the first of equals; -1 while there is none. */
export const leadingOf = (sums: readonly number[], total: number): number =>
  total === 0 ? -1 : sums.indexOf(Math.max(...sums));

/** The mean that so many predictions give an option, in percent; null for none of them. */
export const meanGiven = (sum: number, count: number, options: number): number | null =>
  mean(sum, (options - 1) * count);

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
const method = 'capped-log-odds-1';

const alike = 0.25;
const least_percent = 1;
/** Fewer owners than these are never called contested. */
const least_owners = 5;

/** Of a stated probability in per cent, kept between 1 and 99. */
export const logOdds = (percent: number): number => {
  const p = Math.min(100 - least_percent, Math.max(least_percent, percent)) / 100;
  return Math.log(p / (1 - p));
};

/** To nine places: the noise of floating point is gone, and equal values are equal. */
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
const isContested = (sides: readonly number[], owners: number): boolean => {
  const [leader = 0, runner_up = 0] = [...sides].sort((a, b) => b - a).map(cleaned);
  return cleaned(owners) >= least_owners && runner_up * 2 >= leader;
};

const weightOf = ({ count, size }: Cell): number => count / size;

/** With options there is no probability of YES, and so no mean and no pool of it. */
const poolCells = (cells: readonly Cell[], is_binary: boolean) => {
  const families = [...groupBy(cells, ({ family }) => family).values()].map((some) => ({
    weight: sumOf(some, weightOf),
    log_odds: sumOf(some, (cell) => weightOf(cell) * logOdds(cell.value)),
  }));
  const sides = [...groupBy(cells, ({ option, yes }) => option ?? yes).values()];
  const weights = sides.map((some) => sumOf(some, weightOf));
  const owners = sumOf(cells, weightOf);
  const stated = sumOf(cells, (cell) => weightOf(cell) * cell.value);
  const has_pool = is_binary && owners > 0;
  return {
    /** Mean over owners of the mean of what they state. */
    by_owner_mean: has_pool ? shown(stated / owners) : null,
    effective_families: shown(effectiveOf(families).count),
    extremized: has_pool ? shown(extremize(families)) : null,
    contested: isContested(weights, owners),
  };
};

/**
 * The consensus as it goes over the wire. With options `yes` means the leading option, the
 * statistics of the probability of YES are null, and `yes_percent` is a share of first choices.
 */
export const computeConsensus = (question: QuestionShape, tally: Tally) => {
  const { question_type, options: names } = question;
  const { cells, given, offset, updated_at } = tally;
  const binary = question_type === 'binary';
  const sums = names.map((_, n) =>
    [...given.values()].reduce((sum, family) => sum + (family[n] ?? 0), 0),
  );
  const leading = leadingOf(sums, cells.length);
  const isYes = ({ yes, option }: Cell): boolean => (binary ? yes === true : option === leading);
  const figuresOf = (some: readonly Cell[]) => {
    const count = sumOf(some, (cell) => cell.count);
    const yes_count = sumOf(some.filter(isYes), (cell) => cell.count);
    const value = sumOf(some, (cell) => cell.count * cell.value);
    const confidence = sumOf(
      some,
      ({ yes, value: percent, ...cell }) => cell.count * (yes === false ? 100 - percent : percent),
    );
    return {
      count,
      yes_count,
      yes_percent: share(yes_count, count),
      avg_confidence: mean(confidence, count),
      mean_probability: binary ? mean(value, count) : null,
    };
  };
  const { count: total, yes_count, yes_percent, ...figures } = figuresOf(cells);
  const options = names.map((option, n) => {
    const { count, avg_confidence } = figuresOf(cells.filter((cell) => cell.option === n));
    const mean_probability = meanGiven(sums[n] as number, total, names.length);
    return { option, count, percent: share(count, total), mean_probability, avg_confidence };
  });
  const families = groupBy(cells, ({ family }) => family);
  const model_breakdown = [...families.keys()].sort().map((model_family) => {
    const { yes_count: _, ...of_family } = figuresOf(families.get(model_family) ?? []);
    const means = (given.get(model_family) ?? []).map((sum) =>
      meanGiven(sum, of_family.count, names.length),
    );
    return { model_family, ...of_family, ...(binary ? {} : { option_probabilities: means }) };
  });
  const counts = new Array<number>(101).fill(0);
  for (const { value, count } of cells) counts[value]! += count;
  const at = (q: number): number | null => (binary ? quantile(counts, total, q) : null);
  const pool = poolCells(cells, binary);
  return {
    question_id: question.id,
    question_type,
    total_predictions: total,
    forecast: binary ? pool.extremized : (options[leading]?.mean_probability ?? null),
    leading_option: options[leading]?.option ?? null,
    yes_count,
    no_count: total - yes_count,
    yes_percent,
    no_percent: share(total - yes_count, total),
    ...figures,
    median_probability: at(0.5),
    p25: at(0.25),
    p75: at(0.75),
    histogram: histogramOf(counts),
    ...(binary ? {} : { options }),
    model_breakdown,
    ...pool,
    method,
    offset,
    updated_at,
  };
};

export type Consensus = ReturnType<typeof computeConsensus>;
