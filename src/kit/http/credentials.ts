import { common_faults, type Fault, refuse } from '../fault.js';
import type { Route } from './route.js';

/** What a caller has sent to say who it is; empty where it sent none. */
export interface Credentials {
  readonly api_key: string;
  readonly authorization: string;
  readonly admin_key: string;
}

export const no_credentials: Credentials = { api_key: '', authorization: '', admin_key: '' };

/**
 * Of what was sent, the one credential that a route uses. Clients set their headers once and send
 * them with every call, so what a route does not need is not looked at: the admin key counts for
 * the routes of admins, and for others only where it came alone. A key together with a Bearer token
 * would be two callers; only where the key is what the call is about, the token says who acts.
 */
export const chooseCredentials = (
  { auth, takes_key }: Pick<Route, 'auth' | 'takes_key'>,
  sent: Credentials,
): Credentials | Fault => {
  const { api_key, authorization, admin_key } = sent;
  if (auth === 'admin' && admin_key !== '') return { api_key: '', authorization: '', admin_key };
  if (api_key !== '' && authorization !== '') {
    if (!takes_key) return refuse(common_faults.AMBIGUOUS_AUTH);
    return { api_key: '', authorization, admin_key: '' };
  }
  const comes_alone = admin_key === '' || (api_key === '' && authorization === '');
  return comes_alone ? sent : { api_key, authorization, admin_key: '' };
};
