import { hash, verify } from '@node-rs/argon2';
import { BusyError, makeQueue } from '../../kit/cache.js';
import { common_faults, type Fault, refuse } from '../../kit/fault.js';
import { canonicalPassword } from './rules.js';

/**
 * Passwords by argon2id with the parameters OWASP names (19 MiB, two passes, one lane). Each hash
 * takes a core and 19 MiB for its time, so only a few run at once, a bounded number waits, and the
 * rest is told to come back.
 */

const argon2_params = {
  // The enum of the package is ambient and cannot be imported here; 2 is Argon2id.
  algorithm: 2,
  memoryCost: 19_456,
  timeCost: 2,
  parallelism: 1,
} as const;

/**
 * A hash of a random password nobody knows, with the parameters above: unknown addresses get it.
 */
export const decoy_hash =
  '$argon2id$v=19$m=19456,t=2,p=1$Vj696zO1DT9geSbCMx0FDQ$N6D+jQ9YjTLeZc4935HOQOfJuY5ZCZvyPVsN8cshaU4';

export interface Passwords {
  hash(password: string): Promise<string | Fault>;
  /** Takes the same time with null, the hash of nobody, and is then false. */
  verify(stored: string | null, password: string): Promise<boolean | Fault>;
}

export const createPasswords = (at_once = 2, most_waiting = 50): Passwords => {
  const queue = makeQueue(at_once, most_waiting);
  const run = <T>(work: () => Promise<T>): Promise<T | Fault> =>
    queue(work).catch((error: unknown) => {
      if (!(error instanceof BusyError)) throw error;
      return refuse(common_faults.UNAVAILABLE, { headers: { 'Retry-After': '2' } });
    });
  return {
    hash: (password) => run(() => hash(canonicalPassword(password), argon2_params)),
    verify: (stored, password) =>
      run(async () => {
        const same = await verify(stored ?? decoy_hash, canonicalPassword(password));
        return same && stored !== null;
      }),
  };
};
