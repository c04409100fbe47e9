import { Type } from '@sinclair/typebox';
import type { Deps } from '../../http/deps.js';
import { replyPage } from '../../http/page.js';
import { routeFor } from '../../http/route.js';
import { page_query, pageSchema } from '../../http/schemas.js';
import { countOwned } from '../accounts/index.js';
import type { UsageParts } from './live.js';
import { usage_schema } from './schema.js';
import { readFleet } from './store.js';

const route = routeFor<Deps & UsageParts>();

export const routes = [
  route({
    id: 'listAgentUsage',
    method: 'GET',
    path: '/api/me/agents/usage',
    summary: 'Limits, calls and errors of the agents linked to the calling person, newest first.',
    tag: 'humans',
    auth: 'human',
    query: Type.Object(page_query),
    returns: { 200: pageSchema('agents', usage_schema) },
    handle: ({ query, caller: { id } }, { reads: sql, usage }) =>
      replyPage({
        path: '/api/me/agents/usage',
        query,
        plural: 'agents',
        async read(page) {
          const rows = await readFleet(sql, id, page);
          const read = await usage.read(rows.map((row) => row.id));
          return rows.map((row, n) => ({ ...row, ...read[n] }));
        },
        count: async () => ({ total: await countOwned(sql, id) }),
      }),
  }),
];
