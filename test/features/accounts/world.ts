import { pino } from 'pino';
import type { Tx } from '../../../src/db/client.js';
import { account_routes } from '../../../src/features/accounts/account-routes.js';
import { admin_routes } from '../../../src/features/accounts/admin-routes.js';
import { agent_routes, link_routes } from '../../../src/features/accounts/agents-routes.js';
import { auth_routes } from '../../../src/features/accounts/auth-routes.js';
import { createLoginLimit, createPrincipals } from '../../../src/features/accounts/index.js';
import {
  insertHuman,
  insertToken,
  markVerified,
} from '../../../src/features/accounts/people-store.js';
import { bearerToken, makeToken } from '../../../src/features/accounts/rules.js';
import { createSessions } from '../../../src/features/accounts/sessions.js';
import { createBoards } from '../../../src/features/leaderboards/index.js';
import { makeWindowsOf } from '../../../src/features/limits/rules.js';
import { deleteWebhooks } from '../../../src/features/webhooks/index.js';
import { anonymous } from '../../../src/http/caller.js';
import { createLimiter } from '../../../src/http/limits.js';
import { mount } from '../../../src/http/pipeline.js';
import { createResponseCache } from '../../../src/http/response-cache.js';
import type { Route } from '../../../src/http/route.js';
import {
  App,
  exclusive_port,
  us_listen_socket_close,
  us_socket_local_port,
} from '../../../src/http/uws.js';
import { makeId } from '../../../src/kit/ids.js';
import { outbox } from '../../../src/web/index.js';
import { type CallOptions, makeCaller } from '../../help/app.js';
import { checkAnswers } from '../../help/checked.js';
import { openParts, type PartsOptions } from '../../help/parts.js';
import type { Teardown } from '../../help/stores.js';

/** The account routes alone, with a clock that the test moves. */

const account_api_routes = [
  ...agent_routes,
  ...auth_routes,
  ...account_routes,
  ...link_routes,
  ...admin_routes,
];

export type Client = ReturnType<typeof makeCaller>;
export const password = 'correct horse battery';

interface Mail {
  readonly to: string;
  readonly subject: string;
  readonly links: readonly string[];
}

export const tokenOf = (mail: Mail | undefined): string =>
  new URL(mail?.links[0] ?? '').searchParams.get('token') ?? '';

const serve = async (t: Teardown, options: PartsOptions) => {
  const lines: string[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => lines.push(line) });
  const parts = await openParts(t, { ...options, log });
  const { config, redis } = parts.deps;
  const limiter = createLimiter({ redis, prefix: config.REDIS_PREFIX, processes: 1, log });
  const deps = {
    ...parts.deps,
    principals: createPrincipals(parts.deps),
    sessions: createSessions(parts.deps),
    logins: createLoginLimit(config, limiter),
    boards: createBoards(parts.deps),
    async endWebhooks(tx: Tx, id: string): Promise<void> {
      await deleteWebhooks(tx, { kind: 'human', id });
    },
  };
  const app = App();
  const mounted = mount(app, {
    routes: ([...account_api_routes, outbox] as Route<typeof deps>[]).map(checkAnswers),
    deps,
    log,
    limiter,
    trusted_proxies: ['127.0.0.1'],
    public_url: () => deps.public_url,
    authenticate({ api_key, authorization }) {
      if (api_key !== '') return deps.principals.byKey(api_key);
      return authorization === '' ? anonymous : deps.sessions.byToken(bearerToken(authorization));
    },
    windowsOf: makeWindowsOf(config),
    cache: createResponseCache(),
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

export const startAccounts = async (t: Teardown, options: PartsOptions = {}) => {
  const forum = await serve(t, options);
  const { deps, url } = forum;
  const call = makeCaller(url);
  let made = 0;
  const newName = () => `Agent ${makeId().slice(-12)}`;
  /** A client with its own network address, so that limits per address do not interfere. */
  const makeClient = (): Client => {
    made += 1;
    const address = { 'X-Forwarded-For': `10.0.${made >> 8}.${made & 255}` };
    return (method, path, { headers, ...rest }: CallOptions = {}) =>
      call(method, path, { ...rest, headers: { ...address, ...headers } });
  };
  return {
    ...forum,
    makeClient,
    newName,
    /** The e-mails to an address, newest first. */
    async mailsTo(email: string): Promise<Mail[]> {
      const { body } = await makeClient()('GET', '/dev/outbox');
      return (body as Mail[]).filter(({ to }) => to === email);
    },
    /** A person with a session, without the cost of a password hash. */
    async addPerson(is_verified = true) {
      const id = makeId();
      const email = `${id}@people.dev`;
      const now = deps.clock();
      const { token, digest } = makeToken('session');
      await deps.sql.begin(async (tx) => {
        const names = { email, email_key: email, name: null, password_hash: 'none' };
        await insertHuman(tx, { id, ...names, created_at: now });
        if (is_verified) await markVerified(tx, id, { now });
        await insertToken(tx, id, { digest, kind: 'session', now });
      });
      const client = makeClient();
      const read = () => client('GET', '/api/auth/session', { token });
      return { id, token, call: client, read };
    },
    /** Registers an agent. If a person's token is given, links the agent to that person. */
    async addAgent(fields: Readonly<Record<string, unknown>> = {}, token?: string) {
      const client = makeClient();
      const body = { name: newName(), model: 'gpt-5', ...fields };
      const options = token === undefined ? { body } : { body, token };
      const answer = await client('POST', '/api/register', options);
      const { user, api_key } = answer.body;
      return { answer, call: client, user, id: user?.id as string, key: api_key as string };
    },
  };
};
export type Accounts = Awaited<ReturnType<typeof startAccounts>>;
