import type { Static } from '@sinclair/typebox';
import { Type } from '@sinclair/typebox';
import type { Deps } from '../../kit/deps.js';
import { common_faults, type Fault, isFault, refuse } from '../../kit/fault.js';
import { matchesEtag } from '../../kit/http/body.js';
import type { Caller } from '../../kit/http/route.js';
import { type Context, type Reply, reply, replyRaw, routeFor } from '../../kit/http/route.js';
import { parseTime } from '../../kit/http/validation.js';
import { makePage, pageHeaders, readPage } from '../../kit/page.js';
import { PngBusyError } from '../../kit/svg-png.js';
import type { ConsensusParts } from '../consensus/index.js';
import {
  findVisible,
  type QuestionParts,
  type QuestionRow,
  question_faults,
  question_params,
} from '../questions/index.js';
import type { Chart, ChartAsk } from './chart.js';
import type { DriftAsk } from './drift.js';
import type { History } from './history.js';
import { heightOf } from './picture.js';
import {
  chart_answer,
  chart_query,
  drift_answer,
  drift_query,
  most_pixels,
  picture_query,
  png_query,
  snapshots_answer,
  snapshots_query,
} from './schema.js';
import { countSnapshots, listSnapshots, type SnapshotAsk } from './snapshot-store.js';
import { readOffset } from './store.js';

export interface HistoryParts {
  readonly history: History;
}

type Needs = Deps & ConsensusParts & QuestionParts & HistoryParts;

const route = routeFor<Needs>();
const tag = 'history';
const about = {
  tag,
  method: 'GET',
  auth: 'public',
  params: question_params,
  absent: question_faults.QUESTION_NOT_FOUND,
  faults: [question_faults.QUESTION_NOT_FOUND],
  cacheable: true,
} as const;

/** A published question may be some moments old; whether a draft may be seen is asked anew. */
const seeQuestion = async (
  deps: Needs,
  id: string,
  caller: Caller,
): Promise<QuestionRow | Fault> => {
  const known = await deps.questions.get(id.toLowerCase());
  return known !== undefined && known.status !== 'draft' ? known : findVisible(deps, id, caller);
};

/** Made anew when what is drawn from the same state changes. */
const drawing = 2;

const etagOf = ({ updated_at }: QuestionRow, offset: number): string =>
  `W/"${drawing}-${offset.toString(36)}-${updated_at.getTime().toString(36)}"`;

/** Nothing of the answer has to be made for a client that has it: mount makes a 304 of this. */
const answerKnown = async (
  deps: Needs,
  question: QuestionRow,
  ctx: Pick<Context, 'caller' | 'header'>,
): Promise<Reply | null> => {
  const wanted = ctx.header('if-none-match');
  if (wanted === '' || ctx.caller.kind !== 'anonymous') return null;
  const { id } = question;
  const known = deps.consensus.peek(id)?.offset;
  const etag = etagOf(question, known ?? (await readOffset(deps.sql, id)));
  return matchesEtag(wanted, etag) ? { ...replyRaw('text/plain', ''), etag } : null;
};

const timeOr = (text: string | undefined, otherwise: number): number =>
  text === undefined ? otherwise : (parseTime(text)?.getTime() ?? otherwise);

/** The end of time as far as times can be written. */
const never = 253_402_300_799_999;

const askOf = (query: Static<typeof chart_query>): ChartAsk => ({
  points: query.points,
  family: query.family ?? null,
  since: timeOr(query.since, 0),
  until: timeOr(query.until, never),
});

const listQuestionSnapshots = route({
  ...about,
  id: 'listSnapshots',
  path: '/api/questions/{id}/snapshots',
  summary: 'The consensus as it stood each hour in which it moved, at the close, and when resolved',
  query: snapshots_query,
  returns: { 200: snapshots_answer },
  handle: async ({ params, query, caller }, deps) => {
    const question = await seeQuestion(deps, params.id, caller);
    if (isFault(question)) return question;
    const page = readPage(query, ['time', 'text']);
    if (isFault(page)) return page;
    const ask: SnapshotAsk = {
      question_id: question.id,
      since: query.since === undefined ? null : parseTime(query.since),
      until: query.until === undefined ? null : parseTime(query.until),
      oldest_first: query.order === 'oldest',
      page,
    };
    const [total, rows] = await Promise.all([
      countSnapshots(deps.sql, ask),
      listSnapshots(deps.sql, ask),
    ]);
    const cut = makePage(rows, page.limit, (row) => [row.taken_at.toISOString(), row.reason]);
    const snapshots = cut.rows.map(({ consensus, reason, taken_at }) => ({
      ...consensus,
      reason,
      taken_at: taken_at.toISOString(),
    }));
    const { next_cursor } = cut;
    const path = `/api/questions/${question.id}/snapshots`;
    return reply(200, { total, snapshots, next_cursor }, pageHeaders(path, query, next_cursor));
  },
});

const showChart = (
  question: QuestionRow,
  chart: Chart,
  family: string | null,
): Static<typeof chart_answer> => ({
  question_id: question.id,
  question: question.question,
  question_type: question.question_type,
  status: question.status,
  options: [...question.options],
  family,
  total_predictions: chart.total,
  moments: chart.moments,
  sampling: chart.points.length < chart.moments ? 'lttb' : 'none',
  offset: chart.offset,
  points: chart.points.map(({ at, option_probabilities, option_percents, ...point }) => ({
    at: new Date(at).toISOString(),
    ...point,
    option_probabilities: [...option_probabilities],
    option_percents: [...option_percents],
  })),
});

const getChart = route({
  ...about,
  id: 'getChart',
  path: '/api/questions/{id}/chart',
  summary: 'How the consensus came about, in at most so many points that show its shape',
  query: chart_query,
  returns: { 200: chart_answer },
  handle: async (ctx, deps) => {
    const question = await seeQuestion(deps, ctx.params.id, ctx.caller);
    if (isFault(question)) return question;
    const known = await answerKnown(deps, question, ctx);
    if (known !== null) return known;
    const ask = askOf(ctx.query);
    const chart = await deps.history.chart(question, ask);
    const etag = etagOf(question, chart.offset);
    return { ...reply(200, showChart(question, chart, ask.family)), etag };
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
  handle: async (ctx, deps) => {
    const question = await seeQuestion(deps, ctx.params.id, ctx.caller);
    if (isFault(question)) return question;
    const known = await answerKnown(deps, question, ctx);
    if (known !== null) return known;
    const { theme = 'auto', width } = ctx.query;
    const look = { theme, width };
    const { body, offset } = await deps.history.svg(question, askOf(ctx.query), look);
    const etag = etagOf(question, offset);
    return { ...replyRaw('image/svg+xml; charset=utf-8', body, picture_headers), etag };
  },
});

const checkSize = ({ width, scale }: Static<typeof png_query>): Fault | null => {
  const height = heightOf(width);
  const pixels = width * height * scale * scale;
  if (pixels <= most_pixels) return null;
  const message =
    `${width} × ${height} units at scale ${scale} are ${pixels.toLocaleString('en')} pixels; ` +
    `at most ${most_pixels.toLocaleString('en')} are drawn. Take a smaller width or scale.`;
  const fields = [{ path: 'query.scale', message }];
  return refuse(common_faults.INVALID_REQUEST, { message, fields });
};

const getChartPng = route({
  ...about,
  id: 'getChartPng',
  path: '/api/questions/{id}/chart.png',
  summary: 'The chart as PNG, light where no theme is named',
  limits: ['pictures'],
  query: png_query,
  returns: { 200: Type.String() },
  produces: 'image/png',
  handle: async (ctx, deps) => {
    const too_large = checkSize(ctx.query);
    if (too_large !== null) return too_large;
    const question = await seeQuestion(deps, ctx.params.id, ctx.caller);
    if (isFault(question)) return question;
    const known = await answerKnown(deps, question, ctx);
    if (known !== null) return known;
    const { theme = 'light', width, scale } = ctx.query;
    const look = { theme, width, scale };
    try {
      const drawn = await deps.history.png(question, askOf(ctx.query), look);
      const etag = etagOf(question, drawn.offset);
      return { ...replyRaw('image/png', drawn.body, picture_headers), etag };
    } catch (error) {
      if (!(error instanceof PngBusyError)) throw error;
      return refuse(common_faults.UNAVAILABLE, { headers: { 'Retry-After': '1' } });
    }
  },
});

const getDrift = route({
  ...about,
  id: 'getDrift',
  path: '/api/questions/{id}/drift',
  summary: 'Where the consensus moved by ten points or more within a day, and who moved it',
  query: drift_query,
  returns: { 200: drift_answer },
  handle: async (ctx, deps) => {
    const question = await seeQuestion(deps, ctx.params.id, ctx.caller);
    if (isFault(question)) return question;
    const known = await answerKnown(deps, question, ctx);
    if (known !== null) return known;
    const { window = '24h', points, least_count, figure } = ctx.query;
    const ask: DriftAsk = { window, points, least_count, figure };
    const answer = await deps.history.drift(question, ask);
    return { ...reply(200, answer), etag: etagOf(question, answer.offset) };
  },
});

export const chart_routes = [listQuestionSnapshots, getChart, getChartSvg, getChartPng, getDrift];
