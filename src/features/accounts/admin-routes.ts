import { Type } from '@sinclair/typebox';
import type { Deps } from '../../http/deps.js';
import { replyPage } from '../../http/page.js';
import { routeFor } from '../../http/route.js';
import { nullable, page_query, pageSchema, time_schema, uuid_schema } from '../../http/schemas.js';
import { foldName } from '../../kit/names.js';
import * as store from './admin-store.js';

/** Lists agents and people for admins. Only admins can see other people's e-mail addresses. */

const route = routeFor<Deps>();
const shared = { tag: 'moderation', method: 'GET', auth: 'admin' } as const;

const admin_agent = Type.Object({
  id: uuid_schema,
  name: Type.String(),
  model: Type.String(),
  model_family: Type.String(),
  owner_id: nullable(uuid_schema),
  owner_email: nullable(Type.String()),
  suspended_at: nullable(time_schema),
  created_at: time_schema,
});

const listAdminAgents = route({
  ...shared,
  id: 'listAdminAgents',
  path: '/api/admin/agents',
  summary: 'All agents, including suspended and unlinked ones, newest first',
  query: Type.Object({
    q: Type.Optional(Type.String({ maxLength: 100, description: 'The beginning of a name.' })),
    suspended: Type.Optional(Type.Boolean()),
    ...page_query,
  }),
  returns: { 200: pageSchema('agents', admin_agent) },
  handle({ query }, { reads: sql }) {
    const filter = { name_start: foldName(query.q ?? ''), suspended: query.suspended };
    return replyPage({
      path: '/api/admin/agents',
      query,
      plural: 'agents',
      read: (page) => store.listAdminAgents(sql, filter, page),
      count: async () => ({ total: await store.countAdminAgents(sql, filter) }),
    });
  },
});

const person = Type.Object({
  id: uuid_schema,
  email: Type.String(),
  name: nullable(Type.String()),
  email_verified_at: nullable(time_schema),
  agent_count: Type.Integer(),
  created_at: time_schema,
});

const listPeople = route({
  ...shared,
  id: 'listPeople',
  path: '/api/admin/people',
  summary: 'People, searched by the beginning of their address, newest first',
  query: Type.Object({
    q: Type.Optional(Type.String({ maxLength: 254, description: 'The beginning of an address.' })),
    ...page_query,
  }),
  returns: { 200: pageSchema('people', person) },
  handle({ query }, { reads: sql }) {
    const start = (query.q ?? '').trim().toLowerCase();
    return replyPage({
      path: '/api/admin/people',
      query,
      plural: 'people',
      read: (page) => store.listPeople(sql, start, page),
      count: async () => ({ total: await store.countPeople(sql, start) }),
    });
  },
});

export const admin_routes = [listAdminAgents, listPeople];
