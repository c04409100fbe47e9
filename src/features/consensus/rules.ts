import { groupBy } from '../../kit/group-by.js';
import { whole_bp } from '../../kit/percent.js';
import { distributionOf, type ForecastColumns } from '../predictions/distribution.js';
import type { RangeColumns } from '../questions/range.js';
import type { QuestionType, Value } from '../questions/schema.js';
import type { Fit } from './correlation.js';
import {
  type ChanceSums,
  candidates as candidate_names,
  computeCandidates,
  makeValueCounts,
  method as mixture_method,
} from './mixture.js';
import {
  fanOf,
  givenByCdf,
  headlineFan,
  isNumber,
  number_parts,
  numberConsensus,
  showFan,
} from './numbers.js';
import { extremize, headlineOf, method as pool_method, sharesOf } from './pool.js';
import { shown } from './reading.js';

/**
 * Computes the consensus of a question from its tally. A tally has counts and sums for each family,
 * side and number of predictions per owner. It also counts how often each value is stated, and how
 * many owners have the same numbers of predictions from the same families. With options, it sums
 * the shares that each family gives them, and their log odds, and counts the stated shares of each
 * option. The tally is a sufficient statistic for everything below.
 * It has only whole numbers, so means and quantiles are exact, and it stays small however many
 * predictions there are. Values are in basis points, figures in percent.
 */

/** The side of a prediction: `yes` with its probability, or an `option` with its confidence. */
export interface Position {
  readonly family: string;
  readonly yes: boolean | null;
  readonly option: number | null;
  /** In basis points: the stated chance of YES, or the confidence in the option. */
  readonly value: number;
}

/** A position, with the whole distribution if the question has options or asks for a number. */
export interface Forecast extends Position {
  /**
   * The share of each option, in basis points · (options − 1). A prediction that names one option
   * spreads the rest evenly, and in this unit all shares are whole numbers. For a number, the
   * result of `givenByCdf`. Null for yes/no.
   */
  readonly given: readonly number[] | null;
}

/** Returns the share that a prediction gives to each option, from its stored fields. */
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

/** Predictions of one family and side, whose owners have the same number of predictions. */
export interface Cell extends Omit<Position, 'value'> {
  /** Number of predictions that each of these owners has on the question. */
  readonly size: number;
  readonly count: number;
  /** Sum of their values. */
  readonly sum: number;
  /** Sum of their log odds, in billionths; 0 with options. */
  readonly log_odds: number;
}

/** Log odds of each option, in billionths, summed over the predictions of a family and a size. */
export interface OptionCell extends Pick<Cell, 'family' | 'size'> {
  readonly log_odds: readonly number[];
}

/** Owners that have the same number of predictions from each family. */
export interface Mix {
  readonly families: readonly (readonly [family: string, predictions: number])[];
  readonly owners: number;
}

export interface Tally {
  readonly cells: readonly Cell[];
  /** How many predictions state each value. */
  readonly values: ReadonlyMap<number, number>;
  readonly mixes: readonly Mix[];
  /** By family: the summed shares of each option, or of each part of a number. */
  readonly given: ReadonlyMap<string, readonly number[]>;
  readonly option_cells: readonly OptionCell[];
  /** By option: how many predictions give it each share, in whole basis points. */
  readonly option_values: readonly ReadonlyMap<number, number>[];
  /** Offset of the last counted forecast; 0 without forecasts. */
  readonly offset: number;
  readonly updated_at: string | null;
}

export const no_tally: Tally = {
  cells: [],
  values: new Map(),
  mixes: [],
  given: new Map(),
  option_cells: [],
  option_values: [],
  offset: 0,
  updated_at: null,
};

/**
 * Returns `part` of `whole` in percent with at most two decimals, halves rounded up as in SQL. The
 * product is a whole number, so every half is exact. Null if `whole` is 0.
 */
export const share = (part: number, whole: number): number | null =>
  whole === 0 ? null : Math.round((whole_bp * part) / whole) / 100;
/** Returns the mean of basis points in percent, rounded like `share`. */
export const mean = (sum: number, count: number): number | null =>
  count === 0 ? null : Math.round(sum / count) / 100;

const sumOf = (cells: readonly Cell[], read: (cell: Cell) => number): number =>
  cells.reduce((sum, cell) => sum + read(cell), 0);

/** Counts the stated values in ten bins, in percent: [0,10) … [80,90), [90,100]. */
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

/** Returns the length of `given`. */
export const partsOf = (question: Pick<QuestionShape, 'options' | 'range_min'>): number =>
  isNumber(question) ? number_parts : question.options.length;

/** Rounds to nine decimals, so that floating-point noise does not make equal values differ. */
const cleaned = (value: number): number => Math.round(value * 1e9) / 1e9;

/** Returns the index of the first option with the highest headline; −1 without forecasts. */
export const leadingOf = (percents: readonly number[], total: number): number => {
  const all = percents.map(cleaned);
  return total === 0 ? -1 : all.indexOf(Math.max(...all));
};

/** Returns the mean that `count` predictions give an option, in percent; null if `count` is 0. */
export const meanGiven = (sum: number, count: number, options: number): number | null =>
  mean(sum, (options - 1) * count);

/** A question with fewer owners is never contested. */
const min_owners = 5;

/** True if there are at least five owners and the runner-up has at least half the top weight. */
const isContested = (sides: readonly number[], owners: number): boolean => {
  const [leader = 0, runner_up = 0] = [...sides].sort((a, b) => b - a).map(cleaned);
  return cleaned(owners) >= min_owners && runner_up * 2 >= leader;
};

const weightOf = ({ count, size }: Cell): number => count / size;

/** Returns the sum of the squares of the owners' shares of the pool. */
const squaresOf = (mixes: readonly Mix[], shares: ReadonlyMap<string, number>): number =>
  mixes.reduce((sum, { families, owners }) => {
    const size = families.reduce((all, [, predictions]) => all + predictions, 0);
    const own = families.reduce((all, [name, n]) => all + ((shares.get(name) ?? 0) * n) / size, 0);
    return sum + owners * own ** 2;
  }, 0);

const countsOf = (values: ReadonlyMap<number, number>) => {
  const counts = makeValueCounts();
  for (const [value, count] of values) counts.add(value, count);
  return counts;
};

/** Returns the sums of YES, or of each option. Empty for a number or without forecasts. */
const chanceSums = (
  { cells, values, option_cells, option_values }: Tally,
  {
    of_options,
    owners,
    shares,
  }: {
    readonly of_options: boolean;
    readonly owners: number;
    readonly shares: ReadonlyMap<string, number>;
  },
): readonly ChanceSums[] => {
  const sum = (logOddsOf: (family: string) => number, n: number): number =>
    of_options
      ? option_cells.reduce(
          (all, one) => all + (logOddsOf(one.family) * (one.log_odds[n] ?? 0)) / one.size,
          0,
        )
      : sumOf(cells, (one) => (logOddsOf(one.family) * one.log_odds) / one.size);
  return (of_options ? option_values : [values]).map((stated, n) => ({
    median: countsOf(stated).quantile(0.5) as number,
    mean_log_odds: sum(() => 1, n) / owners,
    pooled_log_odds: sum((family) => shares.get(family) ?? 0, n),
  }));
};

/** Pools the cells. `candidates` is empty for a number and without forecasts. */
const poolCells = (tally: Tally, question: QuestionShape, rho: number) => {
  const { cells, mixes } = tally;
  const is_binary = question.question_type === 'binary';
  const families = [...groupBy(cells, ({ family }) => family)].map(([name, some]) => ({
    name,
    weight: sumOf(some, weightOf),
  }));
  const weights = sharesOf(families.map(({ weight }) => weight));
  const shares = new Map(families.map(({ name }, n) => [name, weights[n] as number]));
  const { effective_forecasters, extremizing } = extremize(squaresOf(mixes, shares), rho);
  const sides = [...groupBy(cells, ({ option, yes }) => option ?? yes).values()];
  const owners = sumOf(cells, weightOf);
  const stated = sumOf(cells, ({ sum, size }) => sum / size);
  const of_options = question.options.length > 0;
  const chances =
    isNumber(question) || owners === 0 ? [] : chanceSums(tally, { of_options, owners, shares });
  const candidates = chances.length === 0 ? [] : computeCandidates(chances, extremizing);
  const has_pool = is_binary && owners > 0;
  return {
    candidates,
    figures: {
      /** Mean over owners of each owner's mean forecast. */
      by_owner_mean: has_pool ? shown(stated / owners / 100) : null,
      effective_forecasters: owners > 0 ? shown(effective_forecasters) : 0,
      extremizing: has_pool ? shown(extremizing) : null,
      pooled: has_pool ? shown(candidates[2]![0] as number) : null,
      contested: isContested(
        sides.map((some) => sumOf(some, weightOf)),
        owners,
      ),
    },
  };
};

interface Computed {
  readonly pool: ReturnType<typeof poolCells>;
  readonly number: ReturnType<typeof numberConsensus>;
  /** Index of the leading option; −1 without options. */
  readonly leading: number;
  readonly means: readonly number[];
}

/** Returns the figures of which `forecast` is the weighted mean, with their weights. */
const showCandidates = ({ weights }: Pick<Fit, 'weights'>, computed: Computed) => {
  const { pool, number, leading, means } = computed;
  const show = (name: string, weight: number, forecast: Value) => ({ name, weight, forecast });
  if (number !== null) {
    const shares = weights?.number ?? [1];
    return shares.map((weight, n) => {
      const name = candidate_names.number[n]!;
      return show(name, weight, number[name].p50);
    });
  }
  const at = Math.max(0, leading);
  if (weights !== null) {
    return weights.chance.map((weight, n) =>
      show(candidate_names.chance[n]!, weight, shown(pool.candidates[n]![at]!)),
    );
  }
  return leading < 0
    ? [show('pooled', 1, shown(pool.candidates[2]![0]!))]
    : [show('mean', 1, shown(means[leading]!))];
};

/**
 * Returns the consensus as the API shows it. With options, `yes` means the leading option, the
 * statistics of the probability of YES are null, and `yes_percent` is a share of first choices.
 */
export const computeConsensus = (
  question: QuestionShape,
  tally: Tally,
  fit: Pick<Fit, 'number' | 'rho' | 'weights'>,
) => {
  const { question_type, options: names } = question;
  const { cells, values, given, offset, updated_at } = tally;
  const binary = question_type === 'binary';
  const sums = Array.from({ length: partsOf(question) }, (_, n) =>
    [...given.values()].reduce((sum, family) => sum + (family[n] ?? 0), 0),
  );
  const of_number = isNumber(question);
  const pool = poolCells(tally, question, fit.rho);
  const count_all = sumOf(cells, (cell) => cell.count);
  const means = sums.map((sum) => sum / (names.length - 1) / count_all / 100);
  const chances = pool.candidates.length === 0 ? [] : headlineOf(pool.candidates, means, fit);
  const leading = names.length === 0 ? -1 : leadingOf(chances, cells.length);
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
    const forecast = total === 0 ? null : shown(chances[n] as number);
    return {
      option,
      count,
      percent: share(count, total),
      forecast,
      mean_probability,
      avg_confidence,
    };
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
  const fan = headlineFan(question, { sums, count: total, weights: fit.weights });
  const headline = fan === null ? null : showFan(question, fan);
  const stated = countsOf(values);
  const at = (q: number): number | null => (binary ? stated.quantile(q) : null);
  return {
    question_id: question.id,
    question_type,
    total_predictions: total,
    forecast: headline?.p50 ?? (total === 0 ? null : shown(chances[Math.max(0, leading)]!)),
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
    ...(headline === null ? {} : { headline }),
    ...number,
    model_breakdown,
    ...pool.figures,
    method: fit.weights === null ? pool_method : mixture_method,
    candidates: total === 0 ? [] : showCandidates(fit, { pool, number, leading, means }),
    rho: fit.rho,
    fit: fit.number,
    offset,
    updated_at,
    scale: 'percent' as const,
  };
};

export type Consensus = ReturnType<typeof computeConsensus>;
