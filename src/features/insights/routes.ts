import { BusyError } from '../../kit/cache.js';
import type { Deps } from '../../kit/deps.js';
import { common_faults, refuse } from '../../kit/fault.js';
import { markdown_type, wantsMarkdown } from '../../kit/http/reply.js';
import { reply, replyRaw, routeFor } from '../../kit/http/route.js';
import type { Days } from './live.js';
import { readDay } from './rules.js';
import { daily_query, daily_schema, insight_faults } from './schema.js';
import { writeDay } from './writing.js';

export interface InsightParts {
  readonly days: Days;
}

const route = routeFor<Deps & InsightParts>();

const getDaily = route({
  id: 'getDailyInsights',
  method: 'GET',
  path: '/api/insights/daily',
  summary: 'What a day brought: moves, resolutions and how the crowd did, as JSON or Markdown',
  tag: 'insights',
  auth: 'public',
  query: daily_query,
  returns: { 200: daily_schema },
  also_produces: ['text/markdown'],
  faults: [insight_faults.INVALID_DATE],
  cacheable: true,
  handle: async (ctx, deps) => {
    const { date, format } = ctx.query;
    const ask = readDay(date, deps.clock());
    if (ask === null) {
      const fields = [{ path: 'query.date', message: insight_faults.INVALID_DATE.sentence }];
      return refuse(insight_faults.INVALID_DATE, { fields });
    }
    try {
      const daily = await deps.days.read(ask);
      return wantsMarkdown(format, ctx.header('accept'))
        ? replyRaw(markdown_type, writeDay(daily), { Vary: 'Accept' })
        : reply(200, daily, { Vary: 'Accept' });
    } catch (error) {
      if (!(error instanceof BusyError)) throw error;
      return refuse(common_faults.UNAVAILABLE, { headers: { 'Retry-After': '1' } });
    }
  },
});

export const routes = [getDaily];
