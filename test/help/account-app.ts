import { pino } from 'pino';
import {
  routes as agent_routes,
  bearerToken,
  createLoginLimit,
  createPrincipals,
  createSessions,
  routes as human_routes,
  type LoginLimit,
} from '../../src/features/accounts/index.js';
import { createBoards, type LeaderboardParts } from '../../src/features/leaderboards/index.js';
import { makeWindowsOf } from '../../src/features/limits/index.js';
import type { Deps } from '../../src/http/deps.js';
import { createLimiter } from '../../src/http/limits.js';
import { mount } from '../../src/http/mount.js';
import {
  App,
  exclusive_port,
  us_listen_socket_close,
  us_socket_local_port,
} from '../../src/http/request.js';
import { createResponseCache } from '../../src/http/response-cache.js';
import type { Route } from '../../src/http/route.js';
import { anonymous } from '../../src/http/route.js';
import { openParts, type PartsOptions } from './parts.js';
import type { Teardown } from './stores.js';

export const startAccountApp = async (t: Teardown, options: PartsOptions = {}) => {
  const lines: string[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => lines.push(line) });
  const parts = await openParts(t, { ...options, log });
  const principals = createPrincipals(parts.deps);
  const sessions = createSessions(parts.deps);
  const { config, redis } = parts.deps;
  const limiter = createLimiter({ redis, prefix: config.REDIS_PREFIX, processes: 1, log });
  const deps: Deps &
    LeaderboardParts & {
      principals: typeof principals;
      sessions: typeof sessions;
      logins: LoginLimit;
    } = {
    ...parts.deps,
    principals,
    sessions,
    logins: createLoginLimit(config, limiter),
    boards: createBoards(parts.deps),
  };
  const app = App();
  const mounted = mount(app, {
    routes: [...agent_routes, ...human_routes] as Route<typeof deps>[],
    deps,
    log,
    limiter,
    trusted_proxies: ['127.0.0.1'],
    link_url: () => `${deps.public_url}/link`,
    authenticate: ({ api_key, authorization }) =>
      api_key !== ''
        ? principals.byKey(api_key)
        : authorization !== ''
          ? sessions.byToken(bearerToken(authorization))
          : anonymous,
    windowsOf: makeWindowsOf(config),
    cache: createResponseCache(),
    check_answers: true,
  });
  const port = await new Promise<number>((resolve) => {
    app.listen(0, exclusive_port, (socket) => {
      if (!socket) throw new Error('no port');
      t.teardown(() => {
        us_listen_socket_close(socket);
        mounted.stop();
        limiter.stop();
        app.close();
      });
      resolve(us_socket_local_port(socket));
    });
  });
  return { ...parts, deps, lines, url: `http://127.0.0.1:${port}` };
};
