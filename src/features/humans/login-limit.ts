import { createHmac } from 'node:crypto';
import type { Config } from '../../config.js';
import { common_faults, type Fault, refuse } from '../../kit/fault.js';
import { readAddressText } from '../../kit/http/request.js';
import { sha256 } from '../../kit/ids.js';
import type { Limiter, Window } from '../../kit/limits.js';
import { deriveKey } from '../../kit/sealing.js';

/**
 * Failed log-ins of one account, from however many addresses they come. All addresses share one
 * window an account, but those that its owner was seen at have one each: who tries passwords from
 * everywhere is stopped, and the owner at home is not. An e-mail address without an account has the
 * same window, so that a refusal tells nothing.
 *
 * A try is counted before its password is looked at, because many may come at once, and given back
 * when it was right.
 */
export interface LoginLimit {
  /** What a network address is kept as; that of one person says nothing about another's. */
  digestOf(human_id: string, ip: string): Buffer;
  /** Counts a try; `known`: the digest of its address, where the owner was seen at it. */
  take(email_key: string, known: Buffer | null): Promise<LoginTry | Fault>;
}

export interface LoginTry {
  giveBack(): Promise<unknown>;
}

const window_ms = 3_600_000;
const purpose = 'prediction-forum known addresses 1';

export const createLoginLimit = (
  config: Pick<Config, 'SECRET_KEY' | 'LIMIT_LOGIN_FAILURES'>,
  limiter: Pick<Limiter, 'take' | 'giveBack'>,
): LoginLimit => {
  const key = deriveKey(config.SECRET_KEY ?? '', purpose);
  return {
    digestOf: (human_id, ip) =>
      createHmac('sha256', key)
        .update(`${human_id} ${readAddressText(ip).limit_key}`)
        .digest(),
    async take(email_key, known) {
      const account = sha256(email_key, 'base64url');
      const window: Window = {
        name: 'login_failures',
        key: `login_failures:${account}:${known?.toString('base64url') ?? ''}`,
        limit: config.LIMIT_LOGIN_FAILURES,
        window_ms,
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
