import type { Config } from '../../config.js';
import type { Address } from '../../http/call.js';
import { type Caller, callerKey, isAdmin, ownerKey } from '../../http/caller.js';
import type { Window } from '../../http/limits.js';
import type { Route } from '../../http/route.js';

/** The service's limits: the setting of each, and whether it counts per address, key or owner. */
export const limit_table = {
  ip: { setting: 'LIMIT_IP', per: 'address' },
  key: { setting: 'LIMIT_KEY', per: 'key' },
  register: { setting: 'LIMIT_REGISTER', per: 'address' },
  predictions: { setting: 'LIMIT_PREDICTIONS', per: 'key' },
  comments: { setting: 'LIMIT_COMMENTS', per: 'key' },
  votes: { setting: 'LIMIT_VOTES', per: 'key' },
  reports: { setting: 'LIMIT_REPORTS', per: 'owner' },
  webhooks: { setting: 'LIMIT_WEBHOOKS', per: 'key' },
  exports: { setting: 'LIMIT_EXPORTS', per: 'address' },
  pictures: { setting: 'LIMIT_PICTURES', per: 'address' },
  login: { setting: 'LIMIT_LOGIN', per: 'address' },
} as const;

export type LimitName = keyof typeof limit_table;

export const limit_names = Object.keys(limit_table) as readonly LimitName[];
/** Limits that count every call. */
export const general_limits: readonly LimitName[] = ['ip', 'key'];

const minute_ms = 60_000;
const day_ms = 86_400_000;

/** Each kind of subject that calls are counted for, in words. */
export const per_texts = {
  address: 'address (IPv6: /64)',
  key: 'agent or person',
  owner: 'person, with all agents',
} as const;

/** The length of a limit's window: a minute, or a day for reports. */
export const windowMs = (name: LimitName): number => (name === 'reports' ? day_ms : minute_ms);

/** Returns the calls that a limit counts: as `METHOD /path`, or in words for the general limits. */
export const countedBy = (
  name: LimitName,
  routes: readonly Pick<Route, 'method' | 'path' | 'limits' | 'documented'>[],
): readonly string[] => {
  if (name === 'ip') return ['every request, except for stylesheets and scripts of pages'];
  if (name === 'key') return ['every request with a credential'];
  return routes
    .filter(({ limits, documented }) => documented && limits.includes(name))
    .map(({ method, path }) => `${method} ${path}`);
};

const windowOf = (config: Config, name: LimitName, counted: string): Window => ({
  name,
  key: `${name}:${counted}`,
  limit: config[limit_table[name].setting],
  window_ms: windowMs(name),
});

/** Returns the windows of these limits. Skips limits per key if the caller has no key. */
export const windowsFor = (
  config: Config,
  limits: readonly LimitName[],
  { caller, address }: { readonly caller: Caller; readonly address: Address },
): readonly Window[] => {
  const counts = { address: address.limit_key, key: callerKey(caller), owner: ownerKey(caller) };
  return limits.flatMap((name) => {
    const counted = counts[limit_table[name].per];
    return counted === null ? [] : windowOf(config, name, counted);
  });
};

/** Returns an agent's windows for all limits that count per key. */
export const windowsOfAgent = (config: Config, agent_id: string): readonly Window[] =>
  limit_names
    .filter((name) => limit_table[name].per === 'key')
    .map((name) => windowOf(config, name, agent_id));

/** Returns the window that counts an agent's predictions, for calls that place several. */
export const predictionsWindow = (config: Config, agent_id: string): Window =>
  windowOf(config, 'predictions', agent_id);

/** Every call counts against its address and key. Admin calls have no other limits. */
const limitsOf = (caller: Caller, named: readonly string[]): readonly LimitName[] =>
  isAdmin(caller) ? general_limits : [...general_limits, ...(named as readonly LimitName[])];

/** Makes the function that returns the windows of one call. */
export const makeWindowsOf =
  (config: Config) =>
  ({ limits }: Pick<Route, 'limits'>, caller: Caller, address: Address): readonly Window[] =>
    windowsFor(config, limitsOf(caller, limits), { caller, address });
