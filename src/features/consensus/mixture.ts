import { whole_bp } from '../../kit/percent.js';

/**
 * The headline, method `mixture-1`: a weighted mean of several candidates. Each candidate i is a
 * way to combine the same forecasts, and its weight depends on its losses on resolved questions:
 *
 *   w_i = exp(−c · Σ_q loss_iq) / Σ_j exp(−c · Σ_q loss_jq), with c = Q / (Q + 200)
 *
 * Q is the number of resolved questions q with forecasts by at least three owners. Without such
 * questions all weights are equal. `losses.ts` computes the losses.
 *
 * The candidates for yes/no and for each option, in percent:
 *
 *   median           of the stated chances, to a basis point
 *   mean_log_odds    the mean log odds of each owner, then the mean over owners, as a chance
 *   pooled           `capped-log-odds-2` (`pool.ts`)
 *   half_extremized  the same with d halfway to 1: (1 + d) / 2
 *
 * With options, each candidate is scaled so that its chances sum to 100 %. So the headline's do too.
 * A number or a date has the candidates `quantile_average` and `linear_pool` (`numbers.ts`).
 */
export const method = 'mixture-1';

export const chance_candidates = ['median', 'mean_log_odds', 'pooled', 'half_extremized'] as const;
export const number_candidates = ['quantile_average', 'linear_pool'] as const;
export const candidates = { chance: chance_candidates, number: number_candidates } as const;
/** `chance`: yes/no and options. `number`: numbers and dates. */
export type CandidateKind = keyof typeof candidates;

/** The weights of the candidates, in their order. They sum to 1. */
export type Weights = Readonly<Record<CandidateKind, readonly number[]>>;

const prior_questions = 200;

/** Takes the sum of each candidate's losses over `questions`. */
export const weightsOf = (losses: readonly number[], questions: number): readonly number[] => {
  const strength = questions / (questions + prior_questions);
  const least = Math.min(...losses);
  const raw = losses.map((loss) => Math.exp(-strength * (loss - least)));
  const sum = raw.reduce((all, one) => all + one, 0);
  return raw.map((one) => one / sum);
};

export const equal_weights: Weights = {
  chance: weightsOf([0, 0, 0, 0], 0),
  number: weightsOf([0, 0], 0),
};

/** Combines lists of equal length, one for each weight. */
export const mix = (
  lists: readonly (readonly number[])[],
  weights: readonly number[],
): readonly number[] =>
  lists[0]!.map((_, n) =>
    lists.reduce((sum, list, i) => sum + (weights[i] as number) * (list[n] as number), 0),
  );

/** The sums from which the candidates for one chance are computed. Log odds are in billionths. */
export interface ChanceSums {
  /** In percent. */
  readonly median: number;
  /** Mean over owners of the mean log odds of their agents. */
  readonly mean_log_odds: number;
  /** L of the pool. */
  readonly pooled_log_odds: number;
}

/** Converts log odds in billionths to percent. */
export const percentOf = (log_odds: number): number => 100 / (1 + Math.exp(-log_odds / 1e9));

const scale = (chances: readonly number[]): readonly number[] => {
  const sum = chances.reduce((all, one) => all + one, 0);
  return chances.map((one) => (sum === 0 ? 100 / chances.length : (100 * one) / sum));
};

/**
 * Returns each candidate's chances in percent, unrounded: one for yes/no, or one for each option.
 * `d` is the factor of the pool.
 */
export const computeCandidates = (
  sums: readonly ChanceSums[],
  d: number,
): readonly (readonly number[])[] => {
  const lists = [
    sums.map(({ median }) => median),
    sums.map((one) => percentOf(one.mean_log_odds)),
    sums.map((one) => percentOf(d * one.pooled_log_odds)),
    sums.map((one) => percentOf(((1 + d) / 2) * one.pooled_log_odds)),
  ];
  return sums.length === 1 ? lists : lists.map(scale);
};

const block = 100;

/** Counts how often each value from 0 to 10,000 is stated. Blocks make it fast to find a rank. */
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
     * Returns a quantile in percent by linear interpolation (Hyndman and Fan, type 7). `q` must be
     * a multiple of 0.25, so the result is exact before it is rounded half up to a basis point.
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
