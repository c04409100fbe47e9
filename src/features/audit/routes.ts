import { Type } from '@sinclair/typebox';
import type { Deps } from '../../http/deps.js';
import { replyPage } from '../../http/page.js';
import { routeFor } from '../../http/route.js';
import { page_query, pageSchema } from '../../http/schemas.js';
import { act_schema, audit_query, moderation_schema } from './schema.js';
import { countActs, countModeration, listActs, listModeration } from './store.js';

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

const log_path = '/api/moderation-log';

const moderationLog = route({
  id: 'moderationLog',
  method: 'GET',
  path: log_path,
  summary: 'Actions of the moderators with their reasons, newest first; names nobody',
  tag: 'moderation',
  auth: 'public',
  cacheable: true,
  query: Type.Object(page_query),
  returns: { 200: pageSchema('acts', moderation_schema) },
  handle: ({ query }, { reads: sql }) =>
    replyPage({
      path: log_path,
      query,
      plural: 'acts',
      read: (page) => listModeration(sql, page),
      count: async () => ({ total: await countModeration(sql) }),
    }),
});

export const routes = [listAudit, moderationLog];
