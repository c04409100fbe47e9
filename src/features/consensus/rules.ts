import { method, poolCells } from './pooling.js';

/**
 * The consensus of a question, computed from its tally: how many predictions there are for each
 * family, stated value, and number of predictions that their owner has. The tally is the sufficient
 * statistic of everything below, so means and quantiles are exact.
 */

/** What a prediction says: `yes` and its probability, or an `option` and the confidence in it. */
export interface Said {
  readonly family: string;
  readonly yes: boolean | null;
  readonly option: number | null;
  /** Binary: stated probability of YES, 0–100. Multi: confidence in the option, 0–100. */
  readonly value: number;
}

/** One cell of a tally. */
export interface Cell extends Said {
  readonly count: number;
  /** How many predictions on the question the owner of each of these has. */
  readonly size: number;
}

export interface Tally {
  readonly cells: readonly Cell[];
  /** Offset of the last prediction that is counted in; 0 where there is none. */
  readonly offset: number;
  readonly updated_at: string | null;
}

export const cellField = ({ family, yes, option, value }: Said): string =>
  `${family}|${option === null ? (yes ? 'y' : 'n') : option}|${value}`;

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

/** The option most predictions are on; the first of equals. -1 while there is none. */
const leadingOption = (by_option: readonly Sums[]): number => {
  const most = Math.max(0, ...by_option.map(({ count }) => count));
  return most === 0 ? -1 : by_option.findIndex(({ count }) => count === most);
};

const sumTally = ({ question_type, options }: QuestionShape, cells: readonly Cell[]) => {
  const by_option = options.map(noSums);
  for (const cell of cells) {
    if (cell.option !== null) addCell(by_option[cell.option] ?? noSums(), cell, false);
  }
  const leading = leadingOption(by_option);
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
  return { all, by_option, by_family, counts };
};

const optionsOf = ({ options }: QuestionShape, by_option: readonly Sums[], total: number) =>
  options.map((option, index) => {
    const { count, confidence } = by_option[index] as Sums;
    return {
      option,
      count,
      percent: share(count, total),
      avg_confidence: mean(confidence, count),
    };
  });

/**
 * The consensus as it goes over the wire. For a multi question `yes` means the leading option, and
 * the statistics of the probability of YES are null.
 */
export const computeConsensus = (question: QuestionShape, tally: Tally) => {
  const { cells, offset, updated_at } = tally;
  const binary = question.question_type === 'binary';
  const { all, by_option, by_family, counts } = sumTally(question, cells);
  const total = all.count;
  const said = cells.map((cell) => ({ side: cell.option ?? (cell.yes ? 1 : 0), ...cell }));
  const at = (q: number): number | null => (binary ? quantile(counts, total, q) : null);
  return {
    question_id: question.id,
    question_type: question.question_type,
    total_predictions: total,
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
    ...(binary ? {} : { options: optionsOf(question, by_option, total) }),
    model_breakdown: [...by_family.keys()].sort().map((model_family) => {
      const { count, yes, value, confidence } = by_family.get(model_family) as Sums;
      return {
        model_family,
        count,
        yes_percent: share(yes, count),
        avg_confidence: mean(confidence, count),
        mean_probability: binary ? mean(value, count) : null,
      };
    }),
    ...poolCells(said, binary),
    method,
    offset,
    updated_at,
  };
};

export type Consensus = ReturnType<typeof computeConsensus>;
