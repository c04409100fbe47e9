import type { Config } from '../../config.js';
import { readAddressText } from '../../kit/http/request.js';
import type { Route } from '../../kit/http/route.js';
import { type Caller, isAdmin } from '../../kit/http/route.js';
import type { Left, Limiter, Window } from '../../kit/limits.js';
import { countedBy, type LimitName, limit_table, windowOf } from './rules.js';
import type { LimitWire } from './schema.js';

/** All limits as one caller sees them. */
export interface LimitReader {
  read(caller: Caller, ip: string): Promise<readonly LimitWire[]>;
}

export interface LimitParts {
  readonly limits: LimitReader;
}

const names = Object.keys(limit_table) as readonly LimitName[];

/** Calls that every route counts; admins are counted by these alone. */
const general: readonly LimitName[] = ['ip', 'key'];

/** What is left is nobody's to see: it would tell of an account. */
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
): LimitReader => ({
  async read(caller, ip) {
    const who = { caller, address: readAddressText(ip) };
    const windows = names.map((name) =>
      isAdmin(caller) && !general.includes(name) ? null : windowOf(config, name, who),
    );
    const counted = windows.filter((window): window is Window => window !== null);
    const looked = await limiter.look(counted);
    const seen = new Map<string, Left>(counted.map(({ name }, at) => [name, looked[at] as Left]));
    const calls = names.map((name): LimitWire => {
      const { setting, per } = limit_table[name];
      const state = seen.get(name);
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
