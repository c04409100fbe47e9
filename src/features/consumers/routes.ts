import type { Deps } from '../../http/deps.js';
import { pageHeaders, refuseCursor } from '../../http/page.js';
import { type Context, reply, replyRaw, routeFor } from '../../http/route.js';
import { common_faults, type Fault, isFault, refuse } from '../../kit/fault.js';
import { makeId } from '../../kit/ids.js';
import { ws_faults } from '../../socket/frames.js';
import { countMatching, readEvents, readMatching } from '../events/index.js';
import { eventText, timeOf } from '../events/log-entry.js';
import type { LogParts } from '../log/index.js';
import { readLogQuery } from '../log/log-query.js';
import { wait_most_s } from '../log/schema.js';
import type { TaxonomyParts } from '../taxonomy/index.js';
import * as wire from './schema.js';
import * as store from './store.js';
import {
  absent,
  type ConsumerParts,
  deliveryText,
  logQueryOf,
  type Owning,
  refuseMembers,
  type Taken,
} from './taking.js';

/** Durable consumers over HTTP: managing them, and taking and acknowledging their events. */

type Parts = Deps & LogParts & TaxonomyParts & ConsumerParts;

const route = routeFor<Parts>();
const path = '/api/me/consumers/{name}';
const of_one = { tag: 'consumers', auth: 'member', params: wire.name_params } as const;
const faults = [common_faults.NOT_FOUND];

/** Limits for counting the lag: events counted, and offsets searched. */
const counted_most = 10_000;
const span_most = 100_000;

/** Returns a consumer as responses show it, with its lag. */
const describe = async (consumer: store.Consumer, owner: Owning, { sql, taxonomy }: Parts) => {
  const { id, cursor: after, gap, ...shown } = consumer;
  const { oldest, unacknowledged, parked, members, head } = await store.readState(sql, id);
  const wanted = logQueryOf(consumer, owner, taxonomy.latest());
  const refs = isFault(wanted) ? [] : wanted.refs;
  const span = { after, until: Math.min(head, after + span_most) };
  const [not_offered, [first]] = await Promise.all([
    countMatching(sql, refs, { ...span, limit: counted_most }),
    oldest === null
      ? readMatching(sql, refs, { ...span, limit: 1 })
      : readEvents(sql, oldest - 1, 1),
  ]);
  return {
    ...shown,
    cursor: oldest === null ? after : oldest - 1,
    head,
    lag: unacknowledged - parked + not_offered,
    parked,
    oldest_unacknowledged_at: first === undefined ? null : timeOf(first),
    members,
    gap: gap && { ...gap, at: new Date(gap.at).toISOString() },
  };
};

/** Refuses a start offset that the log has not reached; null if the start is valid. */
const checkStart = async (start: wire.Start, { log_watch }: Parts): Promise<Fault | null> =>
  typeof start === 'string' || (await log_watch.hasReached(start))
    ? null
    : refuse(wire.consumer_faults.OFFSET_AHEAD);

const isName = new RegExp(wire.name_pattern);

const put = route({
  ...of_one,
  id: 'putConsumer',
  params: wire.new_params,
  method: 'PUT',
  path,
  summary: 'Create a durable consumer, or change its topics, filter and delivery settings',
  body: wire.put_body,
  returns: { 200: wire.consumer_schema, 201: wire.consumer_schema },
  faults: [
    wire.consumer_faults.INVALID_CONSUMER_NAME,
    ws_faults.INVALID_TOPIC,
    ws_faults.INVALID_FILTER,
    common_faults.AGENTS_ONLY,
    wire.consumer_faults.OFFSET_AHEAD,
    wire.consumer_faults.CONSUMER_LIMIT_REACHED,
  ],
  handle: async ({ params: { name }, body, caller }, parts) => {
    if (!isName.test(name)) return refuse(wire.consumer_faults.INVALID_CONSUMER_NAME);
    const unknown = refuseMembers(body, wire.put_body, 'body');
    if (unknown !== null) return unknown;
    const { start, ...given } = { ...wire.usual, ...body };
    const context = { caller, pillars: await parts.taxonomy.read(), path: 'body.filter' } as const;
    const wanted = readLogQuery({ labels: given.topics, filter: body.filter ?? {} }, context);
    if (isFault(wanted)) return wanted;
    const is_ahead = await checkStart(start, parts);
    if (is_ahead !== null) return is_ahead;
    const key = { owner: caller, name };
    const filter = wanted.filter?.shown ?? null;
    const wish = { ...given, topics: [...new Set(given.topics)], filter, start };
    const row = await parts.sql.begin((tx) => store.putConsumer(tx, key, wish));
    if (row === null) return refuse(wire.consumer_faults.CONSUMER_LIMIT_REACHED);
    parts.consumers.wake(key);
    const { is_new, ...consumer } = row;
    return reply(is_new ? 201 : 200, await describe(consumer, caller, parts));
  },
});

const list = route({
  id: 'listConsumers',
  method: 'GET',
  path: '/api/me/consumers',
  summary: "The caller's durable consumers and their lag",
  tag: 'consumers',
  auth: 'member',
  returns: { 200: wire.list_schema },
  handle: async ({ caller }, parts) => {
    const rows = await store.listConsumers(parts.sql, caller);
    const consumers = await Promise.all(rows.map((row) => describe(row, caller, parts)));
    return reply(200, { total: consumers.length, consumers, next_cursor: null });
  },
});

const get = route({
  ...of_one,
  id: 'getConsumer',
  method: 'GET',
  path,
  summary: 'A durable consumer: its cursor, its lag and its members',
  returns: { 200: wire.consumer_schema },
  faults,
  handle: async ({ params: { name }, caller }, parts) => {
    const row = await store.findConsumer(parts.sql, { owner: caller, name });
    return row === undefined ? absent() : reply(200, await describe(row, caller, parts));
  },
});

const remove = route({
  ...of_one,
  id: 'deleteConsumer',
  method: 'DELETE',
  path,
  summary: 'Delete a durable consumer with its cursor',
  returns: { 204: null },
  faults,
  handle: async ({ params: { name }, caller: owner }, { sql, consumers }) => {
    if (!(await store.deleteConsumer(sql, { owner, name }))) return absent();
    consumers.wake({ owner, name });
    return reply(204, undefined);
  },
});

const seek = route({
  ...of_one,
  id: 'seekConsumer',
  method: 'POST',
  path: `${path}/seek`,
  summary: 'Move the cursor of a consumer, and forget its unacknowledged events',
  body: wire.seek_body,
  returns: { 200: wire.consumer_schema },
  faults: [...faults, wire.consumer_faults.OFFSET_AHEAD],
  handle: async ({ params: { name }, body: { start }, caller }, parts) => {
    const is_ahead = await checkStart(start, parts);
    if (is_ahead !== null) return is_ahead;
    const key = { owner: caller, name };
    const row = await parts.sql.begin((tx) => store.seekConsumer(tx, key, start));
    if (row === undefined) return absent();
    parts.consumers.wake(key);
    return reply(200, await describe(row, caller, parts));
  },
});

type TakeContext = Context<
  { readonly name: string },
  unknown,
  { readonly member: string; readonly limit?: number; readonly wait?: number },
  Owning
>;

const takeNext = async (ctx: TakeContext, parts: Parts): Promise<Taken | Fault> => {
  const { caller, params, body } = ctx;
  const { limit = wire.usual.limit, wait = 0 } = body;
  const connection = parts.log_watch.connections.open(ctx);
  if (isFault(connection)) return connection;
  let is_gone = false;
  ctx.onGone(() => {
    is_gone = true;
    connection.endWait();
  });
  try {
    const request = {
      owner: caller,
      name: params.name,
      member: body.member,
      connection: makeId(),
      limit,
      max_held: wire.max_unacknowledged,
    };
    const taken = await parts.consumers.take(request, {
      within_ms: wait * 1_000,
      goesOn: () => !is_gone && !connection.is_replaced && connection.revoked === null,
      onWait: (end) => {
        connection.endWait = end;
      },
    });
    // The client has disconnected, so its events become free again.
    if (is_gone) await parts.consumers.end(request, request.connection);
    return connection.revoked ?? taken;
  } finally {
    connection.close();
  }
};

const take = route({
  ...of_one,
  id: 'takeEvents',
  method: 'POST',
  path: `${path}/take`,
  summary: 'Take events as a member of a consumer, or wait for the next one',
  body: wire.take_body,
  returns: { 200: wire.take_answer },
  faults: [
    ...faults,
    ws_faults.TOO_MANY_CONNECTIONS,
    ws_faults.INVALID_FILTER,
    ws_faults.INVALID_TOPIC,
  ],
  waits: true,
  longest_ms: (wait_most_s + 15) * 1_000,
  handle: async (ctx, parts) => {
    const taken = refuseMembers(ctx.body, wire.take_body, 'body') ?? (await takeNext(ctx, parts));
    if (isFault(taken)) return taken;
    const { events, gap } = taken;
    const ack_by = events[0]?.leased_until ?? null;
    const rest = { ack_by, gap: gap && { reason: 'expired', ...gap } };
    // Sent as text, because an event keeps the exact bytes of the record.
    const texts = events.map(deliveryText).join(',');
    return replyRaw('application/json', `{"events":[${texts}],${JSON.stringify(rest).slice(1)}`);
  },
});

/** Reads an acknowledgement from a call, and drops duplicate offsets. */
const ackOf = ({
  caller,
  params,
  body,
}: Pick<TakeContext, 'caller' | 'params'> & { readonly body: store.Claimed }): store.Ack => ({
  owner: caller,
  name: params.name,
  member: body.member,
  offsets: [...new Set(body.offsets)],
});

const without = (offsets: readonly number[], found: readonly number[]): readonly number[] => {
  const known = new Set(found);
  return offsets.filter((offset) => !known.has(offset));
};

const inOrder = (offsets: readonly number[]): readonly number[] =>
  [...offsets].sort((a, b) => a - b);

const ack = route({
  ...of_one,
  id: 'acknowledgeEvents',
  method: 'POST',
  path: `${path}/ack`,
  summary: 'Acknowledge events, so that they are not delivered again',
  body: wire.ack_body,
  returns: { 200: wire.ack_answer },
  faults,
  handle: async (ctx, { consumers }) => {
    const given = ackOf(ctx);
    const done = await consumers.acknowledge(given);
    if (isFault(done)) return done;
    return reply(200, { acknowledged: inOrder(done), not_held: without(given.offsets, done) });
  },
});

const nack = route({
  ...of_one,
  id: 'releaseEvents',
  method: 'POST',
  path: `${path}/nack`,
  summary: 'Give events back, so that they are delivered again, at once or after a delay',
  body: wire.nack_body,
  returns: { 200: wire.nack_answer },
  faults,
  handle: async (ctx, { consumers }) => {
    const given = ackOf(ctx);
    const { delay_seconds = null, tried: is_tried = true } = ctx.body;
    const released = await consumers.release(given, { delay_seconds, is_tried });
    if (isFault(released)) return released;
    return reply(200, { released: inOrder(released), not_held: without(given.offsets, released) });
  },
});

const extend = route({
  ...of_one,
  id: 'extendEvents',
  method: 'POST',
  path: `${path}/extend`,
  summary: 'Extend the time within which events must be acknowledged',
  body: wire.extend_body,
  returns: { 200: wire.extend_answer },
  faults,
  handle: async (ctx, { consumers }) => {
    const given = ackOf(ctx);
    const extended = await consumers.extend(given, ctx.body.seconds ?? null);
    if (isFault(extended)) return extended;
    return reply(200, { extended: inOrder(extended), not_held: without(given.offsets, extended) });
  },
});

const parked_path = `${path}/parked`;

const listParked = route({
  ...of_one,
  id: 'listParkedEvents',
  method: 'GET',
  path: parked_path,
  summary: 'Parked events, which failed too often and are no longer delivered',
  query: wire.parked_query,
  returns: { 200: wire.parked_answer },
  faults,
  handle: async ({ params: { name }, query, caller }, { sql }) => {
    const after = query.cursor === undefined ? -1 : Number(query.cursor);
    if (!Number.isSafeInteger(after)) return refuseCursor();
    const consumer = await store.findConsumer(sql, { owner: caller, name });
    if (consumer === undefined) return absent();
    const { parked: total } = await store.readState(sql, consumer.id);
    const rows = await store.listParked(sql, consumer.id, { after, limit: query.limit + 1 });
    const shown = rows.slice(0, query.limit);
    const next_cursor = rows.length > query.limit ? String(shown.at(-1)?.offset) : null;
    const events = shown.map(({ offset, id, body, deliveries, parked_at }) => {
      const event = body === null ? null : JSON.parse(eventText({ offset, id: id ?? '', body }));
      return { offset, deliveries, parked_at, event };
    });
    const headers = pageHeaders(
      parked_path.replace('{name}', name),
      { limit: query.limit },
      next_cursor,
    );
    return reply(200, { total, events, next_cursor }, headers);
  },
});

const requeue = route({
  ...of_one,
  id: 'requeueParkedEvents',
  method: 'POST',
  path: `${parked_path}/requeue`,
  summary: 'Requeue parked events, so that they are delivered as if they were new',
  body: wire.parked_body,
  returns: { 200: wire.requeue_answer },
  faults,
  handle: async ({ params: { name }, body, caller }, { consumers }) => {
    const requeued = await consumers.requeue({ owner: caller, name }, body.offsets);
    if (isFault(requeued)) return requeued;
    return reply(200, { requeued: inOrder(requeued), not_parked: without(body.offsets, requeued) });
  },
});

const drop = route({
  ...of_one,
  id: 'dropParkedEvents',
  method: 'POST',
  path: `${parked_path}/drop`,
  summary: 'Drop parked events, so that they are never delivered again',
  body: wire.parked_body,
  returns: { 200: wire.drop_answer },
  faults,
  handle: async ({ params: { name }, body, caller }, { consumers }) => {
    const dropped = await consumers.drop({ owner: caller, name }, body.offsets);
    if (isFault(dropped)) return dropped;
    return reply(200, { dropped: inOrder(dropped), not_parked: without(body.offsets, dropped) });
  },
});

export const routes = [
  list,
  put,
  get,
  remove,
  take,
  ack,
  nack,
  extend,
  listParked,
  requeue,
  drop,
  seek,
];
