import { Type } from '@sinclair/typebox';
import type { Tx } from '../../db/client.js';
import { nullable } from '../../http/openapi.js';
import { makePage, pageHeaders, readPage } from '../../http/page.js';
import { type AgentCaller, type Answer, type Claim, reply, routeFor } from '../../http/route.js';
import { common_faults, isFault, refuse } from '../../kit/fault.js';
import { isId } from '../../kit/ids.js';
import { findVisible, question_faults, question_params, readQuestion } from '../questions/index.js';
import { placeBatch } from './batch.js';
import { prediction_schema } from './columns.js';
import { answerRequest, type Needs, type PlaceRequest } from './placing.js';
import { preflightOf } from './preflight.js';
import {
  batch_body,
  batch_result,
  dry_run_schema,
  list_query,
  placed_schema,
  predict_body,
  prediction_faults,
  prediction_params,
  predictions_body,
  preflight_schema,
} from './schema.js';
import { showPredictions, sightHeaders } from './sight.js';
import { countPredictions, keyOf, list_kinds, listPredictions, readPrediction } from './store.js';

const route = routeFor<Needs>();

const placed_or_dry = Type.Union([placed_schema, dry_run_schema]);

const place_faults = [
  question_faults.QUESTION_NOT_FOUND,
  question_faults.QUESTION_NOT_OPEN,
  ...Object.values(prediction_faults),
  common_faults.UNAVAILABLE,
];

interface PlaceCall {
  readonly caller: AgentCaller;
  readonly claim: Claim | null;
  readonly body_digest: string;
  keep(tx: Tx, answer: Answer): Promise<void>;
}

/** Not destructured: `keep` belongs to the call. */
const place = async (
  deps: Needs,
  call: PlaceCall,
  wanted: Pick<PlaceRequest, 'question_id' | 'body'>,
): Promise<Answer> => {
  const { claim, body_digest, caller: agent } = call;
  const { question_id, body } = wanted;
  const answer = await answerRequest(deps, { question_id, body, agent, body_digest, claim });
  // What is placed keeps its answer in its own transaction.
  if (body.dry_run === true && claim !== null && !isFault(answer)) {
    await deps.sql.begin((tx) => call.keep(tx, answer));
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
  returns: { 201: placed_schema, 200: placed_or_dry },
  keeps: 'inside',
  faults: place_faults,
  handle: (ctx, deps) => place(deps, ctx, { question_id: ctx.params.id, body: ctx.body }),
});

const createPrediction = route({
  id: 'createPrediction',
  method: 'POST',
  path: '/api/predictions',
  summary: 'Predict; the question is named in the body',
  tag: 'predictions',
  auth: 'linked',
  limits: ['predictions'],
  body: predictions_body,
  returns: { 201: placed_schema, 200: placed_or_dry },
  keeps: 'inside',
  faults: place_faults,
  handle: (ctx, deps) => {
    const question_id = ctx.body.question_id.toLowerCase();
    if (!isId(question_id)) return refuse(question_faults.QUESTION_NOT_FOUND);
    return place(deps, ctx, { question_id, body: ctx.body });
  },
});

const predictMany = route({
  id: 'createPredictions',
  method: 'POST',
  path: '/api/predictions/batch',
  summary:
    'Predict on up to 100 questions; each item counts as one prediction, with its own result',
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
  handle: async ({ body, caller }, deps) => {
    const results = await placeBatch(deps, body.predictions, caller);
    const refused = results.filter(({ status }) => status >= 400).length;
    const placed = results.filter(({ status }) => status === 201).length;
    return reply(200, { placed, refused, results });
  },
});

const preflight = route({
  id: 'getPreflight',
  method: 'GET',
  path: '/api/questions/{id}/preflight',
  summary: 'Whether this agent can predict here, and what a prediction needs',
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
  summary: 'Predictions on a question, newest or best first',
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
    const page = readPage(query, list_kinds[sort]);
    if (isFault(page)) return page;
    const [rows, total] = await Promise.all([
      listPredictions(deps.sql, question.id, sort, page),
      countPredictions(deps.sql, question.id),
    ]);
    const { rows: shown, next_cursor } = makePage(rows, page.limit, (row) => keyOf(row, sort));
    return reply(
      200,
      { total, predictions: await showPredictions(deps, { question, caller }, shown), next_cursor },
      {
        ...pageHeaders(`/api/questions/${question.id}/predictions`, query, next_cursor),
        ...sightHeaders(deps),
      },
    );
  },
});

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
    const row = await readPrediction(deps.sql, params.pid);
    if (row === undefined) return refuse(prediction_faults.PREDICTION_NOT_FOUND);
    const question = await readQuestion(deps.sql, row.question_id);
    if (question === undefined) return refuse(prediction_faults.PREDICTION_NOT_FOUND);
    const [prediction] = await showPredictions(deps, { question, caller }, [row]);
    return reply(200, { prediction }, sightHeaders(deps));
  },
});

export const routes = [
  predict,
  createPrediction,
  predictMany,
  preflight,
  listOnQuestion,
  getPrediction,
];
