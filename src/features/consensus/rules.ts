import { groupBy } from '../../kit/group-by.js';
import { whole_bp } from '../../kit/percent.js';
import { distributionOf, type ForecastColumns } from '../predictions/distribution.js';
import type { RangeColumns } from '../questions/range.js';
import type { QuestionType } from '../questions/schema.js';
import type { Fit } from './correlation.js';
import { fanOf, givenByCdf, isNumber, number_parts, numberConsensus, showFan } from './numbers.js';
import { extremize, method, sharesOf } from './pool.js';
import { shown } from './reading.js';

/**
 * The consensus of a question, computed from its tally: counts and sums for each family, side and
 * number of predictions that their owner has; how often each value is stated; how many owners have
 * the same numbers of predictions of the same families; and with options the sum of what each
 * family gives to each of them. The tally is the sufficient statistic of everything below, all of
 * it whole numbers, so means and quantiles are exact; and however many predictions there are, it
 * stays small. Values are in basis points, figures in percent.
 */

/** The side of a prediction: `yes` and its probability, or an `option` and the confidence in it. */
export interface Position {
  readonly family: string;
  readonly yes: boolean | null;
  readonly option: number | null;
  /** In basis points: the stated chance of YES, or the confidence in the option. */
  readonly value: number;
}

/** With options, and of a number, also the whole distribution that is stated. */
export interface Forecast extends Position {
  /**
   * What each option is given, in basis points · (options − 1): a prediction that names one option
   * spreads the rest evenly, and only so are all shares whole numbers. Of a number what
   * `givenByCdf` makes of it. Null for yes/no.
   */
  readonly given: readonly number[] | null;
}

/** The share that a prediction gives to each of so many options, from its stored fields. */
export const givenBy = (
  {
    option,
    value,
    cdf,
  }: Pick<Position, 'option' | 'value'> & Partial<Pick<ForecastColumns, 'cdf'>>,
  probabilities: readonly number[] | null,
  options: number,
): readonly number[] | null => {
  if (cdf) return givenByCdf(cdf);
  if (option === null) return null;
  const one = {
    prediction: null,
    probability: null,
    selected_option: option,
    probabilities,
    cdf: null,
  };
  const { units, whole } = distributionOf({ ...one, confidence: value }, options);
  return units.map((unit) => (unit * whole_bp * (options - 1)) / whole);
};

/** Predictions of a family that take the same side, and whose owners have as many. */
export interface Cell extends Omit<Position, 'value'> {
  /** How many predictions on the question the owner of each of these has. */
  readonly size: number;
  readonly count: number;
  /** Of their values. */
  readonly sum: number;
  /** Sum of their log odds, in billionths; 0 with options. */
  readonly log_odds: number;
}

/** Owners that have the same number of predictions of each family. */
export interface Mix {
  readonly families: readonly (readonly [family: string, predictions: number])[];
  readonly owners: number;
}

export interface Tally {
  readonly cells: readonly Cell[];
  /** How often each value is stated. */
  readonly values: ReadonlyMap<number, number>;
  readonly mixes: readonly Mix[];
  /** By family, for each option (or part of a number) the sum of what it is given. */
  readonly given: ReadonlyMap<string, readonly number[]>;
  /** Offset of the last forecast that is counted in; 0 where there is none. */
  readonly offset: number;
  readonly updated_at: string | null;
}

export const no_tally: Tally = {
  cells: [],
  values: new Map(),
  mixes: [],
  given: new Map(),
  offset: 0,
  updated_at: null,
};

/**
 * `part` of `whole` in percent with at most two decimals, a half up as in SQL. The product is a
 * whole number, so the quotient of every half is exact. Null if nobody forecast.
 */
export const share = (part: number, whole: number): number | null =>
  whole === 0 ? null : Math.round((whole_bp * part) / whole) / 100;
/** The mean of basis points in percent, rounded likewise. */
export const mean = (sum: number, count: number): number | null =>
  count === 0 ? null : Math.round(sum / count) / 100;

const sumOf = (cells: readonly Cell[], read: (cell: Cell) => number): number =>
  cells.reduce((sum, cell) => sum + read(cell), 0);

const block = 100;

/** How often each value of 0 to 10,000 is stated: in blocks, so that a rank is soon found. */
export const makeValueCounts = () => {
  const counts = new Int32Array(whole_bp + 1);
  const blocks = new Int32Array(Math.floor(whole_bp / block) + 1);
  let total = 0;
  const valueAt = (index: number): number => {
    let seen = 0;
    let n = 0;
    while (seen + (blocks[n] as number) <= index) seen += blocks[n++] as number;
    let value = n * block;
    while (seen + (counts[value] as number) <= index) seen += counts[value++] as number;
    return value;
  };
  return {
    add(value: number, by: number): void {
      counts[value]! += by;
      blocks[Math.floor(value / block)]! += by;
      total += by;
    },
    /**
     * Quantile in percent by linear interpolation (Hyndman and Fan, type 7). `q` is a number of
     * quarters, and so the result is exact before it is rounded to a basis point, a half up.
     */
    quantile(q: number): number | null {
      if (total === 0) return null;
      const rank = (total - 1) * q;
      const low = valueAt(Math.floor(rank));
      const high = valueAt(Math.ceil(rank));
      return Math.round(low + (high - low) * (rank - Math.floor(rank))) / 100;
    },
  };
};

/** Ten bins of the stated value in percent: [0,10) … [80,90), [90,100]. */
const histogramOf = (values: Tally['values']): number[] => {
  const bins = new Array<number>(10).fill(0);
  for (const [value, count] of values) bins[Math.min(9, Math.floor(value / 1_000))]! += count;
  return bins;
};

export interface QuestionShape extends Pick<RangeColumns, 'range_min' | 'range_max'> {
  readonly id: string;
  readonly question_type: QuestionType;
  readonly options: readonly string[];
}

/** How many numbers `given` has. */
export const partsOf = (question: Pick<QuestionShape, 'options' | 'range_min'>): number =>
  isNumber(question) ? number_parts : question.options.length;

/** The option with the highest mean, the first of equals; -1 while there is none. */
export const leadingOf = (sums: readonly number[], total: number): number =>
  total === 0 ? -1 : sums.indexOf(Math.max(...sums));

/** The mean that so many predictions give an option, in percent; null for none of them. */
export const meanGiven = (sum: number, count: number, options: number): number | null =>
  mean(sum, (options - 1) * count);

/** To nine places: the noise of floating point is gone, and equal values are equal. */
const cleaned = (value: number): number => Math.round(value * 1e9) / 1e9;

/** Fewer owners than these are never called contested. */
const least_owners = 5;

/** At least five owners, and the runner-up has at least half as much weight as the leader. */
const isContested = (sides: readonly number[], owners: number): boolean => {
  const [leader = 0, runner_up = 0] = [...sides].sort((a, b) => b - a).map(cleaned);
  return cleaned(owners) >= least_owners && runner_up * 2 >= leader;
};

const weightOf = ({ count, size }: Cell): number => count / size;

/** The sum over owners of the square of their share of the pool. */
const squaresOf = (mixes: readonly Mix[], shares: ReadonlyMap<string, number>): number =>
  mixes.reduce((sum, { families, owners }) => {
    const size = families.reduce((all, [, predictions]) => all + predictions, 0);
    const own = families.reduce((all, [name, n]) => all + ((shares.get(name) ?? 0) * n) / size, 0);
    return sum + owners * own ** 2;
  }, 0);

/** With options there is no probability of YES, and so no mean and no pool of it. */
const poolCells = ({ cells, mixes }: Tally, is_binary: boolean, rho: number) => {
  const families = [...groupBy(cells, ({ family }) => family)].map(([name, some]) => ({
    name,
    weight: sumOf(some, weightOf),
    log_odds: sumOf(some, (cell) => cell.log_odds / cell.size),
  }));
  const weights = sharesOf(families.map(({ weight }) => weight));
  const shares = new Map(families.map(({ name }, n) => [name, weights[n] as number]));
  const log_odds = families.reduce(
    (sum, one) => sum + (shares.get(one.name) ?? 0) * one.log_odds,
    0,
  );
  const pooled = extremize(log_odds, squaresOf(mixes, shares), rho);
  const sides = [...groupBy(cells, ({ option, yes }) => option ?? yes).values()];
  const owners = sumOf(cells, weightOf);
  const stated = sumOf(cells, ({ sum, size }) => sum / size);
  const has_pool = is_binary && owners > 0;
  return {
    /** Mean over owners of the mean of what they state. */
    by_owner_mean: has_pool ? shown(stated / owners / 100) : null,
    effective_forecasters: owners > 0 ? shown(pooled.effective_forecasters) : 0,
    extremizing: has_pool ? shown(pooled.extremizing) : null,
    pooled: has_pool ? shown(pooled.percent) : null,
    contested: isContested(
      sides.map((some) => sumOf(some, weightOf)),
      owners,
    ),
  };
};

/**
 * The consensus as it goes over the wire. With options `yes` means the leading option, the
 * statistics of the probability of YES are null, and `yes_percent` is a share of first choices.
 */
export const computeConsensus = (question: QuestionShape, tally: Tally, fit: Fit) => {
  const { question_type, options: names } = question;
  const { cells, values, given, offset, updated_at } = tally;
  const binary = question_type === 'binary';
  const sums = Array.from({ length: partsOf(question) }, (_, n) =>
    [...given.values()].reduce((sum, family) => sum + (family[n] ?? 0), 0),
  );
  const of_number = isNumber(question);
  const leading = of_number ? -1 : leadingOf(sums, cells.length);
  const isYes = ({ yes, option }: Cell): boolean => (binary ? yes === true : option === leading);
  const figuresOf = (some: readonly Cell[]) => {
    const count = sumOf(some, (cell) => cell.count);
    const yes_count = sumOf(some.filter(isYes), (cell) => cell.count);
    const value = sumOf(some, ({ sum }) => sum);
    const confidence = sumOf(some, ({ yes, count, sum }) =>
      yes === false ? whole_bp * count - sum : sum,
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
    const means = names.map((_, n) =>
      meanGiven(given.get(model_family)?.[n] ?? 0, of_family.count, names.length),
    );
    const fan = fanOf(question, given.get(model_family) ?? [], of_family.count);
    return {
      model_family,
      ...of_family,
      ...(names.length === 0 ? {} : { option_probabilities: means }),
      ...(fan === null ? {} : { quantiles: showFan(question, fan) }),
    };
  });
  const number = numberConsensus(question, sums, total);
  const stated = makeValueCounts();
  for (const [value, count] of values) stated.add(value, count);
  const at = (q: number): number | null => (binary ? stated.quantile(q) : null);
  const pool = poolCells(tally, binary, fit.rho);
  return {
    question_id: question.id,
    question_type,
    total_predictions: total,
    forecast: binary
      ? pool.pooled
      : (number?.quantile_average.p50 ?? options[leading]?.mean_probability ?? null),
    leading_option: options[leading]?.option ?? null,
    yes_count,
    no_count: of_number ? 0 : total - yes_count,
    yes_percent,
    no_percent: share(of_number ? 0 : total - yes_count, total),
    ...figures,
    median_probability: at(0.5),
    p25: at(0.25),
    p75: at(0.75),
    histogram: histogramOf(of_number ? new Map() : values),
    ...(names.length === 0 ? {} : { options }),
    ...number,
    model_breakdown,
    ...pool,
    method,
    rho: fit.rho,
    fit: fit.number,
    offset,
    updated_at,
    scale: 'percent' as const,
  };
};

export type Consensus = ReturnType<typeof computeConsensus>;
