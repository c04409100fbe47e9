import { createHash, randomBytes } from 'node:crypto';
import type { Deps } from '../../kit/deps.js';
import { common_faults, type Fault, refuse } from '../../kit/fault.js';
import type { HumanCaller } from '../../kit/http/route.js';
import { isWriteRefused } from '../../kit/pg/client.js';
import { createPasswords, type Passwords } from './passwords.js';
import { adminKeys, isTokenOf, session_touch_ms, type TokenKind, tokenText } from './rules.js';
import { findSession, touchSession } from './store.js';

/**
 * Who a Bearer token is. Every call reads the session from Postgres: people call rarely, and a
 * token that was revoked anywhere stops at once.
 */

export interface Sessions {
  byToken(token: string): Promise<HumanCaller | Fault>;
  /** True for an address of ADMIN_EMAILS; it counts only once it is verified. */
  isAdminAddress(email_key: string): boolean;
  readonly passwords: Passwords;
}

export const digestToken = (token: string): Buffer => createHash('sha256').update(token).digest();

/** A token, which is shown once and never stored, and the digest that is. */
export const makeToken = (kind: TokenKind) => {
  const token = tokenText(kind, randomBytes(32));
  return { token, digest: digestToken(token) };
};

export const createSessions = (deps: Deps): Sessions => {
  const admins = adminKeys(deps.config.ADMIN_EMAILS);
  const isAdminAddress = (email_key: string): boolean => admins.has(email_key);
  return {
    isAdminAddress,
    passwords: createPasswords(),
    async byToken(token) {
      if (!isTokenOf('session', token)) return refuse(common_faults.INVALID_TOKEN);
      const digest = digestToken(token);
      const now = deps.clock();
      const session = await findSession(deps.sql, digest, now);
      if (session === undefined) return refuse(common_faults.INVALID_TOKEN);
      if (now.getTime() - session.last_used_at.getTime() >= session_touch_ms) {
        await touchSession(deps.sql, digest, now).catch((error: unknown) => {
          // People go on reading while Postgres takes no writes.
          if (!isWriteRefused(error)) throw error;
        });
      }
      return {
        kind: 'human',
        id: session.human_id,
        email_verified: session.verified,
        is_admin: session.verified && isAdminAddress(session.email_key),
        expires_at: session.expires_at,
      };
    },
  };
};
