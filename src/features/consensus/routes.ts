import { Type } from '@sinclair/typebox';
import type { Deps } from '../../http/deps.js';
import { makePage, pageHeaders, readPage, replyPage } from '../../http/page.js';
import { queryByPost } from '../../http/query-by-post.js';
import { replyPng } from '../../http/reply-png.js';
import { picture_headers, reply, replyRaw, routeFor } from '../../http/route.js';
import { nullable } from '../../http/schemas.js';
import { isFault } from '../../kit/fault.js';
import type { PngParts } from '../../kit/svg-png.js';
import { prediction_schema } from '../predictions/columns.js';
import {
  listPredictions,
  newest_kinds,
  seesReasoning,
  showPredictions,
  visibilityHeaders,
} from '../predictions/index.js';
import { readSections } from '../predictions/reasoning.js';
import { findVisible, type QuestionParts, toWire } from '../questions/index.js';
import {
  lists_tag,
  question_faults,
  question_params,
  question_schema,
} from '../questions/schema.js';
import { drift } from './drift.js';
import { countFits, listFits } from './fits-store.js';
import type { HistoryParts } from './history.js';
import type { ConsensusParts } from './live.js';
import type { Mixture } from './losses.js';
import { type CandidateKind, candidates } from './mixture.js';
import { showFan } from './numbers.js';
import { drawPicture } from './picture.js';
import * as wire from './schema.js';
import { countSnapshots, listSnapshots, readMovers } from './store.js';

const route = routeFor<Deps & QuestionParts & ConsensusParts & HistoryParts & PngParts>();

const about = {
  method: 'GET',
  auth: 'public',
  params: question_params,
  absent: question_faults.QUESTION_NOT_FOUND,
  faults: [question_faults.QUESTION_NOT_FOUND],
  cacheable: true,
  cache: { tag: ({ id }: { readonly id: string }) => id.toLowerCase() },
} as const;

const getConsensus = route({
  ...about,
  id: 'getConsensus',
  path: '/api/questions/{id}/consensus',
  summary: 'Live consensus of a question, split by model family',
  tag: 'consensus',
  returns: { 200: wire.consensus_schema },
  handle: async ({ params, caller }, deps) => {
    const known = deps.consensus.peek(params.id);
    if (known !== undefined) return reply(200, known);
    const question = await findVisible(deps, params.id, caller);
    if (isFault(question)) return question;
    return reply(200, await deps.consensus.read(question));
  },
});

const getMany = route({
  id: 'listConsensus',
  method: 'GET',
  path: '/api/consensus',
  summary: 'The consensus of up to 100 questions, now or at an earlier time',
  tag: 'consensus',
  auth: 'public',
  query: wire.many_query,
  returns: { 200: wire.many_answer },
  cacheable: true,
  cache: { tag: () => lists_tag },
  handle: async ({ query }, deps) => {
    const ids = [...new Set(query.ids.map((id) => id.toLowerCase()))];
    const moment = query.at === undefined ? null : new Date(query.at);
    const at = moment === null || moment >= deps.clock() ? null : moment;
    const found = new Map(
      (await deps.consensus.findAll(ids, at)).map((one) => [one.question_id, one]),
    );
    return reply(200, {
      consensus: ids.flatMap((id) => found.get(id) ?? []),
      missing: ids.filter((id) => !found.has(id)),
    });
  },
});

const showMixture = (kind: CandidateKind, { losses, weights, ...scores }: Mixture) => ({
  ...scores,
  candidates: weights.map((weight, n) => {
    return { name: candidates[kind][n], weight, loss: losses?.[n] ?? null };
  }),
});

const getFits = route({
  id: 'listFits',
  method: 'GET',
  path: '/api/consensus/fits',
  summary: 'The daily weights of the headline, and how it and its candidates score',
  tag: 'consensus',
  auth: 'public',
  query: wire.fits_query,
  returns: { 200: wire.fits_answer },
  cacheable: true,
  cache: { tag: () => lists_tag },
  handle: ({ query }, { reads }) =>
    replyPage({
      path: '/api/consensus/fits',
      query,
      plural: 'fits',
      read: (page) => listFits(reads, page),
      count: async () => ({ total: await countFits(reads) }),
      kinds: ['number'],
      keyOf: ({ number }) => [number],
      show: ({ id: _, mixture, ...fit }) => ({
        ...fit,
        mixture: mixture && {
          chance: showMixture('chance', mixture.chance),
          number: showMixture('number', mixture.number),
        },
      }),
    }),
});

const getQuestion = route({
  ...about,
  id: 'getQuestion',
  path: '/api/questions/{id}',
  summary: 'A question with its consensus and its newest predictions',
  tag: 'questions',
  query: wire.question_query,
  returns: {
    200: Type.Object({
      question: question_schema,
      consensus: wire.consensus_schema,
      predictions: Type.Array(prediction_schema),
      next_cursor: nullable(Type.String()),
    }),
  },
  handle: async ({ params, query, caller }, deps) => {
    const question = await findVisible(deps, params.id, caller);
    if (isFault(question)) return question;
    const path = `/api/questions/${question.id}`;
    const page = readPage(path, query, newest_kinds);
    if (isFault(page)) return page;
    const [consensus, fetched] = await Promise.all([
      deps.consensus.read(question),
      listPredictions(deps.sql, { question_id: question.id, sort: 'new' }, page),
    ]);
    const { rows, next_cursor } = makePage(fetched, page, (row) => row.cursor_key);
    const predictions = await showPredictions(deps, { question, caller }, rows);
    return reply(
      200,
      { question: toWire(question), consensus, predictions, next_cursor },
      { ...visibilityHeaders(deps), ...pageHeaders(path, query, next_cursor) },
    );
  },
});

const listQuestionSnapshots = route({
  ...about,
  tag: 'history',
  id: 'listSnapshots',
  path: '/api/questions/{id}/snapshots',
  summary: 'Snapshots of the consensus: each hour if it changed, at the close, and when resolved',
  query: wire.snapshots_query,
  returns: { 200: wire.snapshots_answer },
  handle: async ({ params, query, caller }, deps) => {
    const question = await findVisible(deps, params.id, caller);
    if (isFault(question)) return question;
    return replyPage({
      path: `/api/questions/${question.id}/snapshots`,
      query,
      plural: 'snapshots',
      read: (page) => listSnapshots(deps.reads, question.id, page),
      count: async () => ({ total: await countSnapshots(deps.reads, question.id) }),
      kinds: ['time', 'text'],
      keyOf: (row) => [row.taken_at.toISOString(), row.reason],
      show: ({ consensus, reason, taken_at }) => ({ ...consensus, reason, taken_at }),
    });
  },
});

const getChart = route({
  ...about,
  tag: 'history',
  id: 'getChart',
  path: '/api/questions/{id}/chart',
  summary: 'The history of the consensus, in at most `points` points that keep its shape',
  query: wire.history_query,
  returns: { 200: wire.chart_answer },
  handle: async ({ params, query, caller }, deps) => {
    const question = await findVisible(deps, params.id, caller);
    if (isFault(question)) return question;
    const { points: most, family } = query;
    const { total, moments, offset, points } = await deps.history.read(question, most, family);
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
      points: points.map(({ at, fan, ...moment }) => ({
        at: new Date(at).toISOString(),
        ...moment,
        ...(fan && { forecast: showFan(question, fan).p50, quantiles: showFan(question, fan) }),
      })),
    });
  },
});

const getChartSvg = route({
  ...about,
  tag: 'history',
  id: 'getChartSvg',
  path: '/api/questions/{id}/chart.svg',
  summary: 'The chart as SVG, light, dark, or as the reader prefers',
  query: wire.picture_query,
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

const pixels_of_a_unit = 2;

const getChartPng = route({
  ...about,
  tag: 'history',
  id: 'getChartPng',
  path: '/api/questions/{id}/chart.png',
  summary: 'The chart as PNG, light by default',
  limits: ['pictures'],
  query: wire.picture_query,
  returns: { 200: Type.String() },
  produces: 'image/png',
  handle: async ({ params, query, caller, request }, deps) => {
    const question = await findVisible(deps, params.id, caller);
    if (isFault(question)) return question;
    const { theme = 'light', width, points } = query;
    const svg = drawPicture(question, await deps.history.read(question, points), { theme, width });
    return replyPng(deps, request.address.limit_key, { svg, width: width * pixels_of_a_unit });
  },
});

const figures = {
  binary: 'forecast',
  multi: 'option_forecasts',
  numeric: 'forecast, in percent of the range',
  date: 'forecast, in percent of the range',
} as const;

const getDrift = route({
  ...about,
  tag: 'history',
  id: 'getDrift',
  path: '/api/questions/{id}/drift',
  summary: 'Moves of the consensus by ten points or more within a day, and who moved it',
  returns: { 200: wire.drift_answer },
  handle: async ({ params, caller }, deps) => {
    const question = await findVisible(deps, params.id, caller);
    if (isFault(question)) return question;
    const { offset, drift_events } = await deps.history.read(question, 2);
    const { id: question_id, question_type } = question;
    const figure = figures[question_type];
    return reply(200, {
      question_id,
      question_type,
      figure,
      ...drift,
      offset,
      drift_events: [...drift_events],
    });
  },
});

const getMovers = route({
  ...about,
  tag: 'history',
  id: 'listMovers',
  path: '/api/questions/{id}/movers',
  summary: 'The forecasts and revisions that moved the consensus most',
  query: wire.movers_query,
  returns: { 200: wire.movers_answer },
  handle: async ({ params, query, caller }, deps) => {
    const question = await findVisible(deps, params.id, caller);
    if (isFault(question)) return question;
    const { range = 'all', limit } = query;
    const { offset, movers, points } = await deps.history.read(question, 2);
    const largest = movers[range];
    const [rows, sees] = await Promise.all([
      readMovers(deps.reads, question.id, largest),
      seesReasoning(deps, question, caller),
    ]);
    const shown = largest.flatMap(({ at, agent, change }) => {
      const row = rows.find((one) => one.agent === agent && one.at === at);
      if (row === undefined) return [];
      const { prediction_id, user_name, model_family, revision, reason, reasoning } = row;
      const text = revision > 0 ? reason : readSections(reasoning).bottom_line;
      const who = { prediction_id, user_id: agent, user_name, model_family };
      const when = { at: new Date(at).toISOString(), is_revision: revision > 0 };
      return [{ ...who, ...when, change, reason: sees ? text : null }];
    });
    return reply(
      200,
      {
        question_id: question.id,
        option: points.at(-1)?.leading_option ?? null,
        figure: figures[question.question_type],
        range,
        offset,
        movers: shown.slice(0, limit),
      },
      visibilityHeaders(deps),
    );
  },
});

export const routes = [
  getConsensus,
  getMany,
  queryByPost(getMany, 'queryConsensus'),
  getFits,
  getQuestion,
  listQuestionSnapshots,
  getChart,
  getChartSvg,
  getChartPng,
  getDrift,
  getMovers,
];
