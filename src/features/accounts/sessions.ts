import { createHmac } from 'node:crypto';
import { hash, verify } from '@node-rs/argon2';
import type { Config } from '../../config.js';
import { readAddressText } from '../../http/call.js';
import type { HumanCaller } from '../../http/caller.js';
import type { Deps } from '../../http/deps.js';
import type { Limiter, Window } from '../../http/limits.js';
import { BusyError, makeQueue } from '../../kit/cache.js';
import { common_faults, type Fault, refuse } from '../../kit/fault.js';
import { sha256 } from '../../kit/ids.js';
import { isWriteRefused } from '../../kit/outage.js';
import { deriveKey } from '../../kit/sealing.js';
import { findSession, touchSession } from './people-store.js';
import {
  adminKeys,
  canonicalPassword,
  digestSecret,
  isTokenOf,
  session_touch_ms,
} from './rules.js';

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

/** Of a random password that nobody knows: unknown addresses are compared with it. */
export const decoy_hash =
  '$argon2id$v=19$m=19456,t=2,p=1$Vj696zO1DT9geSbCMx0FDQ$N6D+jQ9YjTLeZc4935HOQOfJuY5ZCZvyPVsN8cshaU4';

export const createPasswords = (at_once = 2, most_waiting = 50) => {
  const queue = makeQueue(at_once, most_waiting);
  const run = <T>(work: () => Promise<T>): Promise<T | Fault> =>
    queue(work).catch((error: unknown) => {
      if (!(error instanceof BusyError)) throw error;
      return refuse(common_faults.UNAVAILABLE, { headers: { 'Retry-After': '2' } });
    });
  return {
    hash: (password: string) => run(() => hash(canonicalPassword(password), argon2_params)),
    /** Takes the same time with null, the hash of nobody, and is then false. */
    verify: (stored: string | null, password: string) =>
      run(async () => {
        const same = await verify(stored ?? decoy_hash, canonicalPassword(password));
        return same && stored !== null;
      }),
  };
};

export type Sessions = ReturnType<typeof createSessions>;

/** Every call reads the session from Postgres, so that a revoked token stops at once. */
export const createSessions = (deps: Deps) => {
  const admins = adminKeys(deps.config.ADMIN_EMAILS);
  const isAdminAddress = (email_key: string): boolean => admins.has(email_key);
  return {
    /** True for an address of ADMIN_EMAILS; it counts only once it is verified. */
    isAdminAddress,
    passwords: createPasswords(),
    async byToken(token: string): Promise<HumanCaller | Fault> {
      if (!isTokenOf('session', token)) return refuse(common_faults.INVALID_TOKEN);
      const digest = digestSecret(token);
      const now = deps.clock();
      const session = await findSession(deps.sql, digest, now);
      if (session === undefined) return refuse(common_faults.INVALID_TOKEN);
      if (now.getTime() - session.last_used_at.getTime() >= session_touch_ms) {
        await touchSession(deps.sql, digest, now).catch((error: unknown) => {
          // People go on reading while Postgres takes no writes.
          if (!isWriteRefused(error)) throw error;
        });
      }
      const { id, email_verified, email_key, expires_at } = session;
      const is_admin = email_verified && isAdminAddress(email_key);
      return { kind: 'human', id, email_verified, is_admin, expires_at };
    },
  };
};

export type LoginLimit = ReturnType<typeof createLoginLimit>;

/**
 * Failed log-ins of one account, from however many addresses they come. All addresses share one
 * window an account, but those that its owner was seen at have one each: trying passwords from
 * everywhere is stopped, and the owner at home is not. An e-mail address without an account has the
 * same window, so that a refusal tells nothing.
 *
 * A try is counted before its password is looked at, because many may come at once, and given back
 * when it was right.
 */
export const createLoginLimit = (
  config: Pick<Config, 'SECRET_KEY' | 'LIMIT_LOGIN_FAILURES'>,
  limiter: Pick<Limiter, 'take' | 'giveBack'>,
) => {
  const key = deriveKey(config.SECRET_KEY ?? '', 'prediction-forum known addresses 1');
  return {
    /** The stored form of a network address; each person has another one. */
    digestOf: (human_id: string, ip: string) =>
      createHmac('sha256', key)
        .update(`${human_id} ${readAddressText(ip).limit_key}`)
        .digest(),
    /** Counts a try; `known`: the digest of its address, where the owner was seen at it. */
    async take(email_key: string, known: Buffer | null) {
      const account = sha256(email_key, 'base64url');
      const window: Window = {
        name: 'login_failures',
        key: `login_failures:${account}:${known?.toString('base64url') ?? ''}`,
        limit: config.LIMIT_LOGIN_FAILURES,
        window_ms: 3_600_000,
      };
      const taken = await limiter.take([window]);
      if (taken.allowed) return { giveBack: () => limiter.giveBack([window], taken) };
      const seconds = Math.max(1, Math.ceil(taken.retry_ms / 1_000));
      return refuse(common_faults.RATE_LIMITED, {
        message:
          `Too many log-ins with this address failed; try again in ${seconds} s, or ask for a ` +
          'mail that sets a new password.',
        headers: { 'Retry-After': String(seconds) },
      });
    },
  };
};
