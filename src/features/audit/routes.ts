import type { Deps } from '../../http/deps.js';
import { replyPage } from '../../http/page.js';
import { routeFor } from '../../http/route.js';
import { pageSchema } from '../../http/schemas.js';
import { act_schema, audit_query } from './schema.js';
import { countActs, listActs } from './store.js';

const route = routeFor<Deps>();
const path = '/api/admin/audit';

const listAudit = route({
  id: 'listAudit',
  method: 'GET',
  path,
  summary: 'Admin actions, newest first',
  tag: 'moderation',
  auth: 'admin',
  query: audit_query,
  returns: { 200: pageSchema('acts', act_schema) },
  handle: ({ query }, { reads: sql }) =>
    replyPage({
      path,
      query,
      plural: 'acts',
      read: (page) => listActs(sql, query, page),
      count: async () => ({ total: await countActs(sql, query) }),
    }),
});

export const routes = [listAudit];
