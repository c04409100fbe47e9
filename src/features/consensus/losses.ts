import { crps } from '../points/cdf-rules.js';
import type { Fit } from './correlation.js';
import { type CandidateKind, candidates, weightsOf } from './mixture.js';
import { followMoments, type Recorded } from './moments.js';
import { isNumber, mixCurves, placeOf } from './numbers.js';
import { makeRun, type Run, type RunShape, type TimedForecast } from './run.js';

/**
 * Scores the headline and its candidates on resolved questions. A loss is the mean over a question's
 * life of −ln p, with the p that was given to what happened, kept between 0.01 and 99.99 %. With k
 * correct options it is the mean over them. For a number or a date it is the mean of the CRPS, on
 * the range scaled to 0–1.
 *
 * The life is the time from the opening to the scheduled close. Before the first forecast, the
 * uniform forecast counts. Nothing is added after a question ended, or its outcome was known.
 * At each moment, the fit that was in force counts. So the headline is scored as it was published,
 * with weights that did not know the outcome.
 */

export interface ResolvedShape extends RunShape {
  readonly outcome: boolean | null;
  readonly correct_options: readonly string[] | null;
  readonly outcome_value: number | null;
  readonly opens_ms: number;
  readonly closes_ms: number;
  /** When it was closed or its outcome was known, if that was before the scheduled close. */
  readonly ends_ms: number;
}

/** Losses of the headline, and then of each candidate. */
export type Losses = readonly number[];

const log = (percent: number): number =>
  -Math.log(Math.min(0.9999, Math.max(0.0001, percent / 100)));

const averageOf = (values: readonly number[]): number =>
  values.reduce((sum, one) => sum + one, 0) / values.length;

/** Returns the loss of chances in percent: the chance of YES, or one for each option. */
const lossOfChances = (
  { outcome, correct_options, options }: ResolvedShape,
  percents: readonly number[],
): number =>
  outcome !== null
    ? log(outcome ? percents[0]! : 100 - percents[0]!)
    : averageOf((correct_options ?? []).map((one) => log(percents[options.indexOf(one)]!)));

/** Returns the losses of the figures that stand now. */
const lossesOf = (question: ResolvedShape, run: Run, fit: Fit): Losses => {
  const { curves, chances } = run.readCandidates(fit);
  if (curves === undefined) {
    return [chances.headline, ...chances.candidates].map((one) => lossOfChances(question, one));
  }
  const happened = placeOf(question, question.outcome_value!) / 100;
  const headline = fit.weights === null ? curves[0]! : mixCurves(curves, fit.weights.number);
  return [headline, ...curves].map((curve) => crps(curve, happened));
};

const uniformLoss = (question: ResolvedShape): number => {
  if (isNumber(question)) {
    const uniform = [0, 1].map((x) => ({ x, f: x }));
    return crps(uniform, placeOf(question, question.outcome_value!) / 100);
  }
  return Math.log(question.options.length || 2);
};

async function* until(all: Recorded['all'], ends_ms: number): AsyncGenerator<TimedForecast> {
  for await (const one of all) if (one.at <= ends_ms) yield one;
}

/** Replays the forecasts on a resolved question. They must be in order of time. */
export const replayLosses = async (
  question: ResolvedShape,
  { all, fits }: Pick<Recorded, 'all' | 'fits'>,
): Promise<Losses> => {
  const { opens_ms, closes_ms, ends_ms } = question;
  const run = makeRun(question);
  const sums = new Array<number>(1 + candidates[kindOf(question)].length).fill(0);
  let standing: Losses = sums.map(() => uniformLoss(question));
  let from_ms = opens_ms;
  const addUntil = (ms: number): void => {
    const to_ms = Math.min(ends_ms, Math.max(opens_ms, ms));
    for (const [n, loss] of standing.entries()) sums[n]! += loss * (to_ms - from_ms);
    from_ms = to_ms;
  };
  const recorded = { all: until(all, ends_ms), fits, until_ms: ends_ms };
  for await (const { at, fit } of followMoments(recorded, (one) => run.add(one))) {
    addUntil(at);
    standing = lossesOf(question, run, fit);
  }
  addUntil(ends_ms);
  return sums.map((sum) => sum / (closes_ms - opens_ms));
};

export const kindOf = (question: Pick<RunShape, 'range_min'>): CandidateKind =>
  isNumber(question) ? 'number' : 'chance';

/** The weights of one kind, with the mean losses that they are made from. */
export interface Mixture {
  readonly questions: number;
  /** Null without questions. */
  readonly headline_loss: number | null;
  readonly losses: readonly number[] | null;
  readonly weights: readonly number[];
}

/** Adds up the losses of questions of one kind. */
export const makeLossSums = (kind: CandidateKind) => {
  const sums = new Array<number>(1 + candidates[kind].length).fill(0);
  let questions = 0;
  return {
    add(losses: Losses): void {
      questions += 1;
      for (const [n, loss] of losses.entries()) sums[n]! += loss;
    },
    sumUp(): Mixture {
      const [headline_loss = null, ...losses] =
        questions === 0 ? [] : sums.map((sum) => sum / questions);
      return {
        questions,
        headline_loss,
        losses: questions === 0 ? null : losses,
        weights: weightsOf(sums.slice(1), questions),
      };
    },
  };
};
