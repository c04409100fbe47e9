import { Type } from '@sinclair/typebox';
import type { Tx } from '../../db/client.js';
import type { Deps } from '../../http/deps.js';
import { type Answer, type Context, reply, routeFor } from '../../http/route.js';
import { common_faults, type Fault, isFault, refuse, refuseFields } from '../../kit/fault.js';
import { makeId } from '../../kit/ids.js';
import { waitUntilFloor } from '../../kit/service.js';
import { revokeDigest, revokeSessions } from '../events/index.js';
import { queueMail } from '../mail/index.js';
import * as store from './people-store.js';
import * as rules from './rules.js';
import * as wire from './schema.js';
import type { LoginLimit, Sessions } from './sessions.js';

/**
 * Sign-up, verification, log-in and password reset. No response reveals whether an address has an
 * account. Unknown addresses get the same response, after the same password hashing. Every response
 * takes at least `floor_ms`, which hides the few statements that only one case needs.
 */

export type AccountDeps = Deps & { readonly sessions: Sessions; readonly logins: LoginLimit };

const route = routeFor<AccountDeps>();
const floor_ms = 120;
const tag = 'humans';
const public_call = {
  ...({ method: 'POST', tag, auth: 'public', stores_answer: 'inside' } as const),
  limits: ['login'],
};

export const humanView = (row: store.HumanRow, sessions: Sessions) => {
  const { id, email, name, created_at } = row;
  const email_verified = row.email_verified_at !== null;
  const is_admin = email_verified && sessions.isAdminAddress(row.email_key);
  return { id, type: 'human', email, name, email_verified, is_admin, created_at };
};

export const invalid = (path: string, message: string): Fault =>
  refuseFields([{ path, message }], message);

/** Each e-mail contains a link and says when to ignore it. */
const mails = {
  verify: {
    kind: 'verify',
    subject: 'Verify your address',
    before: 'Open this page to verify your address, so that you can link your agents',
    after:
      'The link works for two days. If you did not sign up, ignore this e-mail and do not open ' +
      'the link. The account then stays unverified and can do nothing.',
  },
  /** Sent if somebody signs up with an address that has an account. No response says so. */
  known: {
    kind: 'reset',
    subject: 'You already have an account',
    before:
      'Somebody, probably you, signed up with this address, but it already has an account. ' +
      'Log in with your password, or choose a new one here (this also verifies the address)',
    after: 'The link works for one hour. If it was not you, ignore this e-mail. Nothing changed.',
  },
  /** Sent if someone requests the verification e-mail again after the address was verified. */
  verified: {
    kind: 'reset',
    subject: 'Your address is already verified',
    before: 'Your address is already verified. Log in with your password, or choose a new one here',
    after: 'The link works for one hour. If it was not you, ignore this e-mail. Nothing changed.',
  },
  reset: {
    kind: 'reset',
    subject: 'Choose a new password',
    before: 'Open this page to choose a new password',
    after:
      'The link works for an hour. If you did not ask for it, ignore this e-mail. Nothing changed.',
  },
} as const;

/** Queues an e-mail with a new link, unless the address got too many e-mails of this kind. */
const mailLink = async (
  tx: Tx,
  { public_url, config, clock }: Deps,
  human: Pick<store.HumanRow, 'id' | 'email' | 'name'>,
  mail: keyof typeof mails,
): Promise<void> => {
  const { kind, subject, before, after } = mails[mail];
  const at = clock();
  await store.lockHuman(tx, human.id);
  const since = new Date(at.getTime() - 3_600_000);
  const sent = await store.countTokens(tx, human.id, kind, since);
  if (sent >= rules.link_mails_per_hour) return;
  const { token, digest } = rules.makeToken(kind);
  await store.insertToken(tx, human.id, { digest, kind, now: at });
  const link = `${public_url}/auth/${kind}?token=${token}`;
  const greeting = human.name === null ? 'Hello,' : `Hello ${human.name},`;
  const text = `${greeting}\n\n${before}:\n\n${link}\n\n${after}\n\nPrediction Forum`;
  await queueMail(tx, { to: human.email, subject, text, links: [link] }, { config, at });
};

/**
 * If the address has an account, the service sends another e-mail and ignores the password.
 * Otherwise a stranger could set the password of an account that its owner verifies later.
 */
const signup = route({
  ...public_call,
  id: 'signUp',
  path: '/api/auth/signup',
  summary: 'Sign up as a person. A link in an e-mail verifies the address.',
  body: wire.signup_body,
  returns: { 201: wire.message_schema },
  faults: [common_faults.UNAVAILABLE],
  async handle(ctx, deps) {
    const started_ms = performance.now();
    const address = rules.readAddress(ctx.body.email);
    if (address === null) {
      return invalid('body.email', 'Enter an e-mail address, such as ada@example.org.');
    }
    const name = rules.readHumanName(ctx.body.name);
    if (name === undefined) return invalid('body.name', 'Enter at most 80 visible characters.');
    const password_hash = await deps.sessions.passwords.hash(ctx.body.password);
    if (isFault(password_hash)) return password_hash;
    const human = { id: makeId(), ...address, name, password_hash, created_at: deps.clock() };
    const message = 'Open the link in the e-mail that was sent to this address.';
    const answer = await ctx.write(deps.sql, async (tx) => {
      if (await store.insertHuman(tx, human)) await mailLink(tx, deps, human, 'verify');
      else {
        const known = await store.findHumanByEmail(tx, human.email_key);
        if (known !== undefined) await mailLink(tx, deps, known, 'known');
      }
      return reply(201, { message });
    });
    await waitUntilFloor(started_ms, floor_ms);
    return answer;
  },
});

/** Queues an e-mail if the address has an account. The response is the same in both cases. */
const mailTo = async (
  ctx: Context<unknown, unknown, { readonly email: string }>,
  deps: AccountDeps,
  choose: (human: store.HumanRow) => keyof typeof mails,
): Promise<Answer> => {
  const started_ms = performance.now();
  const email_key = rules.readAddress(ctx.body.email)?.email_key ?? '';
  const human = await store.findHumanByEmail(deps.sql, email_key);
  const message = 'If this address has an account, an e-mail is on its way.';
  const answer = await ctx.write(deps.sql, async (tx) => {
    if (human !== undefined) await mailLink(tx, deps, human, choose(human));
    return reply(200, { message });
  });
  await waitUntilFloor(started_ms, floor_ms);
  return answer;
};

const resend = route({
  ...public_call,
  id: 'resendVerification',
  path: '/api/auth/resend',
  summary: 'Request the verification e-mail again.',
  body: wire.forgot_body,
  returns: { 200: wire.message_schema },
  handle: (ctx, deps) =>
    mailTo(ctx, deps, ({ email_verified_at }) =>
      email_verified_at === null ? 'verify' : 'verified',
    ),
});

/** The link can be used several times until it expires. */
const verify = route({
  ...public_call,
  id: 'verifyAddress',
  path: '/api/auth/verify',
  summary: 'Verify an address with the token of the mailed link.',
  body: wire.verify_body,
  returns: { 200: Type.Object({ message: Type.String(), verified: Type.Literal(true) }) },
  faults: [wire.humans_faults.INVALID_LINK],
  async handle(ctx, { sql, clock, logins }) {
    const { token } = ctx.body;
    if (!rules.isTokenOf('verify', token)) return refuse(wire.humans_faults.INVALID_LINK);
    return ctx.write(sql, async (tx) => {
      const now = clock();
      const use = { digest: rules.digestSecret(token), kind: 'verify', now } as const;
      const human_id = await store.findTokenOwner(tx, use);
      if (human_id === undefined) return refuse(wire.humans_faults.INVALID_LINK);
      await store.markVerified(tx, human_id, { now });
      await store.rememberAddress(tx, human_id, logins.digestOf(human_id, ctx.ip), now);
      return reply(200, { message: 'The address is verified. Log in now.', verified: true });
    });
  },
});

type LogInCall = Context<unknown, unknown, { readonly email: string; readonly password: string }>;

/** Returns the same fault for unknown addresses and wrong passwords. */
const wrong = (): Fault => refuse(wire.humans_faults.INVALID_CREDENTIALS);

const tryLogIn = async (ctx: LogInCall, deps: AccountDeps): Promise<Answer> => {
  const { sql, logins, sessions } = deps;
  const address = rules.readAddress(ctx.body.email);
  if (address === null) return wrong();
  const known = await store.findHumanByEmail(sql, address.email_key);
  const address_digest = logins.digestOf(known?.id ?? '', ctx.ip);
  const is_known_address =
    known !== undefined && (await store.isKnownAddress(sql, known.id, address_digest));
  const attempt = await logins.take(address.email_key, is_known_address ? address_digest : null);
  if (isFault(attempt)) return attempt;
  const right = await sessions.passwords.verify(known?.password_hash ?? null, ctx.body.password);
  if (isFault(right)) {
    await attempt.giveBack();
    return right;
  }
  if (!right || known === undefined) return wrong();
  const answer = await openSession(ctx, deps, { known, address_digest });
  if (!isFault(answer)) await attempt.giveBack();
  return answer;
};

const openSession = async (
  ctx: LogInCall,
  { sql, clock, sessions }: AccountDeps,
  { known, address_digest }: { readonly known: store.HumanRow; readonly address_digest: Buffer },
): Promise<Answer> =>
  ctx.write(sql, async (tx) => {
    const human = await store.lockHuman(tx, known.id);
    // If a password reset has ended all sessions, the old password must not start a new one.
    if (human === undefined || human.password_hash !== known.password_hash) return wrong();
    const now = clock();
    await store.pruneTokens(tx, human.id, now);
    await store.rememberAddress(tx, human.id, address_digest, now);
    const { token, digest } = rules.makeToken('session');
    const expires_at = await store.insertToken(tx, human.id, { digest, kind: 'session', now });
    const session = { token, expires_at, user: humanView(human, sessions) };
    return reply(200, session, { 'Cache-Control': 'no-store' });
  });

const login = route({
  ...public_call,
  id: 'logIn',
  path: '/api/auth/login',
  summary: 'Log in. The token expires 24 hours after its last use, and no later than `expires_at`.',
  body: wire.login_body,
  returns: { 200: wire.login_schema },
  faults: [wire.humans_faults.INVALID_CREDENTIALS, common_faults.UNAVAILABLE],
  async handle(ctx, deps) {
    const started_ms = performance.now();
    const answer = await tryLogIn(ctx, deps);
    await waitUntilFloor(started_ms, floor_ms);
    return answer;
  },
});

const logout = route({
  id: 'logOut',
  method: 'POST',
  path: '/api/auth/logout',
  summary: 'End the session of the token.',
  tag,
  auth: 'human',
  returns: { 200: wire.message_schema },
  stores_answer: 'inside',
  ends_credentials: true,
  async handle(ctx, deps) {
    const digest = rules.digestSecret(rules.bearerToken(ctx.header('authorization')));
    return ctx.write(deps.sql, async (tx) => {
      await revokeDigest(tx, digest);
      await store.deleteToken(tx, digest);
      return reply(200, { message: 'Logged out.' });
    });
  },
});

const session = route({
  id: 'session',
  method: 'GET',
  path: '/api/auth/session',
  summary: 'The person that the token belongs to.',
  tag,
  auth: 'human',
  returns: { 200: Type.Object({ user: wire.human_schema }) },
  async handle({ caller }, { sql, sessions }) {
    const human = await store.findHuman(sql, caller.id);
    if (human === undefined) return refuse(common_faults.INVALID_TOKEN);
    return reply(200, { user: humanView(human, sessions) });
  },
});

const forgot = route({
  ...public_call,
  id: 'forgotPassword',
  path: '/api/auth/forgot',
  summary: 'Request an e-mail with a link to set a new password.',
  body: wire.forgot_body,
  returns: { 200: wire.message_schema },
  handle: (ctx, deps) => mailTo(ctx, deps, () => 'reset'),
});

/** A reset also verifies the address, ends all sessions and invalidates all mailed links. */
const reset = route({
  ...public_call,
  id: 'resetPassword',
  path: '/api/auth/reset',
  summary: 'Set a new password with the token of the mailed link. All sessions end.',
  body: wire.reset_body,
  returns: { 200: wire.message_schema },
  faults: [wire.humans_faults.INVALID_LINK, common_faults.UNAVAILABLE],
  async handle(ctx, { sql, clock, sessions, logins }) {
    const { token, password } = ctx.body;
    if (!rules.isTokenOf('reset', token)) return refuse(wire.humans_faults.INVALID_LINK);
    const now = clock();
    const use = { digest: rules.digestSecret(token), kind: 'reset', now } as const;
    // Looks up the token before hashing the password, so that made-up tokens cost no hashing.
    const owner = await sql.begin((tx) => store.findTokenOwner(tx, use));
    if (owner === undefined) return refuse(wire.humans_faults.INVALID_LINK);
    const password_hash = await sessions.passwords.hash(password);
    if (isFault(password_hash)) return password_hash;
    return ctx.write(sql, async (tx) => {
      await store.lockHuman(tx, owner);
      const human_id = await store.findTokenOwner(tx, use);
      if (human_id === undefined) return refuse(wire.humans_faults.INVALID_LINK);
      await store.markVerified(tx, human_id, { now, password_hash });
      await revokeSessions(tx, human_id);
      await store.deleteTokens(tx, human_id);
      await store.rememberAddress(tx, human_id, logins.digestOf(human_id, ctx.ip), now);
      return reply(200, { message: 'The new password is set. Log in now.' });
    });
  },
});

export const auth_routes = [signup, resend, verify, login, logout, session, forgot, reset];
