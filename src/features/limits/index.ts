import { type Static, Type } from '@sinclair/typebox';
import type { Config } from '../../config.js';
import type { Limiter, Window } from '../../http/limits.js';
import { nullable } from '../../http/openapi.js';
import { type Address, readAddressText } from '../../http/request.js';
import { type Caller, callerKey, isAdmin, type Route, reply, routeFor } from '../../http/route.js';

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

const names = Object.keys(limit_table) as readonly LimitName[];
/** They count every call. */
const general: readonly LimitName[] = ['ip', 'key'];
const minute_ms = 60_000;

/** The calls that a limit counts, as `METHOD /path`, or in words where it is every request. */
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

/** The named limits of a caller; one that counts keys needs a caller with a key. */
const windowsFor = (
  config: Config,
  limits: readonly LimitName[],
  { caller, address }: { readonly caller: Caller; readonly address: Address },
): readonly Window[] => {
  const key = callerKey(caller);
  return limits.flatMap((name) => {
    const { setting, per } = limit_table[name];
    const counted = per === 'address' ? address.limit_key : key;
    if (counted === null) return [];
    return { name, key: `${name}:${counted}`, limit: config[setting], window_ms: minute_ms };
  });
};

/** The window that counts predictions of an agent, for calls that make several. */
export const predictionsWindow = (config: Config, agent_id: string): Window => ({
  name: 'predictions',
  key: `predictions:${agent_id}`,
  limit: config.LIMIT_PREDICTIONS,
  window_ms: minute_ms,
});

/** Every call counts against its address and key; calls of admins against no further limit. */
const limitsOf = (caller: Caller, named: readonly string[]): readonly LimitName[] =>
  isAdmin(caller) ? general : [...general, ...(named as readonly LimitName[])];

/** The windows that count one call. */
export const makeWindowsOf =
  (config: Config) =>
  ({ limits }: Pick<Route, 'limits'>, caller: Caller, address: Address): readonly Window[] =>
    windowsFor(config, limitsOf(caller, limits), { caller, address });

const limit_schema = Type.Object({
  name: Type.String({ description: 'As in the RateLimit headers.' }),
  limit: Type.Integer(),
  window_seconds: Type.Integer(),
  per: Type.String({ enum: ['address', 'key', 'account'] }),
  counts: Type.Array(Type.String(), { description: '`METHOD /path`, or in words.' }),
  setting: Type.String(),
  left: nullable(
    Type.Integer({
      description: 'Calls left in the window; null where this caller is not counted.',
    }),
  ),
  reset_seconds: nullable(
    Type.Integer({ description: 'Seconds until the oldest call that counts grows old.' }),
  ),
});
type LimitWire = Static<typeof limit_schema>;

export interface LimitParts {
  readonly limits: ReturnType<typeof createLimitReader>;
}

/** Nobody sees what is left of it: that would say whether there is an account. */
const failedLogins = (config: Config): LimitWire => ({
  name: 'login_failures',
  limit: config.LIMIT_LOGIN_FAILURES,
  window_seconds: 3_600,
  per: 'account',
  counts: ['failed POST /api/auth/login'],
  setting: 'LIMIT_LOGIN_FAILURES',
  left: null,
  reset_seconds: null,
});

export const createLimitReader = (
  config: Config,
  limiter: Pick<Limiter, 'look'>,
  routes: readonly Route[],
) => ({
  /** All limits as one caller sees them. */
  async read(caller: Caller, ip: string): Promise<LimitWire[]> {
    const address = readAddressText(ip);
    const windows = windowsFor(config, isAdmin(caller) ? general : names, { caller, address });
    const looked = await limiter.look(windows);
    const calls = names.map((name): LimitWire => {
      const { setting, per } = limit_table[name];
      const state = looked[windows.findIndex((window) => window.name === name)];
      return {
        name,
        limit: config[setting],
        window_seconds: 60,
        per,
        counts: [...countedBy(name, routes)],
        setting,
        left: state?.left ?? null,
        reset_seconds: state === undefined ? null : Math.ceil(state.reset_ms / 1_000),
      };
    });
    return [...calls, failedLogins(config)];
  },
});

const route = routeFor<LimitParts>();

export const routes = [
  route({
    id: 'listLimits',
    method: 'GET',
    path: '/api/limits',
    summary: 'Every limit, what it counts, and what is left of it for the caller',
    tag: 'limits',
    auth: 'public',
    returns: {
      200: Type.Object({
        total: Type.Integer(),
        limits: Type.Array(limit_schema),
        next_cursor: Type.Null(),
      }),
    },
    handle: async ({ caller, ip }, { limits }) => {
      const read = await limits.read(caller, ip);
      const headers = { 'Cache-Control': 'no-store' };
      return reply(200, { total: read.length, limits: read, next_cursor: null }, headers);
    },
  }),
];
