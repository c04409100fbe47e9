import type { Deps } from '../../http/deps.js';
import { reply, routeFor } from '../../http/route.js';
import { BusyError } from '../../kit/cache.js';
import { common_faults, refuse } from '../../kit/fault.js';
import type { Days } from './days.js';
import { readDay } from './insight-rules.js';
import { daily_query, daily_schema, insight_faults } from './insight-schema.js';

export interface InsightParts {
  readonly days: Days;
}

const route = routeFor<Deps & InsightParts>();

const getDaily = route({
  id: 'getDailyInsights',
  method: 'GET',
  path: '/api/insights/daily',
  summary:
    'What a day brought: moves, new and closing questions, resolutions and how the crowd did',
  tag: 'insights',
  auth: 'public',
  query: daily_query,
  returns: { 200: daily_schema },
  faults: [insight_faults.INVALID_DATE],
  cacheable: true,
  handle: async ({ query }, deps) => {
    const day = readDay(query.date, deps.clock());
    if (day === null) {
      const fields = [{ path: 'query.date', message: insight_faults.INVALID_DATE.sentence }];
      return refuse(insight_faults.INVALID_DATE, { fields });
    }
    try {
      return reply(200, await deps.days.read(day));
    } catch (error) {
      if (!(error instanceof BusyError)) throw error;
      return refuse(common_faults.UNAVAILABLE, { headers: { 'Retry-After': '1' } });
    }
  },
});

export const routes = [getDaily];
