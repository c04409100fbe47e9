import type { Config } from '../../config.js';
import type { Address } from '../../kit/http/request.js';
import type { Route } from '../../kit/http/route.js';
import { type Caller, callerKey, isAdmin } from '../../kit/http/route.js';
import type { Window } from '../../kit/limits.js';

/** The limits of the service: which setting, and whether the address or the key is counted. */
export const limit_table = {
  ip: { setting: 'LIMIT_IP', per: 'address' },
  key: { setting: 'LIMIT_KEY', per: 'key' },
  register: { setting: 'LIMIT_REGISTER', per: 'address' },
  predictions: { setting: 'LIMIT_PREDICTIONS', per: 'key' },
  comments: { setting: 'LIMIT_COMMENTS', per: 'key' },
  votes: { setting: 'LIMIT_VOTES', per: 'key' },
  webhooks: { setting: 'LIMIT_WEBHOOKS', per: 'key' },
  exports: { setting: 'LIMIT_EXPORTS', per: 'address' },
  pictures: { setting: 'LIMIT_PICTURES', per: 'address' },
  login: { setting: 'LIMIT_LOGIN', per: 'address' },
} as const;

export type LimitName = keyof typeof limit_table;

const minute_ms = 60_000;

/** What a limit counts, as `METHOD /path`, or in words where it is every request. */
export const countedBy = (
  name: LimitName,
  routes: readonly Pick<Route, 'method' | 'path' | 'limits' | 'documented'>[],
): readonly string[] => {
  if (name === 'ip') return ['every request'];
  if (name === 'key') return ['every request with a credential'];
  return routes
    .filter(({ limits, documented }) => documented && limits.includes(name))
    .map(({ method, path }) => `${method} ${path}`);
};

type Windows = readonly Window[];
type LimitedRoute = Pick<Route, 'limits'>;

/** One limit of a caller; null where it counts keys and the caller has none. */
export const windowOf = (
  config: Config,
  name: LimitName,
  { caller, address }: { readonly caller: Caller; readonly address: Pick<Address, 'limit_key'> },
): Window | null => {
  const { setting, per } = limit_table[name];
  const who = per === 'address' ? address.limit_key : callerKey(caller);
  if (who === null) return null;
  return { name, key: `${name}:${who}`, limit: config[setting], window_ms: minute_ms };
};

const makeWindows = (
  config: Config,
  { limits }: LimitedRoute,
  caller: Caller,
  address: Address,
): Windows => {
  const names = ['ip', 'key', ...(isAdmin(caller) ? [] : limits)] as readonly LimitName[];
  return names.flatMap((name) => windowOf(config, name, { caller, address }) ?? []);
};

/** The window that counts predictions of an agent, for calls that make several. */
export const predictionsWindow = (config: Config, agent_id: string): Window => ({
  name: 'predictions',
  key: `predictions:${agent_id}`,
  limit: config.LIMIT_PREDICTIONS,
  window_ms: minute_ms,
});

/** More callers than this within one address book: it starts again. */
const most_kept = 50_000;

/**
 * The windows that count one call. Every call counts against its address, a call with a key also
 * against the key, and then against what the route names. Admins are not counted by the named ones.
 * What was made for a caller is kept as long as its address is the same: a fleet calls the same
 * few routes again and again.
 */
export const makeWindowsOf = (config: Config) => {
  interface Kept {
    readonly address: Address;
    readonly caller: Caller;
    readonly limits: readonly string[];
    readonly windows: Windows;
  }
  const kept = new Map<string, Kept>();
  return (route: LimitedRoute, caller: Caller, address: Address): Windows => {
    const key = callerKey(caller);
    if (key === null) return makeWindows(config, route, caller, address);
    const { limits } = route;
    const known = kept.get(key);
    if (known?.caller === caller && known.address === address && known.limits === limits) {
      return known.windows;
    }
    const windows = makeWindows(config, route, caller, address);
    if (kept.size >= most_kept) kept.clear();
    kept.set(key, { address, caller, limits, windows });
    return windows;
  };
};
