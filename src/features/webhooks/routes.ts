import { Type } from '@sinclair/typebox';
import type { Deps } from '../../http/deps.js';
import { reply, replyRaw, routeFor } from '../../http/route.js';
import {
  common_faults,
  type Fault,
  type FaultDef,
  isFault,
  refuse,
  refuseFields,
} from '../../kit/fault.js';
import { makeId } from '../../kit/ids.js';
import { call_errors } from '../../kit/outbound/connection.js';
import { ws_faults } from '../../socket/frames.js';
import { event_names } from '../events/catalogue.js';
import { type FilterMembers, readFilter } from '../events/filter.js';
import { directory_path, directory_type } from '../operators/rules.js';
import type { TaxonomyParts } from '../taxonomy/index.js';
import type { Pillar } from '../taxonomy/rules.js';
import { delivery_routes, webhookAbsent } from './delivery-routes.js';
import { findReplay } from './delivery-store.js';
import { sendPing } from './pinging.js';
import { findUnknown } from './rules.js';
import * as wire from './schema.js';
import { makeSecret, standardSecret, type WebhookParts, type Webhooks } from './signing.js';
import * as store from './store.js';

/** Routes of webhooks, with the checks that run before a webhook is stored or changed. */

const route = routeFor<Deps & WebhookParts & TaxonomyParts>();
const tag = 'webhooks';
/** Shared by routes that change one webhook of the caller. */
const of_one = {
  tag,
  auth: 'member',
  params: wire.id_params,
  faults: [common_faults.NOT_FOUND],
} as const;
const limits = ['webhooks'] as const;

/** Returns the names without duplicates, or a fault that lists the invalid and the valid ones. */
const checkEvents = (names: readonly string[]): string[] | Fault => {
  const unique = [...new Set(names)];
  const unknown = unique.filter((name) => !event_names.includes(name));
  if (unknown.length === 0) return unique;
  const named = unknown.slice(0, 5).map((name) => `"${name.slice(0, 60)}"`);
  return refuse(wire.webhook_faults.INVALID_EVENT, {
    message: `There is no event ${named.join(', ')}. Use one of ${event_names.join(', ')}.`,
    fields: [{ path: 'body.events', message: `must each be one of ${event_names.join(', ')}` }],
    extra: { valid_events: event_names },
  });
};

const url_faults = {
  invalid_url: wire.webhook_faults.INVALID_URL,
  https_required: wire.webhook_faults.HTTPS_REQUIRED,
  target_refused: wire.webhook_faults.SSRF_BLOCKED,
} as const;

const refuseUrl = (def: FaultDef, message: string): Fault =>
  refuse(def, { message, fields: [{ path: 'body.url', message }] });

interface CheckedUrl {
  readonly href: string;
  readonly warning?: string;
}

/** Parses the address and resolves its name. A name that does not resolve only causes a warning. */
const checkUrl = async (url: string, { client }: Webhooks): Promise<CheckedUrl | Fault> => {
  const target = client.parse(url);
  if (target.kind === 'problem') return refuseUrl(url_faults[target.code], target.sentence);
  const vetted = await client.vet(target);
  if (vetted.kind === 'vetted') return { href: target.href };
  const sentence = call_errors[vetted.code];
  if (vetted.code === 'address_refused')
    return refuseUrl(wire.webhook_faults.SSRF_BLOCKED, sentence);
  return {
    href: target.href,
    warning: `${sentence} The webhook is stored. The name is looked up before every attempt.`,
  };
};

/**
 * Returns null if all events pass, and undefined if the body sets no filter. Refuses unknown
 * members that look like a filter.
 */
const readNarrowing = (
  body: wire.NarrowingBody,
  pillars: readonly Pillar[],
): FilterMembers | null | undefined | Fault => {
  const { filter, scope_question_id } = body;
  const is_twice = scope_question_id != null && filter?.question_ids !== undefined;
  const path = 'body.scope_question_id';
  const message = 'must be left out if filter.question_ids is sent, which means the same';
  const fields = [...findUnknown(body), ...(is_twice ? [{ path, message }] : [])];
  if (fields.length > 0) return refuseFields(fields);
  const scope = scope_question_id == null ? {} : { question_ids: [scope_question_id] };
  if (scope_question_id == null && filter == null) return filter;
  const read = readFilter({ ...filter, ...scope }, { pillars, path: 'body.filter' });
  return read === null || isFault(read) ? read : read.shown;
};

const url_fault_list = Object.values(url_faults);

/** Makes a new secret: sealed for storage, and in the form that its owner sees once. */
const newSecret = ({ sealer }: Webhooks, id: string) => {
  const secret = makeSecret();
  const shown = { secret, signing_secret: standardSecret(secret) };
  return { secret_sealed: sealer.seal(id, secret), shown };
};

const createWebhook = route({
  id: 'createWebhook',
  method: 'POST',
  path: '/api/webhooks',
  summary: 'Create a webhook. Its secret is shown only in this answer',
  tag,
  auth: 'member',
  limits: ['webhooks'],
  body: wire.create_body,
  returns: { 201: wire.created_schema },
  faults: [
    ...url_fault_list,
    wire.webhook_faults.INVALID_EVENT,
    ws_faults.INVALID_FILTER,
    wire.webhook_faults.WEBHOOK_LIMIT_REACHED,
  ],
  stores_answer: 'inside',
  handle: async (ctx, { sql, webhooks, taxonomy }) => {
    const { body, caller } = ctx;
    const filter = readNarrowing(body, await taxonomy.read());
    if (isFault(filter)) return filter;
    const events = checkEvents(body.events);
    if (isFault(events)) return events;
    const url = await checkUrl(body.url, webhooks);
    if (isFault(url)) return url;
    const { href, ...warning } = url;
    const id = makeId();
    const { secret_sealed, shown } = newSecret(webhooks, id);
    return ctx.write(sql, async (tx) => {
      const { signature, order } = body;
      const hook = {
        id,
        owner: caller,
        url: href,
        events,
        secret_sealed,
        filter,
        signature,
        order,
      };
      const row = await store.insertWebhook(tx, hook);
      if (row === null) return refuse(wire.webhook_faults.WEBHOOK_LIMIT_REACHED);
      return reply(201, { ...row, ...shown, ...warning });
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
  // A bare array, because existing clients expect one.
  returns: { 200: Type.Array(wire.webhook_schema) },
  handle: async ({ caller }, { sql }) => reply(200, await store.listWebhooks(sql, caller)),
});

const getEventTypes = route({
  id: 'listWebhookEvents',
  method: 'GET',
  path: '/api/webhooks/events',
  summary: 'The events that a webhook can receive',
  tag,
  auth: 'public',
  returns: { 200: wire.event_types_schema },
  cacheable: true,
  handle: () => reply(200, { total: event_names.length, events: event_names, next_cursor: null }),
});

const getWebhook = route({
  id: 'getWebhook',
  method: 'GET',
  path: '/api/webhooks/{id}',
  summary: 'One webhook of the caller',
  tag,
  auth: 'either',
  params: wire.id_params,
  returns: { 200: wire.webhook_detail_schema },
  faults: [common_faults.NOT_FOUND],
  handle: async ({ caller, params }, { sql }) => {
    const row = await store.findWebhook(sql, caller, params.id);
    if (row === undefined) return webhookAbsent();
    return reply(200, { ...row, replay: (await findReplay(sql, row.id)) ?? null });
  },
});

const changeWebhook = route({
  id: 'updateWebhook',
  method: 'PATCH',
  path: '/api/webhooks/{id}',
  summary:
    'Change url, events, filter, signature, order or active. Inactive webhooks get no deliveries',
  tag,
  auth: 'member',
  limits: ['webhooks'],
  params: wire.id_params,
  body: wire.update_body,
  returns: { 200: wire.webhook_schema },
  faults: [
    common_faults.NOT_FOUND,
    ...url_fault_list,
    wire.webhook_faults.INVALID_EVENT,
    ws_faults.INVALID_FILTER,
  ],
  handle: async ({ body, caller, params: { id } }, { sql, webhooks, taxonomy }) => {
    const { url: new_url, events: new_events, active, signature, order } = body;
    const filter = readNarrowing(body, await taxonomy.read());
    if (isFault(filter)) return filter;
    const asked = [new_url, new_events, filter, active, signature, order];
    if (asked.every((one) => one === undefined)) {
      const message = 'Send at least one of url, events, filter, signature, order and active.';
      return refuse(common_faults.INVALID_REQUEST, { message });
    }
    // This check comes first, so that the later checks reveal nothing about the webhooks of others.
    if ((await store.findWebhook(sql, caller, id)) === undefined) return webhookAbsent();
    const events = new_events === undefined ? undefined : checkEvents(new_events);
    if (isFault(events)) return events;
    const url = new_url === undefined ? undefined : await checkUrl(new_url, webhooks);
    if (isFault(url)) return url;
    const { href, ...warning } = url ?? { href: undefined };
    const change = { url: href, events, filter, active, signature, order };
    const row = await sql.begin((tx) => store.updateWebhook(tx, caller, { id, change }));
    return row === undefined ? webhookAbsent() : reply(200, { ...row, ...warning });
  },
});

const getDirectory = route({
  id: 'keyDirectory',
  method: 'GET',
  path: directory_path,
  summary: 'The key that signs deliveries of webhooks with `signature` `rfc9421`, as a JWKS',
  tag,
  auth: 'public',
  produces: directory_type,
  returns: { 200: Type.Object({ keys: Type.Array(Type.Object({})) }) },
  handle: (_ctx, { webhooks }) =>
    replyRaw(directory_type, JSON.stringify(webhooks.directory), {
      'Cache-Control': 'public, max-age=3600',
    }),
});

const removeWebhook = route({
  ...of_one,
  id: 'deleteWebhook',
  method: 'DELETE',
  path: '/api/webhooks/{id}',
  summary: 'Delete a webhook and its stored deliveries',
  returns: {
    200: Type.Object({
      message: Type.String(),
      deleted: Type.Literal(true),
      ...wire.id_params.properties,
    }),
  },
  handle: async ({ caller, params: { id } }, { sql }) =>
    (await sql.begin((tx) => store.deleteWebhooks(tx, caller, id))) > 0
      ? reply(200, { message: 'Webhook deleted.', deleted: true, id })
      : webhookAbsent(),
});

const rotate = route({
  ...of_one,
  limits,
  id: 'rotateWebhookSecret',
  method: 'POST',
  path: '/api/webhooks/{id}/rotate-secret',
  summary: 'Create a new secret, shown only in this answer. Older ones still sign for some hours',
  faults: [common_faults.NOT_FOUND, wire.webhook_faults.TOO_MANY_SECRETS],
  body: wire.rotate_body,
  returns: { 200: wire.rotated_schema },
  stores_answer: 'inside',
  handle: async (ctx, { sql, webhooks }) => {
    const { id } = ctx.params;
    const { secret_sealed, shown } = newSecret(webhooks, id);
    const { overlap_hours = wire.usual_overlap_hours } = ctx.body;
    return ctx.write(sql, async (tx) => {
      const row = await store.rotateSecret(tx, ctx.caller, { id, secret_sealed, overlap_hours });
      if (row === 'full') return refuse(wire.webhook_faults.TOO_MANY_SECRETS);
      return row === undefined ? webhookAbsent() : reply(200, { ...row, ...shown });
    });
  },
});

const testWebhook = route({
  ...of_one,
  limits,
  id: 'testWebhook',
  method: 'POST',
  path: '/api/webhooks/{id}/test',
  summary: 'Send a signed `ping` now and return the result',
  returns: { 200: wire.tested_schema },
  handle: async ({ caller, params }, { sql, webhooks, clock }) => {
    const target = await store.findTarget(sql, caller, params.id);
    if (target === undefined) return webhookAbsent();
    return reply(200, await sendPing(webhooks, target, clock()));
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
  getDirectory,
  ...delivery_routes,
];
