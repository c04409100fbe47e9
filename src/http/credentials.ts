import { common_faults, type Fault, isFault, refuse } from '../kit/fault.js';
import { type Request, readSession } from './call.js';
import { anonymous, type Caller } from './caller.js';
import type { Route } from './route.js';

/** Chooses the credential that identifies the caller: a key, a token or a page's cookie. */

/** The credentials of a request. Missing ones are empty strings. */
export interface Credentials {
  readonly api_key: string;
  readonly authorization: string;
  readonly admin_key: string;
}

/** May return without a promise, so that a cached key costs no turn of the event loop. */
export type Authenticate = (credentials: Credentials) => Caller | Fault | Promise<Caller | Fault>;

export const no_credentials: Credentials = { api_key: '', authorization: '', admin_key: '' };

/**
 * Returns the credentials that the route uses. Clients set their headers once and send them with
 * every call, so a credential that a route does not need is ignored. The admin key counts on admin
 * routes, and on other routes only if it came alone. A key and a Bearer token name two callers, so
 * they are refused together. If the call is about the key, the token names the caller.
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

/** Returns an agent key that was sent as a Bearer token. */
export const keyInToken = (authorization: string): string | undefined =>
  /^bearer (sk_.*)$/i.exec(authorization)?.[1];

const key_in_query = /(?:^|[=&])sk_[A-Za-z0-9]{20,}/;

/** Finds the person who has this session. Public pages send no token, so they can be cached. */
const identifyVisitor = async (token: string, authenticate: Authenticate) => {
  if (token === '') return anonymous;
  const caller = await authenticate({ ...no_credentials, authorization: `Bearer ${token}` });
  return isFault(caller) && caller.def === common_faults.INVALID_TOKEN ? anonymous : caller;
};

/**
 * Returns true if a page of another site sent the form. Browsers say where a form comes from. If a
 * request does not say it, no browser sent it. On plain http, browsers may reach the service at
 * several addresses (`localhost`, `127.0.0.1`), so there the request's `Host` is allowed too.
 */
export const isCrossOrigin = ({ headers }: Request, public_url: string): boolean => {
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site !== 'same-origin' && site !== 'none';
  const { origin: given, host } = headers;
  if (given === undefined) return false;
  const is_plain = public_url.startsWith('http:');
  return given !== public_url && !(is_plain && given === `http://${host}`);
};

interface Visited {
  readonly authenticate: Authenticate;
  readonly public_url: () => string;
}

/** Returns the caller, or the refusal of its credentials. */
export const identify = (
  { query, headers }: Request,
  route: Pick<
    Route,
    'auth' | 'takes_key' | 'takes_key_as_token' | 'allows_key_in_query' | 'is_page'
  >,
  { authenticate, public_url }: Visited,
): Caller | Fault | Promise<Caller | Fault> => {
  if (route.is_page) {
    const is_read = route.auth !== 'public';
    const token = is_read ? readSession(headers['cookie'] ?? '', public_url()) : '';
    return identifyVisitor(token, authenticate);
  }
  const api_key = headers['x-api-key'] ?? '';
  const authorization = headers['authorization'] ?? '';
  const admin_key = headers['x-admin-key'] ?? '';
  const key_as_token = route.takes_key_as_token && keyInToken(authorization);
  if (key_as_token) return authenticate({ ...no_credentials, api_key: key_as_token });
  if (query !== '' && !route.allows_key_in_query && key_in_query.test(query)) {
    return refuse(common_faults.KEY_IN_QUERY);
  }
  if (api_key === '' && authorization === '' && admin_key === '') return anonymous;
  const chosen = chooseCredentials(route, { api_key, authorization, admin_key });
  return isFault(chosen) ? chosen : authenticate(chosen);
};
