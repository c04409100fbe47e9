import type { Deps } from '../../kit/deps.js';
import { common_faults, type Fault, isFault, refuse } from '../../kit/fault.js';
import { reply, routeFor } from '../../kit/http/route.js';
import { makePage, pageHeaders, readPage } from '../../kit/page.js';
import { ownerOf, webhookAbsent } from './access.js';
import {
  countDeliveries,
  findDelivery,
  listAttempts,
  listDeliveries,
  redeliver,
  startReplay,
} from './deliveries-store.js';
import { readRange } from './replay-range.js';
import {
  deliveries_query,
  deliveries_schema,
  delivery_detail_schema,
  delivery_params,
  id_params,
  redelivered_schema,
  replay_body,
  replay_schema,
  webhook_faults,
} from './schema.js';
import { findWebhook } from './store.js';
import { deliveryView, listedView, replayView } from './views.js';

/** What became of deliveries, and sending them again. */

const route = routeFor<Deps>();
const tag = 'webhooks';

const deliveryAbsent = (): Fault =>
  refuse(common_faults.NOT_FOUND, { message: 'This webhook has no delivery with this id.' });

const getDeliveries = route({
  id: 'listWebhookDeliveries',
  method: 'GET',
  path: '/api/webhooks/{id}/deliveries',
  summary: 'Deliveries of a webhook, newest first, with their last attempt',
  tag,
  auth: 'either',
  params: id_params,
  query: deliveries_query,
  returns: { 200: deliveries_schema },
  faults: [common_faults.NOT_FOUND],
  handle: async ({ caller, params, query }, { sql }) => {
    const ask = readPage(query, ['id']);
    if (isFault(ask)) return ask;
    if ((await findWebhook(sql, ownerOf(caller), params.id)) === undefined) return webhookAbsent();
    const filter = { webhook_id: params.id, state: query.status ?? null };
    const before_event_id = (ask.after?.[0] as string | undefined) ?? null;
    const [rows, total] = await Promise.all([
      listDeliveries(sql, filter, { before_event_id, limit: ask.limit + 1, offset: ask.offset }),
      countDeliveries(sql, filter),
    ]);
    const page = makePage(rows, ask.limit, (row) => [row.event_id]);
    const { next_cursor } = page;
    const path = `/api/webhooks/${params.id}/deliveries`;
    return reply(
      200,
      { total, deliveries: page.rows.map(listedView), next_cursor },
      pageHeaders(path, query, next_cursor),
    );
  },
});

const getDelivery = route({
  id: 'getWebhookDelivery',
  method: 'GET',
  path: '/api/webhooks/{id}/deliveries/{did}',
  summary: 'One delivery with its attempts: status, latency, beginning of the answer',
  tag,
  auth: 'either',
  params: delivery_params,
  returns: { 200: delivery_detail_schema },
  faults: [common_faults.NOT_FOUND],
  handle: async ({ caller, params }, { sql }) => {
    if ((await findWebhook(sql, ownerOf(caller), params.id)) === undefined) return webhookAbsent();
    const row = await findDelivery(sql, params.id, params.did);
    if (row === undefined) return deliveryAbsent();
    const attempts = await listAttempts(sql, params.id, row.event_id);
    const history = attempts.map((one) => ({ ...one, at: one.at.toISOString() }));
    return reply(200, { ...deliveryView(row), history });
  },
});

const redeliverOne = route({
  id: 'redeliverWebhook',
  method: 'POST',
  path: '/api/webhooks/{id}/deliveries/{did}/redeliver',
  summary: 'Send a delivery again now, with all its attempts before it',
  tag,
  auth: 'member',
  limits: ['webhooks'],
  params: delivery_params,
  returns: { 202: redelivered_schema },
  faults: [common_faults.NOT_FOUND, webhook_faults.WEBHOOK_INACTIVE, common_faults.INVALID_REQUEST],
  keeps: 'inside',
  handle: async (ctx, deps) => {
    const { id, did } = ctx.params;
    const hook = await findWebhook(deps.sql, ownerOf(ctx.caller), id);
    if (hook === undefined) return webhookAbsent();
    return deps.sql.begin(async (tx) => {
      const before = await findDelivery(tx, id, did);
      if (before === undefined) return deliveryAbsent();
      if (before.status === 'gap') {
        const message = 'A gap stands for many events; ask for a replay of its offsets.';
        return refuse(common_faults.INVALID_REQUEST, { message });
      }
      if (!hook.active) return refuse(webhook_faults.WEBHOOK_INACTIVE);
      await redeliver(tx, id, did);
      const row = await findDelivery(tx, id, did);
      if (row === undefined) return deliveryAbsent();
      const done = reply(202, deliveryView(row));
      await ctx.keep(tx, done);
      return done;
    });
  },
});

const replay = route({
  id: 'replayWebhook',
  method: 'POST',
  path: '/api/webhooks/{id}/replay',
  summary: 'Send the wanted events of a time or of offsets again, of 7 days at most',
  tag,
  auth: 'member',
  limits: ['webhooks'],
  params: id_params,
  body: replay_body,
  returns: { 202: replay_schema },
  faults: [common_faults.NOT_FOUND, webhook_faults.WEBHOOK_INACTIVE, webhook_faults.REPLAY_RUNNING],
  keeps: 'inside',
  handle: async (ctx, { sql, clock }) => {
    const { id } = ctx.params;
    const hook = await findWebhook(sql, ownerOf(ctx.caller), id);
    if (hook === undefined) return webhookAbsent();
    if (!hook.active) return refuse(webhook_faults.WEBHOOK_INACTIVE);
    const range = await readRange(sql, ctx.body, clock());
    if (isFault(range)) return range;
    return sql.begin(async (tx) => {
      const row = await startReplay(tx, id, range);
      if (row === undefined) return refuse(webhook_faults.REPLAY_RUNNING);
      const answer = reply(202, replayView(row));
      await ctx.keep(tx, answer);
      return answer;
    });
  },
});

export const delivery_routes = [getDeliveries, getDelivery, redeliverOne, replay];
