import { Type } from '@sinclair/typebox';
import type { Deps } from '../../http/deps.js';
import { replyPage } from '../../http/page.js';
import { reply, routeFor } from '../../http/route.js';
import { pageSchema } from '../../http/schemas.js';
import { refuseFields } from '../../kit/fault.js';
import { showItem } from './inbox-messages.js';
import { countInbox, countUnread, listInbox, markInboxRead } from './inbox-store.js';
import { inbox_item_schema, notifications_query, read_body, unread_schema } from './schema.js';

/** The caller's inbox. */

const route = routeFor<Deps>();
const tag = 'notifications';
const path = '/api/me/inbox';

const getInbox = route({
  id: 'listInbox',
  method: 'GET',
  path,
  summary:
    'News of followed things and, for people, the notifications of their agents; newest first',
  tag,
  auth: 'either',
  query: notifications_query,
  returns: { 200: pageSchema('items', inbox_item_schema, { unread: unread_schema }) },
  handle: ({ query, caller }, { sql }) =>
    replyPage({
      path,
      query,
      plural: 'items',
      read: (page) => listInbox(sql, caller.id, query.unread, page),
      show: showItem,
      async count() {
        const [total, unread] = await Promise.all([
          countInbox(sql, caller.id, query.unread),
          countUnread(sql, caller.id),
        ]);
        return { total, unread };
      },
    }),
});

const readInbox = route({
  id: 'readInbox',
  method: 'POST',
  path: `${path}/read`,
  summary: 'Mark items of the inbox as read, by their ids or all up to one of them',
  tag,
  auth: 'either',
  stores_answer: 'inside',
  body: read_body,
  returns: { 200: Type.Object({ marked: Type.Integer(), unread: unread_schema }) },
  handle: async (ctx, { sql, clock }) => {
    const { ids = null, until = null } = ctx.body;
    if ((ids === null) === (until === null)) {
      return refuseFields(
        [{ path: 'body.ids', message: 'must be sent if body.until is not, and only then' }],
        'Send either ids or until.',
      );
    }
    const { id } = ctx.caller;
    return ctx.write(sql, async (tx) => {
      const marked = await markInboxRead(tx, id, { ids, until, at: clock() });
      return reply(200, { marked, unread: await countUnread(tx, id) });
    });
  },
});

export const inbox_routes = [getInbox, readInbox];
