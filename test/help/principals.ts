import { makeApiKey } from '../../src/features/accounts/rules.js';
import type { Auth, Route } from '../../src/http/route.js';
import type { CallOptions, TestApp } from './app.js';
import { makeAgent, makeHuman } from './story.js';

/** Every kind of caller, and the answer that each kind of route gives it. */

/** The credentials of a call. */
export type Sent = CallOptions & { readonly query?: string };

export interface Principal {
  readonly name: string;
  readonly send: Sent;
  /**
   * Error code for refused credentials, before the route decides. Null if they are good or absent.
   */
  readonly refused: string | null;
  readonly may: readonly Auth[];
}

export const admin_email = 'admin@people.dev';

const none: readonly Auth[] = [];

const signUpOnly = async (app: TestApp): Promise<string> => {
  const account = { email: 'unverified@people.dev', password: 'correct horse battery' };
  await app.call('POST', '/api/auth/signup', { body: account });
  const { body } = await app.call('POST', '/api/auth/login', { body: account });
  return body.token;
};

/** Needs a service with `ADMIN_EMAILS=admin@people.dev`. */
export const makePrincipals = async (app: TestApp): Promise<readonly Principal[]> => {
  const human = await makeHuman(app);
  const admin = await makeHuman(app, admin_email);
  const linked = await makeAgent(app, { human });
  const unlinked = await makeAgent(app);
  const suspended = await makeAgent(app, { human });
  const revoked = await makeAgent(app, { human });
  await app.sql`update agents set suspended_at = now() where id = ${suspended.id}`;
  await app.call('POST', '/api/me/rotate-key', { key: revoked.key });
  const unverified = await signUpOnly(app);
  // These callers have their own accounts, because some calls revoke the credentials they use.
  const other = await makeHuman(app);
  const helper = await makeHuman(app);
  const operated = await makeAgent(app, { human });
  const mistaken = await makeAgent(app, { human });
  const owned = await makeAgent(app, { human: other });
  const wrong_admin = { 'x-admin-key': 'x'.repeat(40) };
  const people: readonly Auth[] = ['public', 'human', 'either', 'member'];
  const good = (name: string, send: Sent, may: readonly Auth[]): Principal => ({
    name,
    send,
    may,
    refused: null,
  });
  const bad = (name: string, refused: string, send: Sent): Principal => ({
    name,
    send,
    refused,
    may: none,
  });
  return [
    good('nobody', {}, ['public']),
    good('an agent that is not linked', { key: unlinked.key }, ['public', 'agent', 'either']),
    good('a linked agent', { key: linked.key }, ['public', 'agent', 'linked', 'either', 'member']),
    good('a person', { token: human.token }, people),
    good('a person not verified', { token: unverified }, ['public', 'human', 'either']),
    good('a person who is admin', { token: admin.token }, [...people, 'admin']),
    good('the admin key', { admin: true }, ['public', 'admin']),
    good('a linked agent with the admin key', { key: operated.key, admin: true }, [
      ...(['public', 'agent', 'linked', 'either', 'member', 'admin'] as const),
    ]),
    good('a linked agent with a wrong admin key', { key: mistaken.key, headers: wrong_admin }, [
      ...(['public', 'agent', 'linked', 'either', 'member'] as const),
    ]),
    good('a person with the admin key', { token: helper.token, admin: true }, [...people, 'admin']),
    bad('a suspended agent', 'ACCOUNT_SUSPENDED', { key: suspended.key }),
    bad('a revoked key', 'INVALID_API_KEY', { key: revoked.key }),
    bad('an unknown key', 'INVALID_API_KEY', { key: makeApiKey() }),
    bad('a malformed key', 'INVALID_API_KEY', { key: 'sk_nonsense' }),
    bad('a wrong admin key', 'INVALID_API_KEY', { headers: wrong_admin }),
    bad('an unknown token', 'INVALID_TOKEN', { token: 'nonsense' }),
    bad('a password', 'INVALID_TOKEN', { headers: { authorization: 'Basic YTpi' } }),
    bad('a token as a key', 'INVALID_API_KEY', { key: other.token }),
    bad('a key as a token', 'INVALID_TOKEN', { token: owned.key }),
    bad('key and token', 'AMBIGUOUS_AUTH', { key: owned.key, token: other.token }),
    bad('a key in the query', 'KEY_IN_QUERY', { query: `api_key=${linked.key}` }),
  ];
};

/** Error code with which a route refuses a caller. Null if it admits the caller. */
export const refusalOf = (
  { auth, takes_key, takes_key_as_token }: Pick<Route, 'auth' | 'takes_key' | 'takes_key_as_token'>,
  { refused, may, send }: Principal,
): string | null => {
  if (takes_key_as_token && send.token?.startsWith('sk_') && send.key === undefined) return null;
  if (takes_key && refused === 'AMBIGUOUS_AUTH') return null;
  if (auth === 'admin') return may.includes('admin') ? null : 'NOT_FOUND';
  if (refused !== null) return refused;
  if (may.includes(auth)) return null;
  if (send.key !== undefined) return auth === 'human' ? 'HUMANS_ONLY' : 'AGENT_NOT_LINKED';
  if (send.token === undefined) return 'MISSING_AUTH';
  return auth === 'member' ? 'EMAIL_NOT_VERIFIED' : 'AGENTS_ONLY';
};
