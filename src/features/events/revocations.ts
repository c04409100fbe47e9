import type { Logger } from 'pino';
import { makeLoop } from '../../kit/loop.js';
import type { Sql } from '../../kit/pg/client.js';
import { type Service, withDeadline } from '../../kit/service.js';
import { deleteOldRevocations, type Revoked, readRevoked } from './revocations-store.js';

/**
 * Credentials that hold no longer, named in the transaction that ends them, so that every api
 * process closes the sockets, streams and waits that they opened within a second. Calls need none
 * of this: what a process remembers of a key lives for a second.
 */

interface WatchOptions {
  readonly sql: Sql;
  readonly log: Logger;
  /** Told of each revocation more than once. */
  readonly onRevoked: (revoked: Revoked) => void;
}

export const createRevocationWatch = ({ sql, log, onRevoked }: WatchOptions): Service =>
  makeLoop({
    name: 'revocations',
    log,
    every_ms: 500,
    async turn() {
      const revoked = await withDeadline(readRevoked(sql), 10_000, 'Reading revocations');
      if (revoked.size > 0) onRevoked(revoked);
      return 'rest';
    },
  });

/** Deletes what every process has read long ago; any number of these may run. */
export const createRevocationSweep = (sql: Sql, log: Logger): Service =>
  makeLoop({
    name: 'revocation sweep',
    log,
    every_ms: 60_000,
    async turn() {
      await deleteOldRevocations(sql);
      return 'rest';
    },
  });
