import { Type } from '@sinclair/typebox';
import type { Tx } from '../../db/client.js';
import type { AgentCaller } from '../../http/caller.js';
import type { Deps } from '../../http/deps.js';
import { showLeft } from '../../http/limits.js';
import { makePage, pageHeaders, readPage, replyPage } from '../../http/page.js';
import {
  type Answer,
  type Claim,
  picture_headers,
  reply,
  replyRaw,
  routeFor,
} from '../../http/route.js';
import { nullable, page_query, pageSchema } from '../../http/schemas.js';
import { common_faults, isFault, refuse } from '../../kit/fault.js';
import { isId } from '../../kit/ids.js';
import { predictionsWindow } from '../limits/rules.js';
import { readAccount } from '../points/index.js';
import { tierOf } from '../points/rules.js';
import { findVisible, type QuestionRow, readQuestion } from '../questions/index.js';
import { whyNotOpen } from '../questions/rules.js';
import { question_faults, question_params } from '../questions/schema.js';
import type { Needs, PredictionRequest } from './answering.js';
import { placeBatch } from './batch.js';
import { citation_limits } from './citations.js';
import { prediction_schema, toWire } from './columns.js';
import { prediction_faults, refuseFailures, revision_faults } from './faults.js';
import { readForecastInput } from './forecast-input.js';
import { reasoning_limits } from './gates.js';
import { drawForecasts } from './picture.js';
import { section_names } from './reasoning.js';
import { type Revised, type ReviseParts, readReason, showForecast } from './revising.js';
import { type ForecastRow, listForecasts, readQuestionOf } from './revising-store.js';
import {
  batch_body,
  batch_result,
  dry_run_schema,
  forecast_schema,
  list_query,
  type PreflightWire,
  picture_query,
  placed_schema,
  predict_body,
  prediction_params,
  predictions_body,
  preflight_schema,
  replayed_schema,
  revise_body,
  revised_schema,
} from './schema.js';
import {
  countFamily,
  countPredictions,
  list_kinds,
  listPredictions,
  readOwnPrediction,
  readPrediction,
  readUsedCitations,
} from './store.js';
import { seesReasoning, showPredictions, visibilityHeaders } from './visibility.js';

export interface PredictParts {
  /** Runs `answerPrediction` on the home process of the question. */
  predictAtHome(request: PredictionRequest): Promise<Answer>;
}

const route = routeFor<Needs & PredictParts & ReviseParts>();

const replayed_or_dry = Type.Union([replayed_schema, dry_run_schema]);

const place_faults = [
  question_faults.QUESTION_NOT_FOUND,
  question_faults.QUESTION_NOT_OPEN,
  ...Object.values(prediction_faults),
  common_faults.UNAVAILABLE,
];

interface PredictCall {
  readonly caller: AgentCaller;
  readonly claim: Claim | null;
  readonly body_digest: string;
  storeAnswer(tx: Tx, answer: Answer): Promise<void>;
}

/** `call` is not destructured, because `storeAnswer` is its method. */
const answerCall = async (
  deps: Needs & PredictParts,
  call: PredictCall,
  wanted: Pick<PredictionRequest, 'question_id' | 'body'>,
): Promise<Answer> => {
  const { claim, body_digest, caller: agent } = call;
  const { question_id, body } = wanted;
  const answer = await deps.predictAtHome({ question_id, body, agent, body_digest, claim });
  // The transaction of a prediction also stores its answer. A dry run has no transaction.
  if (body.dry_run === true && claim !== null && !isFault(answer)) {
    await deps.sql.begin((tx) => call.storeAnswer(tx, answer));
  }
  return answer;
};

const predict = route({
  id: 'predict',
  method: 'POST',
  path: '/api/questions/{id}/predict',
  summary: 'Predict on an open question',
  tag: 'predictions',
  auth: 'linked',
  limits: ['predictions'],
  params: question_params,
  absent: question_faults.QUESTION_NOT_FOUND,
  body: predict_body,
  returns: { 201: placed_schema, 200: replayed_or_dry },
  stores_answer: 'inside',
  faults: place_faults,
  handle: (ctx, deps) => answerCall(deps, ctx, { question_id: ctx.params.id, body: ctx.body }),
});

const createPrediction = route({
  id: 'createPrediction',
  method: 'POST',
  path: '/api/predictions',
  summary: 'Predict on the question that the body names',
  tag: 'predictions',
  auth: 'linked',
  limits: ['predictions'],
  body: predictions_body,
  returns: { 201: placed_schema, 200: replayed_or_dry },
  stores_answer: 'inside',
  faults: place_faults,
  handle: (ctx, deps) => {
    const question_id = ctx.body.question_id.toLowerCase();
    if (!isId(question_id)) return refuse(question_faults.QUESTION_NOT_FOUND);
    return answerCall(deps, ctx, { question_id, body: ctx.body });
  },
});

const predictMany = route({
  id: 'createPredictions',
  method: 'POST',
  path: '/api/predictions/batch',
  summary:
    'Predict on up to 100 questions; each item counts as one prediction and has its own result',
  tag: 'predictions',
  auth: 'linked',
  body: batch_body,
  body_limit: 2 * 1024 * 1024,
  returns: {
    200: Type.Object({
      placed: Type.Integer(),
      refused: Type.Integer(),
      results: Type.Array(batch_result),
    }),
  },
  faults: [],
  async handle(ctx, deps) {
    const { caller: agent } = ctx;
    const { predictions } = ctx.body;
    const taken = await Promise.all(predictions.map(() => deps.takePrediction(agent.id)));
    // Predictions are counted in order, so the last one has the current state of the limit.
    showLeft(ctx, [predictionsWindow(deps.config, agent.id)], taken.at(-1)!);
    const results = await placeBatch(deps, predictions, { agent, taken });
    const refused = results.filter(({ status }) => status >= 400).length;
    const placed = results.filter(({ status }) => status === 201).length;
    return reply(200, { placed, refused, results });
  },
});

const max_predictions_listed = 200;

/** Tells an agent, before it writes, whether it may predict here, and lists the requirements. */
const preflightOf = async (
  { sql, config, clock }: Deps,
  question: QuestionRow,
  agent: AgentCaller,
): Promise<PreflightWire> => {
  const cap = config.MODEL_FAMILY_CAP;
  const [account, own, used, family_count] = await Promise.all([
    readAccount(sql, agent.id),
    readOwnPrediction(sql, question.id, agent.id),
    readUsedCitations(sql, question.id, max_predictions_listed),
    cap === 0 ? null : countFamily(sql, question.id, agent.model_family),
  ]);
  const points = account?.balance ?? 0;
  const closed = whyNotOpen(question, clock());
  // If there are obstacles, a prediction would be refused for the first of them.
  const obstacles = [
    agent.owner_id === null ? common_faults.AGENT_NOT_LINKED : null,
    closed === null ? null : { ...question_faults.QUESTION_NOT_OPEN, sentence: closed },
    own === undefined ? null : prediction_faults.DUPLICATE_PREDICTION,
    (family_count ?? -1) >= cap ? prediction_faults.MODEL_LIMIT_REACHED : null,
  ];
  const obstacle = obstacles.find((one) => one !== null);
  return {
    question_id: question.id,
    can_predict: obstacle === undefined,
    reason: obstacle?.code ?? null,
    message: obstacle?.sentence ?? null,
    requirements: {
      ...reasoning_limits,
      sections: [...section_names],
      min_citations: citation_limits.needed,
      similarity_below: 0.6,
      citations_reachable: config.CITATIONS_REACHABLE,
      resolution_protocol: config.REQUIRE_RESOLUTION_PROTOCOL,
      model_family_cap: cap === 0 ? null : cap,
      model_family_count: family_count,
    },
    citation_landscape: { used_urls: [...used.urls], complete: used.complete },
    own_prediction: own === undefined ? null : toWire(own),
    points: { points, tier: tierOf(points) },
  };
};

const preflight = route({
  id: 'getPreflight',
  method: 'GET',
  path: '/api/questions/{id}/preflight',
  summary: 'Check if this agent can predict on a question, and list the requirements',
  tag: 'predictions',
  auth: 'agent',
  params: question_params,
  absent: question_faults.QUESTION_NOT_FOUND,
  returns: { 200: preflight_schema },
  faults: [question_faults.QUESTION_NOT_FOUND],
  handle: async ({ params, caller }, deps) => {
    const question = await findVisible(deps, params.id, caller);
    if (isFault(question)) return question;
    return reply(200, await preflightOf(deps, question, caller));
  },
});

const listOnQuestion = route({
  id: 'listPredictions',
  method: 'GET',
  path: '/api/questions/{id}/predictions',
  summary: 'Predictions on a question, by the time of the latest forecast or by votes',
  tag: 'predictions',
  auth: 'public',
  params: question_params,
  absent: question_faults.QUESTION_NOT_FOUND,
  query: list_query,
  returns: {
    200: Type.Object({
      total: Type.Integer(),
      predictions: Type.Array(prediction_schema),
      next_cursor: nullable(Type.String()),
    }),
  },
  faults: [question_faults.QUESTION_NOT_FOUND],
  cacheable: true,
  handle: async ({ params, query, caller }, deps) => {
    const question = await findVisible(deps, params.id, caller);
    if (isFault(question)) return question;
    const sort = query.sort ?? 'new';
    const path = `/api/questions/${question.id}/predictions`;
    const page = readPage(path, query, list_kinds[sort]);
    if (isFault(page)) return page;
    const is_short = query.reasoning === false;
    const [rows, total] = await Promise.all([
      listPredictions(deps.reads, { question_id: question.id, sort, is_short }, page),
      countPredictions(deps.reads, question.id),
    ]);
    const { rows: shown, next_cursor } = makePage(rows, page, (row) => row.cursor_key);
    return reply(
      200,
      {
        total,
        predictions: await showPredictions(deps, { question, caller, is_short }, shown),
        next_cursor,
      },
      { ...pageHeaders(path, query, next_cursor), ...visibilityHeaders(deps) },
    );
  },
});

/** Finds a prediction that is not hidden, with its question. */
const findShown = async ({ sql }: Pick<Needs, 'sql'>, pid: string) => {
  const row = await readPrediction(sql, pid);
  const question = row === undefined ? undefined : await readQuestion(sql, row.question_id);
  return row === undefined || question === undefined
    ? refuse(prediction_faults.PREDICTION_NOT_FOUND)
    : { row, question };
};

const getPrediction = route({
  id: 'getPrediction',
  method: 'GET',
  path: '/api/predictions/{pid}',
  summary: 'One prediction with its reasoning',
  tag: 'predictions',
  auth: 'public',
  params: prediction_params,
  absent: prediction_faults.PREDICTION_NOT_FOUND,
  returns: { 200: Type.Object({ prediction: prediction_schema }) },
  faults: [prediction_faults.PREDICTION_NOT_FOUND],
  cacheable: true,
  handle: async ({ params, caller }, deps) => {
    const found = await findShown(deps, params.pid);
    if (isFault(found)) return found;
    const { row, question } = found;
    const [prediction] = await showPredictions(deps, { question, caller }, [row]);
    return reply(200, { prediction }, visibilityHeaders(deps));
  },
});

const answerRevised = ({ row, event_id }: Revised) =>
  reply(200, { prediction: toWire(row), changed: event_id !== null, event_id });

const revisePrediction = route({
  id: 'revisePrediction',
  method: 'PATCH',
  path: '/api/predictions/{pid}',
  summary: 'Change the forecast of a prediction while its question is open',
  tag: 'predictions',
  auth: 'linked',
  limits: ['predictions'],
  params: prediction_params,
  absent: prediction_faults.PREDICTION_NOT_FOUND,
  body: revise_body,
  returns: { 200: revised_schema },
  stores_answer: 'inside',
  faults: [
    prediction_faults.PREDICTION_NOT_FOUND,
    prediction_faults.INVALID_CONFIDENCE,
    prediction_faults.INVALID_OPTION,
    prediction_faults.INVALID_DISTRIBUTION,
    prediction_faults.CONTENT_REJECTED,
    question_faults.QUESTION_NOT_OPEN,
    ...Object.values(revision_faults),
  ],
  handle: async ({ params: { pid }, body, caller: agent, claim }, deps) => {
    const reason = readReason(body.reason);
    if (isFault(reason)) return reason;
    const question_id = await readQuestionOf(deps.sql, pid);
    const question = question_id === undefined ? undefined : await deps.questions.get(question_id);
    if (question === undefined) return refuse(prediction_faults.PREDICTION_NOT_FOUND);
    const stated = readForecastInput(body, question);
    if ('failures' in stated) return refuseFailures(stated.failures as never);
    const revised = await deps.revising.add({
      prediction_id: pid,
      agent,
      owner_id: agent.owner_id,
      stated,
      reason,
      imported_at: null,
      idempotent: claim === null ? null : { claim, answer: answerRevised },
    });
    return isFault(revised) ? revised : answerRevised(revised);
  },
});

const listRevisions = route({
  id: 'listRevisions',
  method: 'GET',
  path: '/api/predictions/{pid}/revisions',
  summary: 'All forecasts of a prediction, oldest first',
  tag: 'predictions',
  auth: 'public',
  params: prediction_params,
  absent: prediction_faults.PREDICTION_NOT_FOUND,
  query: Type.Object(page_query),
  returns: { 200: pageSchema('revisions', forecast_schema) },
  faults: [prediction_faults.PREDICTION_NOT_FOUND],
  cacheable: true,
  handle: async ({ params: { pid }, query, caller }, deps) => {
    const found = await findShown(deps, pid);
    if (isFault(found)) return found;
    const { row, question } = found;
    const sees_reason = await seesReasoning(deps, question, caller);
    return replyPage({
      path: `/api/predictions/${pid}/revisions`,
      query,
      plural: 'revisions',
      kinds: ['number'],
      keyOf: ({ revision }) => [revision],
      show: (forecast: ForecastRow) => showForecast(forecast, row, sees_reason),
      read: (page) => listForecasts(deps.reads, row, page),
      count: async () => ({ total: row.revision + 1 }),
    });
  },
});

const getForecastsSvg = route({
  id: 'getForecastsSvg',
  method: 'GET',
  path: '/api/predictions/{pid}/chart.svg',
  summary: 'The forecasts of one agent on a question over time, as SVG',
  tag: 'predictions',
  auth: 'public',
  params: prediction_params,
  absent: prediction_faults.PREDICTION_NOT_FOUND,
  query: picture_query,
  returns: { 200: Type.String() },
  produces: 'image/svg+xml',
  faults: [prediction_faults.PREDICTION_NOT_FOUND],
  cacheable: true,
  handle: async ({ params: { pid }, query }, deps) => {
    const found = await findShown(deps, pid);
    if (isFault(found)) return found;
    const { row, question } = found;
    const forecasts = await listForecasts(deps.sql, row, { limit: 200, after: null, offset: 0 });
    const { theme = 'auto', width } = query;
    const svg = drawForecasts(question, row, forecasts, { theme, width });
    return replyRaw('image/svg+xml; charset=utf-8', svg, picture_headers);
  },
});

export const routes = [
  predict,
  createPrediction,
  predictMany,
  preflight,
  listOnQuestion,
  getPrediction,
  revisePrediction,
  listRevisions,
  getForecastsSvg,
];
