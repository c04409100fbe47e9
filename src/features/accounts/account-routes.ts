import { Type } from '@sinclair/typebox';
import type { Tx } from '../../db/client.js';
import type { HumanCaller } from '../../http/caller.js';
import { type Context, reply, routeFor } from '../../http/route.js';
import { uuid_schema } from '../../http/schemas.js';
import { common_faults, type Fault, isFault, refuse } from '../../kit/fault.js';
import { revokeDigest, revokeSessions } from '../events/index.js';
import { deleteMailsTo } from '../mail/index.js';
import { deleteInbox } from '../notifications/index.js';
import { type AccountDeps, humanView, invalid } from './auth-routes.js';
import * as store from './people-store.js';
import type { Principals } from './principals-store.js';
import { unlinkAll } from './registration.js';
import * as rules from './rules.js';
import * as wire from './schema.js';

/** Routes for people to change or delete their own account. */

/** The function is passed in, because the webhooks feature already imports this feature. */
interface WebhookEnd {
  readonly endWebhooks: (tx: Tx, human_id: string) => Promise<void>;
}
type Needs = AccountDeps & WebhookEnd & { readonly principals: Principals };

const route = routeFor<Needs>();
const tag = 'humans';
const of_person = { tag, auth: 'human' } as const;

type PersonCall = Context<unknown, unknown, unknown, HumanCaller>;

const ownDigest = (ctx: PersonCall): Buffer =>
  rules.digestSecret(rules.bearerToken(ctx.header('authorization')));

/**
 * Checks the password in the body and returns the caller's account. A wrong password counts as a
 * failed log-in, so a stolen session cannot be used to try passwords.
 */
const provePassword = async (
  ctx: PersonCall,
  { sql, logins, sessions }: Needs,
  { path, password }: { readonly path: string; readonly password: string },
): Promise<store.HumanRow | Fault> => {
  const human = await store.findHuman(sql, ctx.caller.id);
  if (human === undefined) return refuse(common_faults.INVALID_TOKEN);
  const place = logins.digestOf(human.id, ctx.ip);
  const is_at_home = await store.isKnownAddress(sql, human.id, place);
  const attempt = await logins.take(human.email_key, is_at_home ? place : null);
  if (isFault(attempt)) return attempt;
  const right = await sessions.passwords.verify(human.password_hash, password);
  if (right === false) {
    const def = wire.humans_faults.WRONG_PASSWORD;
    return refuse(def, { fields: [{ path, message: def.sentence }] });
  }
  await attempt.giveBack();
  return isFault(right) ? right : human;
};

const updateAccount = route({
  ...of_person,
  id: 'updateAccount',
  method: 'PATCH',
  path: '/api/me/account',
  summary: "Change the calling person's name, which only e-mails use; null removes it.",
  body: wire.account_body,
  returns: { 200: Type.Object({ user: wire.human_schema }) },
  stores_answer: 'inside',
  async handle(ctx, deps) {
    const name = rules.readHumanName(ctx.body.name ?? '');
    if (name === undefined) return invalid('body.name', 'Enter at most 80 visible characters.');
    return ctx.write(deps.sql, async (tx) => {
      await store.renameHuman(tx, ctx.caller.id, name);
      const human = await store.findHuman(tx, ctx.caller.id);
      if (human === undefined) return refuse(common_faults.INVALID_TOKEN);
      return reply(200, { user: humanView(human, deps.sessions) });
    });
  },
});

const changePassword = route({
  ...of_person,
  id: 'changePassword',
  method: 'POST',
  path: '/api/me/account/password',
  summary: 'Change the password. All other sessions end, and mailed reset links stop working.',
  limits: ['login'],
  body: wire.password_body,
  returns: { 200: wire.message_schema },
  faults: [wire.humans_faults.WRONG_PASSWORD, common_faults.UNAVAILABLE],
  stores_answer: 'inside',
  async handle(ctx, deps) {
    const { current_password, password } = ctx.body;
    const given = { path: 'body.current_password', password: current_password };
    const human = await provePassword(ctx, deps, given);
    if (isFault(human)) return human;
    const password_hash = await deps.sessions.passwords.hash(password);
    if (isFault(password_hash)) return password_hash;
    return ctx.write(deps.sql, async (tx) => {
      const locked = await store.lockHuman(tx, human.id);
      // If the password was changed in the meantime, that change also ended this session.
      if (locked?.password_hash !== human.password_hash) {
        return refuse(common_faults.INVALID_TOKEN);
      }
      await store.setPassword(tx, human.id, password_hash);
      await store.deleteResets(tx, human.id);
      await endSessions(tx, human.id, { but: ownDigest(ctx) });
      return reply(200, { message: 'The new password is set. All other sessions have ended.' });
    });
  },
});

/** Ends sessions and closes the connections that they opened. Returns the number of sessions. */
const endSessions = async (
  tx: Tx,
  human_id: string,
  which: Parameters<typeof store.deleteSessions>[2],
): Promise<number> => {
  const digests = await store.deleteSessions(tx, human_id, which);
  for (const digest of digests) await revokeDigest(tx, digest);
  return digests.length;
};

const listSessions = route({
  ...of_person,
  id: 'listSessions',
  method: 'GET',
  path: '/api/me/sessions',
  summary: "The calling person's sessions, most recently used first; at most 100.",
  returns: {
    200: Type.Object({
      total: Type.Integer(),
      sessions: Type.Array(wire.session_schema),
      next_cursor: Type.Null(),
    }),
  },
  async handle(ctx, { sql, clock }) {
    const own = ownDigest(ctx);
    const rows = await store.listSessions(sql, ctx.caller.id, clock());
    const sessions = rows.map(({ digest, ...row }) => ({ ...row, current: digest.equals(own) }));
    return reply(200, { total: sessions.length, sessions, next_cursor: null });
  },
});

const ended_schema = Type.Object({ message: Type.String(), ended: Type.Integer() });
const sayEnded = (ended: number) =>
  reply(200, {
    message: ended === 1 ? 'One session has ended.' : `${ended} sessions have ended.`,
    ended,
  });

const endSession = route({
  ...of_person,
  id: 'endSession',
  method: 'DELETE',
  path: '/api/me/sessions/{id}',
  summary: "End one of the calling person's sessions.",
  params: Type.Object({ id: uuid_schema }),
  absent: wire.humans_faults.SESSION_NOT_FOUND,
  returns: { 200: ended_schema },
  faults: [wire.humans_faults.SESSION_NOT_FOUND],
  async handle({ params: { id }, caller }, { sql }) {
    const ended = await sql.begin((tx) => endSessions(tx, caller.id, { id }));
    return ended === 0 ? refuse(wire.humans_faults.SESSION_NOT_FOUND) : sayEnded(ended);
  },
});

const endOtherSessions = route({
  ...of_person,
  id: 'endOtherSessions',
  method: 'DELETE',
  path: '/api/me/sessions',
  summary: "End all of the calling person's sessions except this one.",
  returns: { 200: ended_schema },
  async handle(ctx, { sql }) {
    const own = ownDigest(ctx);
    return sayEnded(await sql.begin((tx) => endSessions(tx, ctx.caller.id, { but: own })));
  },
});

/**
 * Locks agents before their owner, like everywhere else. Agents that are linked between the two
 * locks are unlinked in a second pass. Later links fail, because the account is gone.
 */
const deleteAccount = route({
  ...of_person,
  id: 'deleteAccount',
  method: 'POST',
  path: '/api/me/account/delete',
  summary: 'Delete the account. Agents are unlinked and keep their records. All else is erased.',
  limits: ['login'],
  body: wire.delete_body,
  returns: { 200: Type.Object({ message: Type.String(), unlinked: Type.Array(uuid_schema) }) },
  faults: [wire.humans_faults.WRONG_PASSWORD, common_faults.UNAVAILABLE],
  stores_answer: 'inside',
  ends_credentials: true,
  async handle(ctx, deps) {
    const given = { path: 'body.password', password: ctx.body.password };
    const human = await provePassword(ctx, deps, given);
    if (isFault(human)) return human;
    let unlinked: readonly string[] = [];
    const answer = await ctx.write(deps.sql, async (tx) => {
      const before = await unlinkAll(tx, human.id, deps.clock());
      if ((await store.lockHuman(tx, human.id)) === undefined) {
        return refuse(common_faults.INVALID_TOKEN);
      }
      unlinked = [...before, ...(await unlinkAll(tx, human.id, deps.clock()))];
      await deps.endWebhooks(tx, human.id);
      await deleteMailsTo(tx, human.email);
      await deleteInbox(tx, human.id);
      await revokeSessions(tx, human.id);
      await store.deleteHuman(tx, human.id);
      return reply(200, { message: 'The account is deleted.', unlinked });
    });
    for (const id of unlinked) deps.principals.forget(id);
    return answer;
  },
});

export const account_routes = [
  updateAccount,
  changePassword,
  listSessions,
  endSession,
  endOtherSessions,
  deleteAccount,
];
