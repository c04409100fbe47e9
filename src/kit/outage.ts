/**
 * Decides which Postgres errors mean that the store is unavailable, not that a statement is wrong.
 */

export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
  constructor(
    readonly code:
      | 'CONNECTION_LOST'
      | 'CONNECTION_SILENT'
      | 'CONNECT_TIMEOUT'
      | 'CONNECTION_ENDED'
      | 'NO_HOST',
    message: string,
  ) {
    super(message);
  }
}

const code = (error: unknown): string =>
  typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';

/** Serialisation failure or deadlock: the same statement may succeed if it is run again. */
const isConflict = (error: unknown): boolean => ['40001', '40P01'].includes(code(error));

const outage_codes = new Set([
  'CONNECTION_CLOSED',
  'CONNECTION_ENDED',
  'CONNECTION_LOST',
  'CONNECTION_SILENT',
  'CONNECTION_DESTROYED',
  'CONNECT_TIMEOUT',
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'NO_HOST',
  'EAI_AGAIN',
  'ENOENT',
  'EPIPE',
  'ETIMEDOUT',
  '55P03',
  '57014',
]);

/** SQLSTATE classes of connection, resource, operator and system errors. */
const outage_classes = /^(08|53|57P|58)/;

/** True if the disk is full, or the server or the database is read-only. Reads still work. */
export const isWriteRefused = (error: unknown): boolean => ['53100', '25006'].includes(code(error));

/**
 * True if the store is unavailable, restarting, out of time or out of room, and the statement
 * itself is fine. A commit that was under way may or may not have taken effect, so only idempotent
 * work may be run again.
 */
export const isOutage = (error: unknown): boolean =>
  outage_codes.has(code(error)) ||
  outage_classes.test(code(error)) ||
  isConflict(error) ||
  isWriteRefused(error);
