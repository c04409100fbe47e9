import { groupBy } from '../../kit/group-by.js';
import { equal_weights, type Weights } from './mixture.js';
import { logOdds, type PoolForecast } from './pool.js';

/**
 * Measures ρ, the correlation between the errors of two owners, on resolved questions. Let x be the
 * mean log odds that an owner's agents state at the close, and y the outcome:
 *
 *   μ(y)  mean of the log odds of all forecasts on questions with outcome y
 *   r     x − μ(y), the residual of an owner on a question
 *   ρ̂     (mean over questions of the mean r·r′ of two owners) / (mean over questions of mean r²)
 *   ρ     (Q·ρ̂ + 200·0.6) / (Q + 200), limited to 0–0.99
 *
 * Q is the number of yes/no questions on which at least two owners predicted. Errors that owners
 * share do not average out, however many owners there are. With few questions ρ̂ is noise. So ρ
 * starts at 0.6, the correlation found between language models of different families. After 200
 * questions it is halfway between 0.6 and ρ̂.
 */

/** Sums of the owners' log odds on a question, in any unit. */
export interface QuestionErrors {
  readonly outcome: boolean;
  readonly owners: number;
  /** Sum over owners of their agents' mean log odds; `squares` sums the squares of these means. */
  readonly sum: number;
  readonly squares: number;
  /** Number of forecasts; `stated` is the sum of their log odds. */
  readonly forecasts: number;
  readonly stated: number;
}

/** A resolved yes/no question with the final forecast of each agent, in basis points. */
export interface ResolvedQuestion {
  readonly outcome: boolean;
  readonly forecasts: readonly Omit<PoolForecast, 'given'>[];
}

export const errorsOf = ({ outcome, forecasts }: ResolvedQuestion): QuestionErrors => {
  const stated = forecasts.map(({ value }) => logOdds(value) / 1e9);
  const owners = [...groupBy([...forecasts.keys()], (n) => forecasts[n]?.owner).values()].map(
    (own) => add(own.map((n) => stated[n] as number)) / own.length,
  );
  return {
    outcome,
    owners: owners.length,
    sum: add(owners),
    squares: add(owners.map((x) => x * x)),
    forecasts: stated.length,
    stated: add(stated),
  };
};

export type Measured = ReturnType<typeof measureCorrelation>;

const prior = { rho: 0.6, questions: 200 } as const;

const add = (values: readonly number[]): number => values.reduce((all, one) => all + one, 0);

/**
 * `measured` is ρ̂, or null if no question has two owners. `rho` is rounded to four decimals, so
 * that the stored value is exactly the one that formulas use and pages show.
 */
export const measureCorrelation = (all: readonly QuestionErrors[]) => {
  const means = new Map(
    [true, false].map((outcome) => {
      const of_outcome = all.filter((one) => one.outcome === outcome);
      const forecasts = add(of_outcome.map((one) => one.forecasts));
      return [outcome, add(of_outcome.map(({ stated }) => stated)) / forecasts];
    }),
  );
  const products: number[] = [];
  const squares: number[] = [];
  for (const { outcome, owners, ...sums } of all) {
    if (owners < 2) continue;
    const mean = means.get(outcome) as number;
    const sum = sums.sum - owners * mean;
    const square = sums.squares - 2 * mean * sums.sum + owners * mean ** 2;
    products.push((sum ** 2 - square) / (owners * (owners - 1)));
    squares.push(square / owners);
  }
  const questions = products.length;
  const measured = add(squares) > 0 ? add(products) / add(squares) : null;
  const shrunk =
    (questions * (measured ?? prior.rho) + prior.questions * prior.rho) /
    (questions + prior.questions);
  const rho = Math.round(1e4 * Math.min(0.99, Math.max(0, shrunk))) / 1e4;
  return { questions, measured, rho };
};

/** A numbered value of ρ and the weights of the headline, in force from `from_ms`. */
export interface Fit {
  readonly number: number;
  readonly rho: number;
  /** Null in fits from before the mixture. Their headline is one candidate alone. */
  readonly weights: Weights | null;
  /** Milliseconds since 1970. */
  readonly from_ms: number;
}

export const first_fit: Fit = {
  number: 0,
  rho: prior.rho,
  weights: equal_weights,
  from_ms: Number.NEGATIVE_INFINITY,
};

/** Returns the fit in force at a moment. `fits` must be in ascending order. */
export const fitAt = (fits: readonly Fit[], ms: number): Fit =>
  fits.findLast(({ from_ms }) => from_ms <= ms) ?? first_fit;

/** Returns the fit for a question. An ended question keeps the fit that was in force at its end. */
export const fitOf = (
  fits: readonly Fit[],
  { ended_at }: { readonly ended_at: Date | null },
  ms: number,
): Fit => fitAt(fits, Math.min(ms, ended_at?.getTime() ?? ms));
