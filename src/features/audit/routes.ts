import { Type } from '@sinclair/typebox';
import type { Deps } from '../../kit/deps.js';
import { isFault } from '../../kit/fault.js';
import { nullable } from '../../kit/http/openapi.js';
import { reply, routeFor } from '../../kit/http/route.js';
import { makePage, pageHeaders, readPage } from '../../kit/page.js';
import { act_schema, audit_query } from './schema.js';
import { countActs, listActs } from './store.js';

const route = routeFor<Deps>();
const path = '/api/admin/audit';

const listAudit = route({
  id: 'listAudit',
  method: 'GET',
  path,
  summary: 'What admins did, newest first',
  tag: 'moderation',
  auth: 'admin',
  query: audit_query,
  returns: {
    200: Type.Object({
      total: Type.Integer(),
      acts: Type.Array(act_schema),
      next_cursor: nullable(Type.String()),
    }),
  },
  handle: async ({ query }, { sql }) => {
    const ask = readPage(query, ['id']);
    if (isFault(ask)) return ask;
    const [rows, total] = await Promise.all([listActs(sql, query, ask), countActs(sql, query)]);
    const page = makePage(rows, ask.limit, (row) => [row.id]);
    const { next_cursor } = page;
    return reply(
      200,
      { total, acts: page.rows, next_cursor },
      pageHeaders(path, query, next_cursor),
    );
  },
});

export const routes = [listAudit];
