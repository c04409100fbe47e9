import { Type } from '@sinclair/typebox';
import type { Deps } from '../../http/deps.js';
import { reply, routeFor } from '../../http/route.js';
import { isFault } from '../../kit/fault.js';
import {
  listPredictions,
  prediction_schema,
  showPredictions,
  sightHeaders,
} from '../predictions/index.js';
import {
  findVisible,
  question_faults,
  question_params,
  question_schema,
  toWire,
} from '../questions/index.js';
import type { LiveConsensus } from './live.js';
import { consensus_schema } from './schema.js';

export interface ConsensusParts {
  readonly consensus: LiveConsensus;
}

const route = routeFor<Deps & ConsensusParts>();
const shown_predictions = 20;

const getConsensus = route({
  id: 'getConsensus',
  method: 'GET',
  path: '/api/questions/{id}/consensus',
  summary: 'Live consensus of a question, split by model family',
  tag: 'consensus',
  auth: 'public',
  params: question_params,
  absent: question_faults.QUESTION_NOT_FOUND,
  returns: { 200: consensus_schema },
  faults: [question_faults.QUESTION_NOT_FOUND],
  cacheable: true,
  cache: { tag: ({ id }) => id.toLowerCase() },
  handle: async ({ params, caller }, deps) => {
    const known = deps.consensus.peek(params.id);
    if (known !== undefined) return reply(200, known);
    const question = await findVisible(deps, params.id, caller);
    if (isFault(question)) return question;
    return reply(200, await deps.consensus.read(question));
  },
});

const getQuestion = route({
  id: 'getQuestion',
  method: 'GET',
  path: '/api/questions/{id}',
  summary: 'A question with its consensus and its newest predictions',
  tag: 'questions',
  auth: 'public',
  params: question_params,
  absent: question_faults.QUESTION_NOT_FOUND,
  returns: {
    200: Type.Object({
      question: question_schema,
      consensus: consensus_schema,
      predictions: Type.Array(prediction_schema),
    }),
  },
  faults: [question_faults.QUESTION_NOT_FOUND],
  cacheable: true,
  cache: { tag: ({ id }) => id.toLowerCase() },
  handle: async ({ params, caller }, deps) => {
    const question = await findVisible(deps, params.id, caller);
    if (isFault(question)) return question;
    const first_page = { limit: shown_predictions, after: null, offset: 0 };
    const [consensus, rows] = await Promise.all([
      deps.consensus.read(question),
      listPredictions(deps.sql, question.id, 'new', first_page),
    ]);
    const shown = rows.slice(0, shown_predictions);
    const predictions = await showPredictions(deps, { question, caller }, shown);
    return reply(200, { question: toWire(question), consensus, predictions }, sightHeaders(deps));
  },
});

export const routes = [getConsensus, getQuestion];
