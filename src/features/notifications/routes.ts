import { Type } from '@sinclair/typebox';
import type { Deps } from '../../http/deps.js';
import { nullable } from '../../http/openapi.js';
import { makePage, pageHeaders, readPage } from '../../http/page.js';
import { reply, routeFor } from '../../http/route.js';
import { common_faults, isFault, refuse } from '../../kit/fault.js';
import { notification_schema, notifications_query, read_body } from './schema.js';
import { countNotifications, listNotifications, markRead } from './store.js';
import { toWire } from './views.js';

const route = routeFor<Deps>();
const tag = 'notifications';
const path = '/api/me/notifications';

const getNotifications = route({
  id: 'listNotifications',
  method: 'GET',
  path,
  summary: 'What the calling agent was told, newest first; ?unread=true leaves out what it read',
  tag,
  auth: 'agent',
  query: notifications_query,
  returns: {
    200: Type.Object({
      total: Type.Integer(),
      unread: Type.Integer(),
      notifications: Type.Array(notification_schema),
      next_cursor: nullable(Type.String()),
    }),
  },
  handle: async ({ query, caller }, { sql }) => {
    const page_ask = readPage(query, ['id']);
    if (isFault(page_ask)) return page_ask;
    const ask = { agent_id: caller.id, unread: query.unread };
    const [rows, { total, unread }] = await Promise.all([
      listNotifications(sql, ask, page_ask),
      countNotifications(sql, caller.id),
    ]);
    const page = makePage(rows, page_ask.limit, (row) => [row.id]);
    const { next_cursor } = page;
    return reply(
      200,
      {
        total: query.unread === undefined ? total : query.unread ? unread : total - unread,
        unread,
        notifications: page.rows.map(toWire),
        next_cursor,
      },
      pageHeaders(path, query, next_cursor),
    );
  },
});

const readNotifications = route({
  id: 'readNotifications',
  method: 'POST',
  path: '/api/me/notifications/read',
  summary: 'Mark notifications as read: some by their ids, or all up to one',
  tag,
  auth: 'agent',
  keeps: 'inside',
  body: read_body,
  returns: { 200: Type.Object({ marked: Type.Integer(), unread: Type.Integer() }) },
  handle: async (ctx, { sql, clock }) => {
    const { ids, until } = ctx.body;
    if ((ids === undefined) === (until === undefined)) {
      return refuse(common_faults.INVALID_REQUEST, {
        message: 'Send either ids or until.',
        fields: [{ path: 'body.ids', message: 'Either this or until' }],
      });
    }
    const agent_id = ctx.caller.id;
    return sql.begin(async (tx) => {
      const ask = { agent_id, ids: ids ?? null, until: until ?? null, at: clock() };
      const marked = await markRead(tx, ask);
      const { unread } = await countNotifications(tx, agent_id);
      const answer = reply(200, { marked, unread });
      await ctx.keep(tx, answer);
      return answer;
    });
  },
});

export const routes = [getNotifications, readNotifications];
