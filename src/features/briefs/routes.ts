import { preferredType } from '../../http/accept.js';
import type { Deps } from '../../http/deps.js';
import { reply, replyRaw, routeFor } from '../../http/route.js';
import { BusyError } from '../../kit/cache.js';
import { common_faults, isFault, refuse } from '../../kit/fault.js';
import { seesReasoning, visibilityHeaders } from '../predictions/index.js';
import { findVisible, type QuestionParts } from '../questions/index.js';
import { question_faults, question_params } from '../questions/schema.js';
import { readDay } from './daily-rules.js';
import type { Briefs, Days } from './live.js';
import { writeBrief } from './markdown.js';
import { brief_query, brief_schema, daily_faults, daily_query, daily_schema } from './schema.js';

export interface BriefParts {
  readonly briefs: Briefs;
  readonly days: Days;
}

const route = routeFor<Deps & QuestionParts & BriefParts>();

const markdown_type = 'text/markdown; charset=utf-8';

/** `?format=` has priority over `Accept`. The default is JSON. */
const wantsMarkdown = (format: string | undefined, accept: string): boolean =>
  format === undefined
    ? preferredType(accept, ['application/json', 'text/markdown']) === 'text/markdown'
    : format === 'markdown';

const getBrief = route({
  id: 'getIntelBrief',
  method: 'GET',
  path: '/api/questions/{id}/intel-brief',
  summary: 'A brief on a question, made from its data, as JSON or as Markdown to read',
  tag: 'briefs',
  auth: 'public',
  params: question_params,
  absent: question_faults.QUESTION_NOT_FOUND,
  query: brief_query,
  returns: { 200: brief_schema },
  also_produces: ['text/markdown'],
  faults: [question_faults.QUESTION_NOT_FOUND],
  cacheable: true,
  handle: async (ctx, deps) => {
    const { params, query, caller } = ctx;
    const question = await findVisible(deps, params.id, caller);
    if (isFault(question)) return question;
    const sees = await seesReasoning(deps, question, caller);
    const brief = await deps.briefs.read(question, sees);
    const vary = ['Accept', ...Object.values(visibilityHeaders(deps))].join(', ');
    return wantsMarkdown(query.format, ctx.header('accept'))
      ? replyRaw(markdown_type, writeBrief(brief), { Vary: vary })
      : reply(200, brief, { Vary: vary });
  },
});

const getDaily = route({
  id: 'getDailyInsights',
  method: 'GET',
  path: '/api/insights/daily',
  summary:
    'Summary of a day: moves, new and closing questions, resolutions and scores of the crowd',
  tag: 'insights',
  auth: 'public',
  query: daily_query,
  returns: { 200: daily_schema },
  faults: [daily_faults.INVALID_DATE],
  cacheable: true,
  handle: async ({ query }, deps) => {
    const day = readDay(query.date, deps.clock());
    if (day === null) {
      const fields = [{ path: 'query.date', message: daily_faults.INVALID_DATE.sentence }];
      return refuse(daily_faults.INVALID_DATE, { fields });
    }
    try {
      return reply(200, await deps.days.read(day));
    } catch (error) {
      if (!(error instanceof BusyError)) throw error;
      return refuse(common_faults.UNAVAILABLE, { headers: { 'Retry-After': '1' } });
    }
  },
});

export const routes = [getBrief, getDaily];
