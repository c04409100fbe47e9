/**
 * Brier scores adjusted for the difficulty of the questions. The two-way model Brier = μ + a + b
 * has an effect a per forecaster and an effect b per question (Σb = 0), fitted by least squares. A
 * forecaster's value is μ + a, its Brier score on a question of mean difficulty. Pure functions.
 *
 * Only forecasters with enough questions and questions with enough forecasters take part. When one
 * drops out, others may follow. If the remaining questions form groups that share no forecasters,
 * only the largest group stays, because values from different groups cannot be compared.
 *
 * For each question, b is the mean of score y minus value x. So for each forecaster, the values
 * satisfy Σ ((y − ȳ) − (x − x̄)) = 0 over its questions, where ȳ and x̄ are the means of the
 * question. Conjugate gradients, with the diagonal as preconditioner, solve this: they read the
 * scores once per step and need no matrix. Intervals come from resamples: each draws the same
 * number of questions with replacement, solves for the values, starting from the full solution, and
 * ranks them.
 *
 * Sources: H. Scheffé, "The Analysis of Variance", 1959, chapter 4; M. R. Hestenes and E. Stiefel,
 * "Methods of conjugate gradients for solving linear systems", 1952; B. Efron, "Bootstrap methods",
 * 1979.
 */

/** One entry per score, sorted by question. Forecasters and questions are numbered from 0. */
export interface Scores {
  readonly forecasters: number[];
  readonly questions: number[];
  readonly briers: number[];
}

export interface FitOptions {
  readonly least_questions: number;
  readonly least_agents: number;
  readonly resamples: number;
  /** If this returns true, the resampling stops early. */
  readonly isOver?: () => boolean;
}

const sizeOf = (codes: readonly number[]): number =>
  1 + codes.reduce((most, one) => Math.max(most, one), -1);

const countKept = (codes: readonly number[], kept: Uint8Array): Int32Array => {
  const counts = new Int32Array(sizeOf(codes));
  for (const [i, code] of codes.entries()) counts[code]! += kept[i]!;
  return counts;
};

const keepEnough = ({ forecasters, questions }: Scores, least: FitOptions): Uint8Array => {
  const kept = new Uint8Array(questions.length).fill(1);
  for (let is_done = false; !is_done; ) {
    is_done = true;
    const of_forecaster = countKept(forecasters, kept);
    const of_question = countKept(questions, kept);
    for (const [i, question] of questions.entries()) {
      const is_enough =
        of_forecaster[forecasters[i]!]! >= least.least_questions &&
        of_question[question]! >= least.least_agents;
      if (kept[i] === 0 || is_enough) continue;
      kept[i] = 0;
      is_done = false;
    }
  }
  return kept;
};

/** Drops the scores outside the largest connected group. */
const keepLargestPart = ({ forecasters, questions }: Scores, kept: Uint8Array): void => {
  const first_question = sizeOf(forecasters);
  const parents = new Int32Array(first_question + sizeOf(questions)).map((_, node) => node);
  const rootOf = (node: number): number => {
    for (; parents[node] !== node; node = parents[node]!) parents[node] = parents[parents[node]!]!;
    return node;
  };
  for (const [i, question] of questions.entries()) {
    if (kept[i] === 1) parents[rootOf(forecasters[i]!)] = rootOf(first_question + question);
  }
  const sizes = countKept(forecasters.map(rootOf), kept);
  const largest = sizes.indexOf(sizes.reduce((most, one) => Math.max(most, one)));
  for (const [i, forecaster] of forecasters.entries()) {
    if (rootOf(forecaster) !== largest) kept[i] = 0;
  }
};

/** The scores that take part. Question q has the scores from `starts[q]` to `starts[q + 1]`. */
interface Panel {
  readonly who: Int32Array;
  readonly briers: Float64Array;
  readonly starts: Int32Array;
  /** The original numbers of forecasters and questions, and the number of scores per forecaster. */
  readonly forecasters: readonly number[];
  readonly questions: readonly number[];
  readonly n: readonly number[];
}

const arrange = (scores: Scores, kept: Uint8Array): Panel => {
  const counts = [...countKept(scores.forecasters, kept).entries()].filter(([, n]) => n > 0);
  const numbers = new Map(counts.map(([forecaster], number) => [forecaster, number]));
  const taken = scores.questions.flatMap((_, i) => (kept[i] === 1 ? [i] : []));
  const questions: number[] = [];
  const starts: number[] = [];
  for (const [at, i] of taken.entries()) {
    const question = scores.questions[i]!;
    if (questions.at(-1) !== question) starts[questions.push(question) - 1] = at;
  }
  return {
    who: Int32Array.from(taken, (i) => numbers.get(scores.forecasters[i]!)!),
    briers: Float64Array.from(taken, (i) => scores.briers[i]!),
    starts: Int32Array.from([...starts, taken.length]),
    forecasters: [...numbers.keys()],
    questions,
    n: counts.map(([, n]) => n),
  };
};

/**
 * For each forecaster, returns the sum over its questions of (y − ȳ), or of (x − x̄) if `values` is
 * given. Question q counts `times[q]` times.
 */
const sumWithin = (panel: Panel, times: Int32Array, values?: Float64Array): Float64Array => {
  const { who, briers, starts } = panel;
  const sums = new Float64Array(panel.n.length);
  for (const [q, often] of times.entries()) {
    const from = starts[q]!;
    const to = often === 0 ? from : starts[q + 1]!;
    let mean = 0;
    for (let i = from; i < to; i += 1) mean += values === undefined ? briers[i]! : values[who[i]!]!;
    mean /= to - from;
    for (let i = from; i < to; i += 1) {
      const own = values === undefined ? briers[i]! : values[who[i]!]!;
      sums[who[i]!]! += often * (own - mean);
    }
  }
  return sums;
};

/** Returns the inverse of the equations' diagonal, or 0 for a forecaster without a question. */
const inverseDiagonal = ({ who, starts, n }: Panel, times: Int32Array): Float64Array => {
  const diagonal = new Float64Array(n.length);
  for (const [q, often] of times.entries()) {
    const part = often * (1 - 1 / (starts[q + 1]! - starts[q]!));
    for (let i = starts[q]!; i < starts[q + 1]!; i += 1) diagonal[who[i]!]! += part;
  }
  return diagonal.map((one) => (one > 0 ? 1 / one : 0));
};

const dot = (one: Float64Array, other: Float64Array): number => {
  let sum = 0;
  for (let i = 0; i < one.length; i += 1) sum += one[i]! * other[i]!;
  return sum;
};

const addTimes = (to: Float64Array, factor: number, added: Float64Array): void => {
  for (let i = 0; i < to.length; i += 1) to[i]! += factor * added[i]!;
};

const whole_effort = { precision: 1e-12, max_steps: 5_000 };
/** The guess is already good, and ranks need no higher precision. */
const resample_effort = { precision: 1e-5, max_steps: 50 };

/** Solves for the values, starting from a guess, to a given relative precision. */
const solve = (panel: Panel, times: Int32Array, guess: Float64Array, effort = resample_effort) => {
  const values = guess.slice();
  const inverse = inverseDiagonal(panel, times);
  const scaled = (of: Float64Array): Float64Array => of.map((one, i) => one * inverse[i]!);
  const left = sumWithin(panel, times);
  const goal = effort.precision ** 2 * dot(left, scaled(left));
  addTimes(left, -1, sumWithin(panel, times, values));
  let direction = scaled(left);
  let size = dot(left, direction);
  for (let step = 0; step < effort.max_steps && size > goal; step += 1) {
    const image = sumWithin(panel, times, direction);
    const curvature = dot(direction, image);
    if (!(curvature > 0)) break;
    addTimes(values, size / curvature, direction);
    addTimes(left, -size / curvature, image);
    const next = scaled(left);
    const next_size = dot(left, next);
    addTimes(next, next_size / size, direction);
    direction = next;
    size = next_size;
  }
  return values;
};

/** Returns the effects, and the values with Σb = 0, rounded so that equal values compare equal. */
const centre = ({ who, briers, starts }: Panel, times: Int32Array, solved: Float64Array) => {
  let level = 0;
  let count = 0;
  const effects = Array.from(times, (often, q) => {
    let sum = 0;
    for (let i = starts[q]!; i < starts[q + 1]!; i += 1) sum += briers[i]! - solved[who[i]!]!;
    const effect = sum / (starts[q + 1]! - starts[q]!);
    level += often * effect;
    count += often;
    return effect;
  });
  level /= count;
  return {
    values: solved.map((value) => Math.round((value + level) * 1e6) / 1e6),
    effects: effects.map((effect) => effect - level),
  };
};

/** Returns the ranks. A rank is one more than the number of lower values. */
const ranksOf = (values: Float64Array): Int32Array => {
  const ranks = new Map<number, number>();
  for (const [i, value] of values.slice().sort().entries()) {
    if (!ranks.has(value)) ranks.set(value, i + 1);
  }
  return Int32Array.from(values, (value) => ranks.get(value)!);
};

/** Adds a value to an ascending array that holds only the smallest values, to save memory. */
const keepLeast = (least: Int32Array, value: number): void => {
  let at = least.length - 1;
  if (value >= least[at]!) return;
  for (; at > 0 && least[at - 1]! > value; at -= 1) least[at] = least[at - 1]!;
  least[at] = value;
};

/** Creates a generator of integers below `most` (mulberry32). A seed fixes the sequence. */
const makeRandom = (seed: number) => {
  let state = seed;
  return (most: number): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * most);
  };
};

/** The share that the 95 % interval of a rank leaves out at each end. */
const tail = 0.025;

const resample = (panel: Panel, start: Float64Array, { resamples, isOver }: FitOptions) => {
  const random = makeRandom(1);
  const kept = Math.floor(tail * resamples) + 1;
  const makeKept = () => Array.from(start, () => new Int32Array(kept).fill(2 ** 31 - 1));
  const lowest = makeKept();
  const highest_turned = makeKept();
  const sums = new Float64Array(start.length);
  const squares = new Float64Array(start.length);
  let made = 0;
  for (; made < resamples && isOver?.() !== true; made += 1) {
    const times = new Int32Array(panel.questions.length);
    for (const _ of times) times[random(times.length)]! += 1;
    const { values } = centre(panel, times, solve(panel, times, start));
    for (const [i, rank] of ranksOf(values).entries()) {
      keepLeast(lowest[i]!, rank);
      keepLeast(highest_turned[i]!, -rank);
      sums[i]! += values[i]!;
      squares[i]! += values[i]! ** 2;
    }
  }
  const dropped = Math.floor(tail * made);
  const ofForecaster = (i: number) => ({
    deviation: Math.sqrt(Math.max(0, squares[i]! - sums[i]! ** 2 / made) / Math.max(1, made - 1)),
    rank_interval: { low: lowest[i]![dropped]!, high: -highest_turned[i]![dropped]! },
  });
  const unknown = { deviation: 0, rank_interval: { low: 1, high: start.length } };
  return { made, ofForecaster: made === 0 ? () => unknown : ofForecaster };
};

/** Returns the forecasters, and the effect of each question that takes part, by its number. */
export const fitTwoWay = (scores: Scores, options: FitOptions) => {
  const kept = keepEnough(scores, options);
  if (kept.includes(1)) keepLargestPart(scores, kept);
  const panel = arrange(scores, kept);
  const once = new Int32Array(panel.questions.length).fill(1);
  const solved = solve(panel, once, new Float64Array(panel.n.length), whole_effort);
  const { values, effects } = centre(panel, once, solved);
  const ranks = ranksOf(values);
  const { made, ofForecaster } = resample(panel, solved, options);
  return {
    forecasters: panel.forecasters.map((forecaster, i) => ({
      forecaster,
      n: panel.n[i]!,
      value: values[i]!,
      rank: ranks[i]!,
      ...ofForecaster(i),
    })),
    difficulty: new Map(panel.questions.map((question, q) => [question, effects[q]!])),
    covered_scores: panel.who.length,
    resamples: made,
  };
};
