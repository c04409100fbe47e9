import {
  extremize,
  type Family,
  leadingOf,
  logOdds,
  mean,
  meanGiven,
  type QuestionShape,
  quantile,
  share,
  shown,
} from './rules.js';
import type { Moment, MoveWire, Point } from './schema.js';

/**
 * The consensus as it moves, prediction by prediction. After each one its figures are those that
 * `GET /api/questions/{id}/consensus` gave at that moment: the same formulas and the same rounding,
 * with sums that are carried on, so that a step costs the same however many came before.
 */

export interface TimedForecast {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly family: string;
  /** The predictions of one owner share one weight. */
  readonly owner: string;
  /** Binary: 1 for YES, 0 for NO. Multi: number of the option. */
  readonly side: number;
  /** Binary: stated probability of YES. Multi: confidence in the option. 0 to 100. */
  readonly value: number;
  /** Multi: what each option is given, in percent · (options − 1); empty for a binary question. */
  readonly given: readonly number[];
}

export type RunShape = Omit<QuestionShape, 'id'>;

/** The weights of families, of which the predictions of an owner share one (see `poolCells`). */
const makePools = () => {
  /** A prediction adds to its family, for a whole weight, its log odds. */
  type Part = readonly [family: Family, log_odds: number];
  const families = new Map<string, Family>();
  const owners = new Map<string, readonly Part[]>();

  const shift = (parts: readonly Part[], sign: 1 | -1): void => {
    const weight = sign / parts.length;
    for (const [family, log_odds] of parts) {
      family.weight += weight;
      family.log_odds += weight * log_odds;
    }
  };

  return {
    add({ owner, family: name, value }: TimedForecast): void {
      const family = families.get(name) ?? { weight: 0, log_odds: 0 };
      families.set(name, family);
      const before = owners.get(owner) ?? [];
      const after: readonly Part[] = [...before, [family, logOdds(value)]];
      shift(before, -1);
      shift(after, 1);
      owners.set(owner, after);
    },
    read: (): number | null =>
      families.size === 0 ? null : shown(extremize([...families.values()])),
  };
};

export const makeRun = ({ question_type, options }: RunShape) => {
  const is_binary = question_type === 'binary';
  const pools = is_binary ? makePools() : null;
  const sides = new Array<number>(is_binary ? 2 : options.length).fill(0);
  const values = new Array<number>(101).fill(0);
  const sums = options.map(() => 0);
  let count = 0;
  let sum = 0;
  const means = (): number[] => sums.map((one) => meanGiven(one, count, options.length) ?? 0);
  const at = (q: number): number | null => (is_binary ? quantile(values, count, q) : null);
  return {
    add(one: TimedForecast): void {
      const { side, value, given } = one;
      count += 1;
      sum += value;
      sides[side] = (sides[side] as number) + 1;
      values[value] = (values[value] as number) + 1;
      for (const [n, part] of given.entries()) sums[n] = (sums[n] as number) + part;
      pools?.add(one);
    },
    /** As the consensus has it. */
    read(): Moment {
      const extremized = pools?.read() ?? null;
      const option_probabilities = means();
      const leading = leadingOf(sums, count);
      return {
        count,
        forecast: is_binary ? extremized : (option_probabilities[leading] ?? null),
        leading_option: options[leading] ?? null,
        yes_percent: share(sides[is_binary ? 1 : leading] ?? 0, count),
        mean_probability: is_binary ? mean(sum, count) : null,
        median_probability: at(0.5),
        p25: at(0.25),
        p75: at(0.75),
        extremized,
        option_probabilities,
        option_percents: is_binary ? [] : sides.map((n) => share(n, count)),
      };
    },
  };
};
export type Run = ReturnType<typeof makeRun>;

/**
 * How the consensus of a question came about, in as many points as a chart can show at most: of all
 * its moments those that show its shape. Predictions of one millisecond are one moment, so that the
 * order among them does not matter.
 */
export interface Course {
  readonly shape: RunShape;
  /** Offset of the newest prediction that is counted in; 0 where there is none. */
  readonly offset: number;
  readonly total: number;
  readonly moments: number;
  readonly points: readonly Point[];
  readonly drift_events: readonly MoveWire[];
}
