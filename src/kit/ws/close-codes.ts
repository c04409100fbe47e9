import type { Fault } from '../fault.js';

/**
 * Why a socket was closed. The code alone tells a client what to do: 400x, do not try again
 * unchanged; 410x, back off and try again; 420x, connect again now, within the spread given.
 */
export const close_codes = {
  BAD_FRAME: 4000,
  UNAUTHENTICATED: 4001,
  FORBIDDEN: 4003,
  TOO_MANY_CONNECTIONS: 4005,
  AUTH_TIMEOUT: 4008,
  OVERLOAD: 4100,
  SLOW: 4101,
  RATE: 4102,
  CREDENTIAL_EXPIRED: 4103,
  DRAINING: 4200,
  LIFETIME: 4202,
} as const;

export type CloseCode = (typeof close_codes)[keyof typeof close_codes];

/** What a refused credential or a refused connection closes with. */
export const closeCodeOf = (fault: Fault): CloseCode => {
  const { status, code } = fault.def;
  if (code === 'TOO_MANY_CONNECTIONS') return close_codes.TOO_MANY_CONNECTIONS;
  if (code === 'AUTH_TIMEOUT') return close_codes.AUTH_TIMEOUT;
  if (status === 429) return close_codes.RATE;
  if (status >= 500) return close_codes.OVERLOAD;
  return status === 403 ? close_codes.FORBIDDEN : close_codes.UNAUTHENTICATED;
};
