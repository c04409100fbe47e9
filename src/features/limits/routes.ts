import { reply, routeFor } from '../../kit/http/route.js';
import type { LimitParts } from './reader.js';
import { limits_answer } from './schema.js';

const route = routeFor<LimitParts>();

const getLimits = route({
  id: 'listLimits',
  method: 'GET',
  path: '/api/limits',
  summary: 'Every limit, what it counts, and what is left of it for the caller',
  tag: 'limits',
  auth: 'public',
  returns: { 200: limits_answer },
  handle: async ({ caller, ip }, { limits }) => {
    const read = await limits.read(caller, ip);
    const headers = { 'Cache-Control': 'no-store' };
    return reply(200, { total: read.length, limits: [...read], next_cursor: null }, headers);
  },
});

export const routes = [getLimits];
