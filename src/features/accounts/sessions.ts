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
 * Hashes passwords with argon2id and the parameters that OWASP recommends (19 MiB, two passes, one
 * lane). Each hash occupies a core and 19 MiB, so only a few run at the same time. A limited number
 * of calls wait. Further calls are told to retry later.
 */

const argon2_params = {
  // 2 is Argon2id. The package's enum is ambient and cannot be imported here.
  algorithm: 2,
  memoryCost: 19_456,
  timeCost: 2,
  parallelism: 1,
} as const;

/** Hash of a random, unknown password. Log-ins with unknown addresses are checked against it. */
export const decoy_hash =
  '$argon2id$v=19$m=19456,t=2,p=1$Vj696zO1DT9geSbCMx0FDQ$N6D+jQ9YjTLeZc4935HOQOfJuY5ZCZvyPVsN8cshaU4';

export const createPasswords = (at_once = 2, max_waiting = 50) => {
  const queue = makeQueue(at_once, max_waiting);
  const run = <T>(work: () => Promise<T>): Promise<T | Fault> =>
    queue(work).catch((error: unknown) => {
      if (!(error instanceof BusyError)) throw error;
      return refuse(common_faults.UNAVAILABLE, { headers: { 'Retry-After': '2' } });
    });
  return {
    hash: (password: string) => run(() => hash(canonicalPassword(password), argon2_params)),
    /** If `stored` is null (no account), checks the decoy, which takes as long. Returns false. */
    verify: (stored: string | null, password: string) =>
      run(async () => {
        const same = await verify(stored ?? decoy_hash, canonicalPassword(password));
        return same && stored !== null;
      }),
  };
};

export type Sessions = ReturnType<typeof createSessions>;

/** Every call reads the session from Postgres, so a revoked token stops working immediately. */
export const createSessions = (deps: Deps) => {
  const admins = adminKeys(deps.config.ADMIN_EMAILS);
  const isAdminAddress = (email_key: string): boolean => admins.has(email_key);
  return {
    /** True for an address in ADMIN_EMAILS. Only a verified address grants admin rights. */
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
          // People can still read while Postgres accepts no writes.
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
 * Limits failed log-ins per account. Each network address that the person has used before has its
 * own window. All other network addresses share one window. So guessing from many addresses is
 * stopped, but the person can still log in from home. E-mail addresses without an account are
 * limited in the same way, so a rejected log-in reveals nothing.
 *
 * An attempt is counted before its password is checked, because many may arrive at the same time.
 * If the password was right, the attempt no longer counts.
 */
export const createLoginLimit = (
  config: Pick<Config, 'SECRET_KEY' | 'LIMIT_LOGIN_FAILURES'>,
  limiter: Pick<Limiter, 'take' | 'giveBack'>,
) => {
  const key = deriveKey(config.SECRET_KEY ?? '', 'prediction-forum known addresses 1');
  return {
    /** Returns the digest under which a network address is stored. It differs for each person. */
    digestOf: (human_id: string, ip: string) =>
      createHmac('sha256', key)
        .update(`${human_id} ${readAddressText(ip).limit_key}`)
        .digest(),
    /**
     * Counts an attempt. `known` is the digest of the network address if the person has used this
     * address before, otherwise null.
     */
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
          `Too many log-ins with this address failed. Try again in ${seconds} s, or ask for an ` +
          'e-mail to set a new password.',
        headers: { 'Retry-After': String(seconds) },
      });
    },
  };
};
