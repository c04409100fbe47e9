import { type Static, Type } from '@sinclair/typebox';
import type { Config } from '../../config.js';
import { readAddressText } from '../../http/call.js';
import { type Caller, isAdmin } from '../../http/caller.js';
import type { Limiter } from '../../http/limits.js';
import { type Route, reply, routeFor } from '../../http/route.js';
import { nullable } from '../../http/schemas.js';
import {
  countedBy,
  general_limits,
  limit_names,
  limit_table,
  windowMs,
  windowsFor,
} from './rules.js';

const limit_schema = Type.Object({
  name: Type.String({ description: 'The same name as in the RateLimit headers.' }),
  limit: Type.Integer(),
  window_seconds: Type.Integer(),
  per: Type.String({ enum: ['address', 'key', 'owner', 'account'] }),
  counts: Type.Array(Type.String(), { description: 'Counted calls: `METHOD /path`, or in words.' }),
  setting: Type.String(),
  left: nullable(
    Type.Integer({
      description: 'Calls left in the window. Null if this limit does not apply to the caller.',
    }),
  ),
  reset_seconds: nullable(
    Type.Integer({ description: 'Seconds until the oldest counted call expires.' }),
  ),
});
type LimitWire = Static<typeof limit_schema>;

export interface LimitParts {
  readonly limits: ReturnType<typeof createLimitReader>;
}

/** `left` is null for every caller, because a number would show whether the account exists. */
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
  /** Returns all limits, with the calls that this caller has left. */
  async read(caller: Caller, ip: string): Promise<LimitWire[]> {
    const address = readAddressText(ip);
    const windows = windowsFor(config, isAdmin(caller) ? general_limits : limit_names, {
      caller,
      address,
    });
    const looked = await limiter.look(windows);
    const calls = limit_names.map((name): LimitWire => {
      const { setting, per } = limit_table[name];
      const state = looked[windows.findIndex((window) => window.name === name)];
      return {
        name,
        limit: config[setting],
        window_seconds: windowMs(name) / 1_000,
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
    summary: 'All limits, the calls that they count, and how many the caller has left',
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
