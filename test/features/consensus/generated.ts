import type { ResolvedQuestion } from '../../../src/features/consensus/correlation.js';

/** Generated forecasts whose errors have a known correlation ρ. */

/** Box–Muller transform. */
const normal = (next: () => number): number =>
  Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());

const families = ['claude', 'gemini', 'gpt', 'llama'];

interface World {
  readonly questions: number;
  readonly owners: number;
  readonly rho: number;
}

/**
 * The log odds are ±σ²/2, depending on the outcome, plus an error of variance σ². All owners on a
 * question share a part ρ of this variance. So each owner is calibrated, and the errors of any two
 * owners have the correlation ρ.
 */
export const makeResolved = (
  next: () => number,
  { questions, owners, rho }: World,
): readonly ResolvedQuestion[] => {
  const sigma = 1.3;
  return Array.from({ length: questions }, () => {
    const outcome = next() < 0.5;
    const shared = normal(next);
    const forecasts = Array.from({ length: owners }, (_, n) => {
      const error = Math.sqrt(rho) * shared + Math.sqrt(1 - rho) * normal(next);
      const x = ((outcome ? 1 : -1) * sigma ** 2) / 2 + sigma * error;
      const value = Math.round(10_000 / (1 + Math.exp(-x)));
      const family = families[n % families.length] as string;
      return { agent: String(n), owner: String(n), family, value };
    });
    return { outcome, forecasts };
  });
};
