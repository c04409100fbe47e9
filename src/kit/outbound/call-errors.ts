import type { TargetProblemCode } from './target.js';

/**
 * Everything that can be wrong with a call: a fixed list, so that no error tells more than it
 * should.
 */
export const call_errors = {
  invalid_url: 'The URL is not one that can be called.',
  https_required: 'The URL must begin with https://.',
  target_refused: 'The URL names a host or port that may not be called.',
  address_refused: 'The host resolves to an address that may not be called.',
  name_not_found: 'The host name does not resolve.',
  lookup_failed: 'The name servers of the host did not give an answer.',
  lookup_timeout: 'The lookup of the host name took too long.',
  connect_failed: 'The connection was refused.',
  connect_timeout: 'The connection took too long.',
  tls_failed: 'The TLS handshake failed; check the certificate.',
  timeout: 'The answer took too long.',
  connection_lost: 'The connection was lost before the answer was complete.',
  answer_invalid: 'The answer is not valid HTTP.',
} as const;

export type CallErrorCode = keyof typeof call_errors;

/** Codes that say that the target itself is against the rules, not that it is out of order. */
export const isRefusal = (code: CallErrorCode | TargetProblemCode | null): boolean =>
  code === 'invalid_url' ||
  code === 'https_required' ||
  code === 'target_refused' ||
  code === 'address_refused';
