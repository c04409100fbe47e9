import type { Tx } from '../../db/client.js';
import type { Deps } from '../../http/deps.js';
import { makeCache } from '../../kit/cache.js';
import { makeLoop } from '../../kit/loop.js';
import type { Service } from '../../kit/service.js';
import {
  errorsOf,
  type Fit,
  first_fit,
  measureCorrelation,
  type QuestionErrors,
} from './correlation.js';
import * as store from './fits-store.js';
import { kindOf, makeLossSums, replayLosses } from './losses.js';
import { readForecasts } from './store.js';

/**
 * The timer fits ρ and the headline's weights each day (UTC). Every process reads a fit before it
 * comes into force.
 */

const day_ms = 86_400_000;
const ahead_ms = 300_000;
const known_ms = 60_000;

/** Replays the resolved questions one by one, so that memory stays bounded. */
const measureMixtures = async (tx: Tx, fits: readonly Fit[]): Promise<store.Mixtures> => {
  const sums = { chance: makeLossSums('chance'), number: makeLossSums('number') };
  for await (const question of store.listScored(tx)) {
    const all = readForecasts(tx, question);
    sums[kindOf(question)].add(await replayLosses(question, { all, fits }));
  }
  return { chance: sums.chance.sumUp(), number: sums.number.sumUp() };
};

/**
 * Measures ρ and the weights, unless today (UTC) already has a fit. Returns whether it stored one.
 * While nothing is resolved, there is nothing to store, unless the last fit has no weights.
 */
export const fitToday = ({ sql, clock }: Pick<Deps, 'sql' | 'clock'>): Promise<boolean> =>
  sql.begin({ statement_ms: 120_000 }, async (tx) => {
    const fitted_at = clock();
    const day = new Date(Math.floor(fitted_at.getTime() / day_ms) * day_ms);
    if (await store.lockFits(tx, day)) return false;
    const errors: QuestionErrors[] = [];
    for await (const page of store.readResolved(tx)) errors.push(...page.map(errorsOf));
    const measured = measureCorrelation(errors);
    const fits = await store.readFits(tx);
    const mixture = await measureMixtures(tx, fits);
    const counts = [measured.questions, mixture.chance.questions, mixture.number.questions];
    const has_weights = (fits.at(-1) ?? first_fit).weights !== null;
    if (has_weights && counts.every((count) => count === 0)) return false;
    const from_at = new Date(fitted_at.getTime() + ahead_ms);
    await store.putFit(tx, { measured, mixture, fitted_at, from_at });
    return true;
  });

/** Creates the timer's service. Any number of processes may run it. */
export const createFitting = (deps: Deps): Service =>
  makeLoop({
    name: 'consensus fits',
    log: deps.log,
    every_ms: known_ms,
    turn: async () => {
      await fitToday(deps);
      return 'rest';
    },
  });

/** Caches the fits for only a minute, so each process reads a fit before it comes into force. */
export const createFits = ({ sql }: Pick<Deps, 'sql'>) => {
  const cache = makeCache<readonly Fit[]>({ most: 1, ttl_ms: known_ms });
  return {
    /** Undefined if the fits are not cached. */
    peek: () => cache.peek('all'),
    get: () => cache.get('all', async () => store.readFits(sql)),
  };
};
