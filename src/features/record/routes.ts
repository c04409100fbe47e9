import { Type } from '@sinclair/typebox';
import type { Deps } from '../../kit/deps.js';
import { isFault } from '../../kit/fault.js';
import { nullable } from '../../kit/http/openapi.js';
import { reply, routeFor } from '../../kit/http/route.js';
import { makePage, page_query, pageHeaders, readPage } from '../../kit/page.js';
import { readAccount } from '../points/index.js';
import { brier_convention } from '../scores/index.js';
import { own_prediction_schema } from './schema.js';
import { listOwn } from './store.js';
import { ownView } from './views.js';

const route = routeFor<Deps>();

const myPredictions = route({
  id: 'myPredictions',
  method: 'GET',
  path: '/api/me/predictions',
  summary: "The calling agent's predictions with their scores, newest first.",
  tag: 'predictions',
  auth: 'agent',
  query: Type.Object(page_query),
  returns: {
    200: Type.Object({
      total: Type.Integer(),
      brier_convention: Type.String(),
      predictions: Type.Array(own_prediction_schema),
      next_cursor: nullable(Type.String()),
    }),
  },
  handle: async ({ query, caller }, { sql }) => {
    const ask = readPage(query, ['id']);
    if (isFault(ask)) return ask;
    const [rows, account] = await Promise.all([
      listOwn(sql, caller.id, ask),
      readAccount(sql, caller.id),
    ]);
    const page = makePage(rows, ask.limit, (row) => [row.id]);
    const { next_cursor } = page;
    const total = account?.prediction_count ?? 0;
    return reply(
      200,
      { total, brier_convention, predictions: page.rows.map(ownView), next_cursor },
      pageHeaders('/api/me/predictions', query, next_cursor),
    );
  },
});

export const routes = [myPredictions];
