import type { Deps } from '../../kit/deps.js';
import { common_faults, isFault, refuse } from '../../kit/fault.js';
import { call_errors } from '../../kit/guarded-client/call-errors.js';
import { reply, routeFor } from '../../kit/http/route.js';
import { makeId } from '../../kit/ids.js';
import { ws_faults } from '../../kit/ws/frames.js';
import { catalogue, event_names } from '../events/index.js';
import type { TaxonomyParts } from '../taxonomy/index.js';
import { ownerOf, webhookAbsent } from './access.js';
import { checkEvents, checkUrl, readNarrowing, refuseNarrowing } from './checks.js';
import { findReplay } from './deliveries-store.js';
import { delivery_routes } from './delivery-routes.js';
import { webhook_page } from './page-routes.js';
import type { LetterError, WebhookParts } from './parts.js';
import {
  create_body,
  created_schema,
  deleted_schema,
  event_types_schema,
  id_params,
  rotate_body,
  rotated_schema,
  tested_schema,
  update_body,
  usual_overlap_hours,
  webhook_detail_schema,
  webhook_faults,
  webhook_schema,
  webhooks_schema,
} from './schema.js';
import { makeSecret } from './sealing.js';
import { standardSecret } from './signing.js';
import {
  deleteWebhook,
  findWebhook,
  insertWebhook,
  listWebhooks,
  rotateSecret,
  updateWebhook,
} from './store.js';
import { replayView, webhookView } from './views.js';

const route = routeFor<Deps & WebhookParts & TaxonomyParts>();
const tag = 'webhooks';

const withWarning = (warning: string | null) => (warning === null ? {} : { warning });

const url_fault_list = [
  webhook_faults.INVALID_URL,
  webhook_faults.HTTPS_REQUIRED,
  webhook_faults.SSRF_BLOCKED,
];

const createWebhook = route({
  id: 'createWebhook',
  method: 'POST',
  path: '/api/webhooks',
  summary: 'Create a webhook; its secret is shown only in this answer',
  tag,
  auth: 'member',
  limits: ['webhooks'],
  body: create_body,
  returns: { 201: created_schema },
  faults: [
    ...url_fault_list,
    webhook_faults.INVALID_EVENT,
    ws_faults.INVALID_FILTER,
    webhook_faults.WEBHOOK_LIMIT_REACHED,
  ],
  keeps: 'inside',
  handle: async (ctx, { sql, webhooks, taxonomy }) => {
    const { body, caller } = ctx;
    const unknown = refuseNarrowing(body);
    if (unknown !== null) return unknown;
    const events = checkEvents(body.events);
    if (isFault(events)) return events;
    const filter = readNarrowing(body, await taxonomy.read());
    if (isFault(filter)) return filter;
    const url = await checkUrl(body.url, webhooks);
    if (isFault(url)) return url;
    const id = makeId();
    const secret = makeSecret();
    const secret_sealed = webhooks.sealer.seal(id, secret);
    const owner = ownerOf(caller);
    const signing_secret = standardSecret(secret);
    return sql.begin(async (tx) => {
      const hook = { id, owner, url: url.href, events, secret_sealed, filter };
      const row = await insertWebhook(tx, hook);
      if (row === null) return refuse(webhook_faults.WEBHOOK_LIMIT_REACHED);
      const shown = { ...webhookView(row), secret, signing_secret, ...withWarning(url.warning) };
      const answer = reply(201, shown);
      await ctx.keep(tx, answer);
      return answer;
    });
  },
});

const getWebhooks = route({
  id: 'listWebhooks',
  method: 'GET',
  path: '/api/webhooks',
  summary: "The caller's webhooks",
  tag,
  auth: 'either',
  returns: { 200: webhooks_schema },
  handle: async ({ caller }, { sql }) =>
    reply(200, (await listWebhooks(sql, ownerOf(caller))).map(webhookView)),
});

const getEventTypes = route({
  id: 'listWebhookEvents',
  method: 'GET',
  path: '/api/webhooks/events',
  summary: 'The events that a webhook can ask for',
  tag,
  auth: 'public',
  returns: { 200: event_types_schema },
  cacheable: true,
  handle: () =>
    reply(200, {
      total: catalogue.length,
      events: event_names,
      details: catalogue.map((def) => ({
        event: def.name,
        about: def.about,
        audience: def.audience,
        fields: Object.keys(def.data.properties),
      })),
      next_cursor: null,
    }),
});

const getWebhook = route({
  id: 'getWebhook',
  method: 'GET',
  path: '/api/webhooks/{id}',
  summary: 'One webhook of the caller',
  tag,
  auth: 'either',
  params: id_params,
  returns: { 200: webhook_detail_schema },
  faults: [common_faults.NOT_FOUND],
  handle: async ({ caller, params }, { sql }) => {
    const row = await findWebhook(sql, ownerOf(caller), params.id);
    if (row === undefined) return webhookAbsent();
    const replay = await findReplay(sql, row.id);
    return reply(200, {
      ...webhookView(row),
      replay: replay === undefined ? null : replayView(replay),
    });
  },
});

const changeWebhook = route({
  id: 'updateWebhook',
  method: 'PATCH',
  path: '/api/webhooks/{id}',
  summary: 'Change url, events, filter or active; inactive stops delivery without deleting',
  tag,
  auth: 'member',
  limits: ['webhooks'],
  params: id_params,
  body: update_body,
  returns: { 200: webhook_schema },
  faults: [
    common_faults.NOT_FOUND,
    ...url_fault_list,
    webhook_faults.INVALID_EVENT,
    ws_faults.INVALID_FILTER,
  ],
  handle: async ({ body, caller, params }, { sql, webhooks, taxonomy }) => {
    const unknown = refuseNarrowing(body);
    if (unknown !== null) return unknown;
    const { url: new_url, events: new_events, active = null } = body;
    const filter = readNarrowing(body, await taxonomy.read());
    if (isFault(filter)) return filter;
    if ([new_url, new_events, filter].every((one) => one === undefined) && active === null) {
      const message = 'Send at least one of url, events, filter and active.';
      return refuse(common_faults.INVALID_REQUEST, { message });
    }
    const owner = ownerOf(caller);
    // First of all, so that the checks below tell nothing about webhooks of others.
    if ((await findWebhook(sql, owner, params.id)) === undefined) return webhookAbsent();
    const events = new_events === undefined ? null : checkEvents(new_events);
    if (isFault(events)) return events;
    const url = new_url === undefined ? null : await checkUrl(new_url, webhooks);
    if (isFault(url)) return url;
    const change = { url: url?.href ?? null, events, filter, active };
    const row = await updateWebhook(sql, owner, { id: params.id, change });
    if (row === undefined) return webhookAbsent();
    return reply(200, { ...webhookView(row), ...withWarning(url?.warning ?? null) });
  },
});

const removeWebhook = route({
  id: 'deleteWebhook',
  method: 'DELETE',
  path: '/api/webhooks/{id}',
  summary: 'Delete a webhook and what is kept about its deliveries',
  tag,
  auth: 'member',
  params: id_params,
  returns: { 200: deleted_schema },
  faults: [common_faults.NOT_FOUND],
  handle: async ({ caller, params }, { sql }) => {
    const { id } = params;
    const is_gone = await deleteWebhook(sql, ownerOf(caller), id);
    return is_gone
      ? reply(200, { message: 'Webhook deleted.', deleted: true, id })
      : webhookAbsent();
  },
});

const rotate = route({
  id: 'rotateWebhookSecret',
  method: 'POST',
  path: '/api/webhooks/{id}/rotate-secret',
  summary: 'A new secret, shown only in this answer; the old one signs too for some hours',
  tag,
  auth: 'member',
  limits: ['webhooks'],
  params: id_params,
  body: rotate_body,
  returns: { 200: rotated_schema },
  faults: [common_faults.NOT_FOUND],
  keeps: 'inside',
  handle: async (ctx, { sql, webhooks }) => {
    const { id } = ctx.params;
    const secret = makeSecret();
    const secret_sealed = webhooks.sealer.seal(id, secret);
    const { overlap_hours = usual_overlap_hours } = ctx.body;
    return sql.begin(async (tx) => {
      const change = { id, secret_sealed, overlap_hours };
      const row = await rotateSecret(tx, ownerOf(ctx.caller), change);
      if (row === undefined) return webhookAbsent();
      const signing_secret = standardSecret(secret);
      const answer = reply(200, { ...webhookView(row), secret, signing_secret });
      await ctx.keep(tx, answer);
      return answer;
    });
  },
});

/** Shorter than an attempt may take, so that the caller gets this answer and not a late one. */
const test_wall_ms = 8_000;

const sentenceOf = (error: LetterError): string =>
  error === 'secret_unreadable'
    ? 'The secret of this webhook cannot be read; delete it and create a new one.'
    : call_errors[error];

const testWebhook = route({
  id: 'testWebhook',
  method: 'POST',
  path: '/api/webhooks/{id}/test',
  summary: 'Send a signed `ping` now and tell what came back',
  tag,
  auth: 'member',
  limits: ['webhooks'],
  params: id_params,
  returns: { 200: tested_schema },
  faults: [common_faults.NOT_FOUND],
  handle: async ({ caller, params }, { sql, webhooks, clock }) => {
    const row = await findWebhook(sql, ownerOf(caller), params.id);
    if (row === undefined) return webhookAbsent();
    const now = clock();
    const ping = { event: 'ping', data: { webhook_id: row.id }, timestamp: now.toISOString() };
    const letter = {
      ...{ webhook_id: row.id, url: row.url, secret_sealed: row.secret_sealed },
      old_secret_sealed: row.old_secret_sealed,
      ...{ event: 'ping', event_id: makeId(), delivery_id: makeId(), attempt: 1, offset: null },
      body: Buffer.from(JSON.stringify(ping)),
      wall_ms: test_wall_ms,
    };
    const { status, error, latency_ms } = await webhooks.send(letter, now.getTime());
    const delivered = error === null && status !== null && status >= 200 && status < 300;
    const message = error === null ? `The receiver answered ${status}.` : sentenceOf(error);
    return reply(200, {
      delivered,
      status,
      latency_ms,
      ...(error === null ? {} : { error }),
      message,
    });
  },
});

export const routes = [
  createWebhook,
  getWebhooks,
  getEventTypes,
  getWebhook,
  changeWebhook,
  removeWebhook,
  rotate,
  testWebhook,
  ...delivery_routes,
  webhook_page,
];
