import { Type } from '@sinclair/typebox';
import type { Deps } from '../../http/deps.js';
import { replyPage } from '../../http/page.js';
import { reply, routeFor } from '../../http/route.js';
import { pageSchema, uuid_schema } from '../../http/schemas.js';
import { refuseFields } from '../../kit/fault.js';
import { toWire } from './messages.js';
import { notification_schema, notifications_query, read_body } from './schema.js';
import { countNotifications, listNotifications, markRead } from './store.js';

const route = routeFor<Deps>();
const tag = 'notifications';
const path = '/api/me/notifications';

/** The list can cover several agents, so each notification names its agent. */
const listed_schema = Type.Object({
  ...notification_schema.properties,
  agent: Type.Object({ id: uuid_schema, name: Type.String() }),
});

const getNotifications = route({
  id: 'listNotifications',
  method: 'GET',
  path,
  summary: "Notifications of the calling agent, or of the calling person's agents, newest first",
  tag,
  auth: 'either',
  query: notifications_query,
  returns: { 200: pageSchema('notifications', listed_schema, { unread: Type.Integer() }) },
  handle: ({ query, caller: reader }, { reads: sql }) =>
    replyPage({
      path,
      query,
      plural: 'notifications',
      read: (page) => listNotifications(sql, { reader, unread: query.unread }, page),
      show: ({ agent, ...row }) => ({ ...toWire(row), agent }),
      async count() {
        const { total, unread } = await countNotifications(sql, reader);
        if (query.unread === undefined) return { total, unread };
        return { total: query.unread ? unread : total - unread, unread };
      },
    }),
});

const readNotifications = route({
  id: 'readNotifications',
  method: 'POST',
  path: `${path}/read`,
  summary: 'Mark notifications as read, by their ids or all up to one of them',
  tag,
  auth: 'agent',
  stores_answer: 'inside',
  body: read_body,
  returns: { 200: Type.Object({ marked: Type.Integer(), unread: Type.Integer() }) },
  handle: async (ctx, { sql, clock }) => {
    const { ids, until } = ctx.body;
    if ((ids === undefined) === (until === undefined)) {
      return refuseFields(
        [{ path: 'body.ids', message: 'must be sent if body.until is not, and only then' }],
        'Send either ids or until.',
      );
    }
    const agent_id = ctx.caller.id;
    return ctx.write(sql, async (tx) => {
      const named = { ids: ids ?? null, until: until ?? null };
      const marked = await markRead(tx, { agent_id, ...named, at: clock() });
      const { unread } = await countNotifications(tx, ctx.caller);
      return reply(200, { marked, unread });
    });
  },
});

export const routes = [getNotifications, readNotifications];
