import { distributionOf } from '../predictions/index.js';
import { method, poolCells } from './pooling.js';

/**
 * The consensus of a question, computed from its tally: how many predictions there are for each
 * family, stated value, and number of predictions that their owner has; and with options the sum of
 * what each family gives to each of them. The tally is the sufficient statistic of everything
 * below, all of it whole numbers, so means and quantiles are exact.
 */

/** What a prediction says: `yes` and its probability, or an `option` and the confidence in it. */
export interface Said {
  readonly family: string;
  readonly yes: boolean | null;
  readonly option: number | null;
  /** Binary: stated probability of YES, 0–100. Multi: confidence in the option, 0–100. */
  readonly value: number;
}

/** With options also the whole distribution that is stated. */
export interface Stated extends Said {
  /**
   * What each option is given, in percent · (options − 1): a prediction that names one option
   * spreads the rest evenly, and only so are all shares whole numbers. Null without options.
   */
  readonly given: readonly number[] | null;
}

/** What a prediction gives to each of so many options, from what is stored of it. */
export const givenBy = (
  { option, value }: Pick<Said, 'option' | 'value'>,
  probabilities: readonly number[] | null,
  options: number,
): readonly number[] | null => {
  if (option === null) return null;
  const one = { prediction: null, probability: null, selected_option: option, probabilities };
  const { units, whole } = distributionOf({ ...one, confidence: value }, options);
  return units.map((unit) => (unit * 100 * (options - 1)) / whole);
};

/** One cell of a tally. */
export interface Cell extends Said {
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

/** Sums over some of the cells. */
interface Sums {
  count: number;
  yes: number;
  value: number;
  confidence: number;
}

const noSums = (): Sums => ({ count: 0, yes: 0, value: 0, confidence: 0 });

const addCell = (sums: Sums, { yes, value, count }: Cell, is_yes: boolean): void => {
  sums.count += count;
  if (is_yes) sums.yes += count;
  sums.value += count * value;
  sums.confidence += count * (yes === false ? 100 - value : value);
};

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

const sumTally = ({ question_type, options }: QuestionShape, { cells, given }: Tally) => {
  const by_option = options.map(noSums);
  for (const cell of cells) {
    if (cell.option !== null) addCell(by_option[cell.option] ?? noSums(), cell, false);
  }
  const sums = options.map((_, n) => {
    let sum = 0;
    for (const family of given.values()) sum += family[n] ?? 0;
    return sum;
  });
  const leading = leadingOf(sums, cells.length);
  const all = noSums();
  const by_family = new Map<string, Sums>();
  const counts = new Array<number>(101).fill(0);
  for (const cell of cells) {
    const is_yes = question_type === 'binary' ? cell.yes === true : cell.option === leading;
    const family = by_family.get(cell.family) ?? noSums();
    by_family.set(cell.family, family);
    addCell(all, cell, is_yes);
    addCell(family, cell, is_yes);
    counts[cell.value]! += cell.count;
  }
  return { all, by_option, sums, leading, by_family, counts };
};

type TallySums = ReturnType<typeof sumTally>;

/** `percent` is the share of first choices, `mean_probability` what is stated on average. */
const optionsOf = ({ options }: QuestionShape, { by_option, sums, all }: TallySums) =>
  options.map((option, index) => {
    const { count, confidence } = by_option[index] as Sums;
    return {
      option,
      count,
      percent: share(count, all.count),
      mean_probability: meanGiven(sums[index] as number, all.count, options.length),
      avg_confidence: mean(confidence, count),
    };
  });

const breakdownOf = (
  { question_type, options }: QuestionShape,
  { by_family }: TallySums,
  given: Tally['given'],
) =>
  [...by_family.keys()].sort().map((model_family) => {
    const { count, yes, value, confidence } = by_family.get(model_family) as Sums;
    const binary = question_type === 'binary';
    const sums = given.get(model_family) ?? [];
    return {
      model_family,
      count,
      yes_percent: share(yes, count),
      avg_confidence: mean(confidence, count),
      mean_probability: binary ? mean(value, count) : null,
      ...(binary
        ? {}
        : { option_probabilities: sums.map((sum) => meanGiven(sum, count, options.length)) }),
    };
  });

/**
 * The consensus as it goes over the wire. With options `yes` means the leading option, the
 * statistics of the probability of YES are null, and `yes_percent` is a share of first choices.
 */
export const computeConsensus = (question: QuestionShape, tally: Tally) => {
  const { cells, given, offset, updated_at } = tally;
  const binary = question.question_type === 'binary';
  const summed = sumTally(question, tally);
  const { all, counts, leading } = summed;
  const total = all.count;
  const said = cells.map((cell) => ({ side: cell.option ?? (cell.yes ? 1 : 0), ...cell }));
  const pool = poolCells(said, binary);
  const options = optionsOf(question, summed);
  const at = (q: number): number | null => (binary ? quantile(counts, total, q) : null);
  return {
    question_id: question.id,
    question_type: question.question_type,
    total_predictions: total,
    forecast: binary ? pool.extremized : (options[leading]?.mean_probability ?? null),
    leading_option: options[leading]?.option ?? null,
    yes_count: all.yes,
    no_count: total - all.yes,
    yes_percent: share(all.yes, total),
    no_percent: share(total - all.yes, total),
    avg_confidence: mean(all.confidence, total),
    mean_probability: binary ? mean(all.value, total) : null,
    median_probability: at(0.5),
    p25: at(0.25),
    p75: at(0.75),
    histogram: histogramOf(counts),
    ...(binary ? {} : { options }),
    model_breakdown: breakdownOf(question, summed, given),
    ...pool,
    method,
    offset,
    updated_at,
  };
};

export type Consensus = ReturnType<typeof computeConsensus>;
