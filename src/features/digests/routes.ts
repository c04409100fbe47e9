import { timingSafeEqual } from 'node:crypto';
import { Type } from '@sinclair/typebox';
import type { HumanCaller } from '../../http/caller.js';
import type { Deps } from '../../http/deps.js';
import { reply, routeFor } from '../../http/route.js';
import { common_faults, refuse } from '../../kit/fault.js';
import { sha256 } from '../../kit/ids.js';
import { dropBulkMails } from '../mail/index.js';
import { usual_move_points } from '../notifications/schema.js';
import { createUnsubscribeTokens, mail_lists, nextDigestAt } from './rules.js';
import * as wire from './schema.js';
import { stopAddresses } from './sending.js';
import * as store from './store.js';

/** Which digests and alerts a person gets, and the ways to end them. */

const route = routeFor<Deps>();
const tag = 'mail';
const path = '/api/me/account/mail';

const none: store.SettingsRow = {
  digest: 'off',
  alerts: [],
  move_points: usual_move_points,
  next_digest_at: null,
  stopped_at: null,
  stopped_reason: null,
};

const show = (row: store.SettingsRow, { email_verified }: HumanCaller): wire.MailSettings => ({
  digest: row.digest,
  alerts: [...row.alerts],
  move_points: row.move_points,
  next_digest_at: row.next_digest_at?.toISOString() ?? null,
  email_verified,
  stopped:
    row.stopped_at === null
      ? null
      : { at: row.stopped_at.toISOString(), reason: row.stopped_reason ?? '' },
});

const getSettings = route({
  id: 'mailSettings',
  method: 'GET',
  path,
  summary: 'Which digests and alerts the calling person gets',
  tag,
  auth: 'human',
  returns: { 200: wire.mail_settings_schema },
  handle: async ({ caller }, { sql }) =>
    reply(200, show((await store.readSettings(sql, caller.id)) ?? none, caller)),
});

const patchSettings = route({
  id: 'updateMailSettings',
  method: 'PATCH',
  path,
  summary: 'Change which digests and alerts the calling person gets',
  tag,
  auth: 'human',
  stores_answer: 'inside',
  body: wire.mail_settings_body,
  returns: { 200: wire.mail_settings_schema },
  handle: (ctx, { sql, clock }) => {
    const { caller, body } = ctx;
    return ctx.write(sql, async (tx) => {
      const before = (await store.lockSettings(tx, caller.id)) ?? none;
      const { digest = before.digest, move_points = before.move_points } = body;
      const row = await store.putSettings(tx, caller.id, {
        digest,
        alerts: [...new Set(body.alerts ?? before.alerts)],
        move_points,
        next_digest_at:
          digest === before.digest ? before.next_digest_at : nextDigestAt(digest, clock()),
        ...(body.stopped === null
          ? { stopped_at: null, stopped_reason: null }
          : { stopped_at: before.stopped_at, stopped_reason: before.stopped_reason }),
      });
      if (row === undefined) return refuse(common_faults.INVALID_TOKEN);
      return reply(200, show(row, caller));
    });
  },
});

const list_texts = { digest: 'digests', alerts: 'alerts' } as const;

const unsubscribe = route({
  id: 'unsubscribe',
  method: 'POST',
  path: '/api/unsubscribe/{token}',
  summary: 'End the digests or alerts that an unsubscribe link names; no log-in is needed',
  tag,
  auth: 'public',
  params: Type.Object({ token: Type.String({ maxLength: 100 }) }),
  query: wire.unsubscribe_query,
  returns: { 200: wire.unsubscribe_answer },
  faults: [wire.digest_faults.INVALID_UNSUBSCRIBE_LINK],
  stores_answer: 'inside',
  handle: (ctx, { sql, config, clock }) => {
    const named = createUnsubscribeTokens(config.SECRET_KEY ?? '').read(ctx.params.token);
    if (named === null) return refuse(wire.digest_faults.INVALID_UNSUBSCRIBE_LINK);
    const ended = ctx.query.all === true ? mail_lists : [named.list];
    return ctx.write(sql, async (tx) => {
      // Nothing is left to end if the account was deleted.
      const email = await store.endLists(tx, named.human_id, ended);
      if (email !== undefined) await dropBulkMails(tx, [email], clock());
      return reply(200, {
        message: `You get no more ${ended.map((list) => list_texts[list]).join(' or ')}.`,
        ended,
      });
    });
  },
});

const isEqual = (given: string, secret: string): boolean =>
  timingSafeEqual(Buffer.from(sha256(given, 'hex')), Buffer.from(sha256(secret, 'hex')));

const takeBounces = route({
  id: 'takeBounces',
  method: 'POST',
  path: '/api/mail/bounces',
  summary: 'Report addresses that a mail provider could not deliver to; needs MAIL_BOUNCE_SECRET',
  tag,
  auth: 'public',
  body: wire.bounces_body,
  returns: { 200: wire.bounces_answer },
  faults: [wire.digest_faults.INVALID_BOUNCE_SECRET, common_faults.NOT_FOUND],
  stores_answer: 'inside',
  handle: (ctx, { sql, clock, config }) => {
    const { MAIL_BOUNCE_SECRET: secret } = config;
    if (secret === undefined) return refuse(common_faults.NOT_FOUND);
    if (!isEqual(ctx.header('x-bounce-secret'), secret)) {
      return refuse(wire.digest_faults.INVALID_BOUNCE_SECRET);
    }
    const refused = ctx.body.bounces.map(({ address, reason }) => {
      return { address, reason: reason ?? 'The mail provider reported a bounce.' };
    });
    return ctx.write(sql, async (tx) =>
      reply(200, { stopped: await stopAddresses(tx, refused, clock()) }),
    );
  },
});

export const routes = [getSettings, patchSettings, unsubscribe, takeBounces];
