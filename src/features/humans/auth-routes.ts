import { Type } from '@sinclair/typebox';
import { common_faults, isFault, refuse } from '../../kit/fault.js';
import { type Reply, reply, routeFor } from '../../kit/http/route.js';
import type { Tx } from '../../kit/pg/client.js';
import { revokeDigest } from '../events/index.js';
import {
  type AccountDeps,
  forgotPassword,
  type LogIn,
  logIn,
  resetPassword,
  signUp,
  verifyAddress,
} from './accounts.js';
import { humans_faults } from './faults.js';
import { digestToken, type Sessions } from './live.js';
import { bearerToken } from './rules.js';
import {
  forgot_body,
  type HumanView,
  human_schema,
  login_body,
  login_schema,
  message_schema,
  reset_body,
  signup_body,
  verify_body,
} from './schema.js';
import { deleteToken, findHuman, type HumanRow } from './store.js';

const route = routeFor<AccountDeps>();
const tag = 'humans';
const no_store = { 'Cache-Control': 'no-store' };
const limits = ['login'] as const;

const humanView = (row: HumanRow, sessions: Sessions): HumanView => ({
  id: row.id,
  type: 'human',
  email: row.email,
  name: row.name,
  email_verified: row.email_verified_at !== null,
  is_admin: row.email_verified_at !== null && sessions.isAdminAddress(row.email_key),
  created_at: row.created_at.toISOString(),
});

export const signup = route({
  id: 'signUp',
  method: 'POST',
  path: '/api/auth/signup',
  summary: 'Sign up as a person; a mail with a link verifies the address.',
  tag,
  auth: 'public',
  limits,
  body: signup_body,
  returns: { 201: message_schema },
  faults: [common_faults.UNAVAILABLE],
  keeps: 'inside',
  async handle(ctx, deps) {
    const answer = reply(201, {
      message: 'Open the link in the mail that was sent to this address.',
    });
    const keep = (tx: Tx) => ctx.keep(tx, answer);
    return (await signUp(deps, ctx.body, keep)) ?? answer;
  },
});

export const verify = route({
  id: 'verifyAddress',
  method: 'POST',
  path: '/api/auth/verify',
  summary: 'Verify an address with the token of the mailed link.',
  tag,
  auth: 'public',
  limits,
  body: verify_body,
  returns: { 200: Type.Object({ message: Type.String(), verified: Type.Literal(true) }) },
  faults: [humans_faults.INVALID_LINK],
  keeps: 'inside',
  async handle(ctx, deps) {
    const answer = reply(200, { message: 'The address is verified; log in.', verified: true });
    const keep = (tx: Tx) => ctx.keep(tx, answer);
    return (await verifyAddress(deps, { ...ctx.body, ip: ctx.ip }, keep)) ?? answer;
  },
});

export const login = route({
  id: 'logIn',
  method: 'POST',
  path: '/api/auth/login',
  summary: 'Log in; the token ends 24 hours after its last use, and at expires_at in any case.',
  tag,
  auth: 'public',
  limits,
  body: login_body,
  returns: { 200: login_schema },
  faults: [humans_faults.INVALID_CREDENTIALS, common_faults.UNAVAILABLE],
  keeps: 'inside',
  async handle(ctx, deps) {
    const answer = ({ token, expires_at, human }: LogIn): Reply => {
      const user = humanView(human, deps.sessions);
      return reply(200, { token, expires_at: expires_at.toISOString(), user }, no_store);
    };
    const keep = (tx: Tx, session: LogIn) => ctx.keep(tx, answer(session));
    const session = await logIn(deps, { ...ctx.body, ip: ctx.ip }, keep);
    return isFault(session) ? session : answer(session);
  },
});

export const logout = route({
  id: 'logOut',
  method: 'POST',
  path: '/api/auth/logout',
  summary: 'End the session of the token.',
  tag,
  auth: 'human',
  returns: { 200: message_schema },
  keeps: 'inside',
  ends_credentials: true,
  async handle(ctx, deps) {
    const answer = reply(200, { message: 'Logged out.' });
    const digest = digestToken(bearerToken(ctx.header('authorization')));
    await deps.sql.begin(async (tx) => {
      await revokeDigest(tx, digest);
      await deleteToken(tx, digest);
      await ctx.keep(tx, answer);
    });
    return answer;
  },
});

export const session = route({
  id: 'session',
  method: 'GET',
  path: '/api/auth/session',
  summary: 'The person a token belongs to.',
  tag,
  auth: 'human',
  returns: { 200: Type.Object({ user: human_schema }) },
  async handle({ caller }, deps) {
    const human = await findHuman(deps.sql, caller.id);
    if (human === undefined) return refuse(common_faults.INVALID_TOKEN);
    return reply(200, { user: humanView(human, deps.sessions) });
  },
});

export const forgot = route({
  id: 'forgotPassword',
  method: 'POST',
  path: '/api/auth/forgot',
  summary: 'Ask for a mail with a link that sets a new password.',
  tag,
  auth: 'public',
  limits,
  body: forgot_body,
  returns: { 200: message_schema },
  keeps: 'inside',
  async handle(ctx, deps) {
    const message = 'If this address has an account, a mail is on its way.';
    const answer = reply(200, { message });
    await forgotPassword(deps, ctx.body.email, (tx) => ctx.keep(tx, answer));
    return answer;
  },
});

export const reset = route({
  id: 'resetPassword',
  method: 'POST',
  path: '/api/auth/reset',
  summary: 'Set a new password with the token of the mailed link; ends every session.',
  tag,
  auth: 'public',
  limits,
  body: reset_body,
  returns: { 200: message_schema },
  faults: [humans_faults.INVALID_LINK, common_faults.UNAVAILABLE],
  keeps: 'inside',
  async handle(ctx, deps) {
    const answer = reply(200, { message: 'The new password is set; log in.' });
    const keep = (tx: Tx) => ctx.keep(tx, answer);
    return (await resetPassword(deps, { ...ctx.body, ip: ctx.ip }, keep)) ?? answer;
  },
});

export const auth_routes = [signup, verify, login, logout, session, forgot, reset];
