import type { Deps } from '../../http/deps.js';
import { replyPage } from '../../http/page.js';
import { reply, routeFor } from '../../http/route.js';
import { common_faults, type Fault, isFault, refuse } from '../../kit/fault.js';
import {
  countDeliveries,
  findDelivery,
  listAttempts,
  listDeliveries,
  redeliver,
  startReplay,
} from './delivery-store.js';
import { readRange } from './replaying.js';
import * as wire from './schema.js';
import { findWebhook } from './store.js';

/** Routes for owners to read their deliveries and to send them again. */

const route = routeFor<Deps>();
const tag = 'webhooks';

export const webhookAbsent = (): Fault =>
  refuse(common_faults.NOT_FOUND, { message: 'You have no webhook with this id.' });

const deliveryAbsent = (): Fault =>
  refuse(common_faults.NOT_FOUND, { message: 'This webhook has no delivery with this id.' });

const getDeliveries = route({
  id: 'listWebhookDeliveries',
  method: 'GET',
  path: '/api/webhooks/{id}/deliveries',
  summary: 'Deliveries of a webhook, newest first, each with its last attempt',
  tag,
  auth: 'either',
  params: wire.id_params,
  query: wire.deliveries_query,
  returns: { 200: wire.deliveries_schema },
  faults: [common_faults.NOT_FOUND],
  handle: async ({ caller, params, query }, { reads: sql }) => {
    if ((await findWebhook(sql, caller, params.id)) === undefined) return webhookAbsent();
    const filter = { webhook_id: params.id, state: query.status ?? null };
    return replyPage({
      path: `/api/webhooks/${params.id}/deliveries`,
      query,
      plural: 'deliveries',
      read: (page) => listDeliveries(sql, filter, page),
      count: async () => ({ total: await countDeliveries(sql, filter) }),
      keyOf: (row) => [row.event_id],
    });
  },
});

const getDelivery = route({
  id: 'getWebhookDelivery',
  method: 'GET',
  path: '/api/webhooks/{id}/deliveries/{did}',
  summary: 'One delivery with its attempts: status, latency and the beginning of the answer',
  tag,
  auth: 'either',
  params: wire.delivery_params,
  returns: { 200: wire.delivery_detail_schema },
  faults: [common_faults.NOT_FOUND],
  handle: async ({ caller, params }, { sql }) => {
    if ((await findWebhook(sql, caller, params.id)) === undefined) return webhookAbsent();
    const row = await findDelivery(sql, params.id, params.did);
    if (row === undefined) return deliveryAbsent();
    return reply(200, { ...row, history: await listAttempts(sql, params.id, row.event_id) });
  },
});

const redeliverOne = route({
  id: 'redeliverWebhook',
  method: 'POST',
  path: '/api/webhooks/{id}/deliveries/{did}/redeliver',
  summary: 'Send a delivery again now, with as many attempts as a new one',
  tag,
  auth: 'member',
  limits: ['webhooks'],
  params: wire.delivery_params,
  returns: { 202: wire.redelivered_schema },
  faults: [
    common_faults.NOT_FOUND,
    wire.webhook_faults.WEBHOOK_INACTIVE,
    common_faults.INVALID_REQUEST,
  ],
  stores_answer: 'inside',
  handle: async (ctx, deps) => {
    const { id, did } = ctx.params;
    const hook = await findWebhook(deps.sql, ctx.caller, id);
    if (hook === undefined) return webhookAbsent();
    return ctx.write(deps.sql, async (tx) => {
      const before = await findDelivery(tx, id, did);
      if (before === undefined) return deliveryAbsent();
      if (before.status === 'gap') {
        const message = 'A gap covers many events. Replay its offsets instead.';
        return refuse(common_faults.INVALID_REQUEST, { message });
      }
      if (!hook.active) return refuse(wire.webhook_faults.WEBHOOK_INACTIVE);
      await redeliver(tx, id, did);
      return reply(202, await findDelivery(tx, id, did));
    });
  },
});

const replay = route({
  id: 'replayWebhook',
  method: 'POST',
  path: '/api/webhooks/{id}/replay',
  summary: 'Send the events of a range of times or offsets again, at most 7 days back',
  tag,
  auth: 'member',
  limits: ['webhooks'],
  params: wire.id_params,
  body: wire.replay_body,
  returns: { 202: wire.replay_schema },
  faults: [
    common_faults.NOT_FOUND,
    wire.webhook_faults.WEBHOOK_INACTIVE,
    wire.webhook_faults.REPLAY_RUNNING,
  ],
  stores_answer: 'inside',
  handle: async (ctx, { sql, clock }) => {
    const { id } = ctx.params;
    const hook = await findWebhook(sql, ctx.caller, id);
    if (hook === undefined) return webhookAbsent();
    if (!hook.active) return refuse(wire.webhook_faults.WEBHOOK_INACTIVE);
    const range = await readRange(sql, ctx.body, clock());
    if (isFault(range)) return range;
    return ctx.write(sql, async (tx) => {
      const row = await startReplay(tx, id, range);
      return row === undefined ? refuse(wire.webhook_faults.REPLAY_RUNNING) : reply(202, row);
    });
  },
});

export const delivery_routes = [getDeliveries, getDelivery, redeliverOne, replay];
