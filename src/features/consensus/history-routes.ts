import { Type } from '@sinclair/typebox';
import type { Deps } from '../../http/deps.js';
import { makePage, pageHeaders, readPage } from '../../http/page.js';
import { reply, replyRaw, routeFor } from '../../http/route.js';
import { BusyError } from '../../kit/cache.js';
import { common_faults, isFault, refuse } from '../../kit/fault.js';
import { findVisible, question_faults, question_params } from '../questions/index.js';
import { drift } from './drift.js';
import type { History } from './history.js';
import {
  chart_answer,
  chart_query,
  drift_answer,
  picture_query,
  snapshots_answer,
  snapshots_query,
} from './history-schema.js';
import { drawPicture } from './picture.js';
import { countSnapshots, listSnapshots } from './snapshot-store.js';

export interface HistoryParts {
  readonly history: History;
}

const route = routeFor<Deps & HistoryParts>();
const about = {
  tag: 'history',
  method: 'GET',
  auth: 'public',
  params: question_params,
  absent: question_faults.QUESTION_NOT_FOUND,
  faults: [question_faults.QUESTION_NOT_FOUND],
  cacheable: true,
  cache: { tag: ({ id }: { readonly id: string }) => id.toLowerCase() },
} as const;

const listQuestionSnapshots = route({
  ...about,
  id: 'listSnapshots',
  path: '/api/questions/{id}/snapshots',
  summary: 'The consensus as it stood each hour in which it moved, at the close, and when resolved',
  query: snapshots_query,
  returns: { 200: snapshots_answer },
  handle: async ({ params, query, caller }, deps) => {
    const question = await findVisible(deps, params.id, caller);
    if (isFault(question)) return question;
    const page = readPage(query, ['time', 'text']);
    if (isFault(page)) return page;
    const [total, found] = await Promise.all([
      countSnapshots(deps.sql, question.id),
      listSnapshots(deps.sql, question.id, page),
    ]);
    const { rows, next_cursor } = makePage(found, page.limit, (row) => [
      row.taken_at.toISOString(),
      row.reason,
    ]);
    const snapshots = rows.map(({ consensus, reason, taken_at }) => ({
      ...consensus,
      reason,
      taken_at: taken_at.toISOString(),
    }));
    const path = `/api/questions/${question.id}/snapshots`;
    return reply(200, { total, snapshots, next_cursor }, pageHeaders(path, query, next_cursor));
  },
});

const getChart = route({
  ...about,
  id: 'getChart',
  path: '/api/questions/{id}/chart',
  summary: 'How the consensus came about, in at most so many points that show its shape',
  query: chart_query,
  returns: { 200: chart_answer },
  handle: async ({ params, query, caller }, deps) => {
    const question = await findVisible(deps, params.id, caller);
    if (isFault(question)) return question;
    const { total, moments, offset, points } = await deps.history.read(question, query.points);
    return reply(200, {
      question_id: question.id,
      question: question.question,
      question_type: question.question_type,
      status: question.status,
      options: [...question.options],
      total_predictions: total,
      moments,
      sampling: points.length < moments ? ('lttb' as const) : ('none' as const),
      offset,
      points: points.map(({ at, ...moment }) => ({ at: new Date(at).toISOString(), ...moment })),
    });
  },
});

/** A picture that is opened by itself can load and run nothing. */
const picture_headers = {
  'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
  'Cross-Origin-Resource-Policy': 'cross-origin',
};

const getChartSvg = route({
  ...about,
  id: 'getChartSvg',
  path: '/api/questions/{id}/chart.svg',
  summary: 'The chart as SVG, light, dark, or as the reader prefers',
  query: picture_query,
  returns: { 200: Type.String() },
  produces: 'image/svg+xml',
  handle: async ({ params, query, caller }, deps) => {
    const question = await findVisible(deps, params.id, caller);
    if (isFault(question)) return question;
    const { theme = 'auto', width, points } = query;
    const svg = drawPicture(question, await deps.history.read(question, points), { theme, width });
    return replyRaw('image/svg+xml; charset=utf-8', svg, picture_headers);
  },
});

const getChartPng = route({
  ...about,
  id: 'getChartPng',
  path: '/api/questions/{id}/chart.png',
  summary: 'The chart as PNG, light where no theme is named',
  limits: ['pictures'],
  query: picture_query,
  returns: { 200: Type.String() },
  produces: 'image/png',
  handle: async ({ params, query, caller }, deps) => {
    const question = await findVisible(deps, params.id, caller);
    if (isFault(question)) return question;
    const { theme = 'light', width, points } = query;
    try {
      const png = await deps.history.png(question, points, { theme, width });
      return replyRaw('image/png', png, picture_headers);
    } catch (error) {
      if (!(error instanceof BusyError)) throw error;
      return refuse(common_faults.UNAVAILABLE, { headers: { 'Retry-After': '1' } });
    }
  },
});

const getDrift = route({
  ...about,
  id: 'getDrift',
  path: '/api/questions/{id}/drift',
  summary: 'Where the consensus moved by ten points or more within a day, and who moved it',
  returns: { 200: drift_answer },
  handle: async ({ params, caller }, deps) => {
    const question = await findVisible(deps, params.id, caller);
    if (isFault(question)) return question;
    const { offset, drift_events } = await deps.history.read(question, 2);
    const { id: question_id, question_type } = question;
    const figure = question_type === 'binary' ? 'mean_probability' : 'option_probabilities';
    return reply(200, {
      ...{ question_id, question_type, figure, ...drift, offset },
      drift_events: [...drift_events],
    });
  },
});

export const routes = [listQuestionSnapshots, getChart, getChartSvg, getChartPng, getDrift];
