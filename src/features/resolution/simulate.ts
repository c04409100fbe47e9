import { type Static, Type } from '@sinclair/typebox';
import type { Deps } from '../../kit/deps.js';
import { type Fault, isFault, refuse } from '../../kit/fault.js';
import { nullable, textEnum, uuid_schema } from '../../kit/http/openapi.js';
import type { Caller } from '../../kit/http/route.js';
import { reply, routeFor } from '../../kit/http/route.js';
import { isId } from '../../kit/ids.js';
import { normaliseText } from '../../kit/text.js';
import { points_rule } from '../points/index.js';
import {
  hasFailures,
  prediction_faults,
  readStated,
  refuseFailures,
  type StatedQuestion,
} from '../predictions/index.js';
import { findVisible, question_faults } from '../questions/index.js';
import {
  expectedNet,
  type Forecasted,
  formulas,
  optionNames,
  payoutsOf,
  sharesOf,
} from './payout.js';
import { payout_schema, shares_schema } from './schema.js';

/** What a forecast would earn, before anybody makes it. */

const route = routeFor<Deps>();
const tag = 'points';

const simulate_body = Type.Object({
  /** Takes type, options and weight from a question; without it they are stated here. */
  question_id: Type.Optional(Type.String({ maxLength: 100 })),
  options: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 100 }), { minItems: 2, maxItems: 10 }),
  ),
  weight: Type.Optional(Type.Integer({ minimum: 1, maximum: 5 })),
  prediction: Type.Optional(Type.Boolean()),
  confidence: Type.Optional(Type.Number()),
  probability: Type.Optional(Type.Number()),
  selected_option: Type.Optional(Type.String({ maxLength: 200 })),
  probabilities: Type.Optional(Type.Record(Type.String({ maxLength: 200 }), Type.Number())),
});

const simulation_schema = Type.Object({
  question_id: nullable(uuid_schema),
  question_type: textEnum(['binary', 'multi'] as const),
  weight: Type.Integer(),
  distribution: shares_schema,
  formula: Type.String(),
  /** For each option, what is earned if it alone is right. */
  outcomes: Type.Array(payout_schema),
  /** The mean over the outcomes if the stated chances are the true ones. */
  expected_net: Type.Number(),
});

type SimulateBody = Static<typeof simulate_body>;

interface Simulated extends StatedQuestion {
  readonly id: string | null;
  readonly weight: number;
}

const plain = (text: string): string => normaliseText(text).trim();

const makeQuestion = (body: SimulateBody): Simulated | Fault => {
  const { weight = 1 } = body;
  const options = (body.options ?? []).map(plain);
  if (new Set(options.map((option) => option.toLowerCase())).size < options.length) {
    return refuse(question_faults.INVALID_OPTIONS, {
      fields: [{ path: 'body.options', message: '2 to 10 different, non-empty texts' }],
    });
  }
  const question_type = options.length === 0 ? 'binary' : 'multi';
  return { id: null, question_type, options, weight };
};

const findSimulated = async (
  deps: Deps,
  body: SimulateBody,
  caller: Caller,
): Promise<Simulated | Fault> => {
  if (body.question_id === undefined) return makeQuestion(body);
  const id = body.question_id.toLowerCase();
  if (!isId(id)) return refuse(question_faults.QUESTION_NOT_FOUND);
  return findVisible(deps, id, caller);
};

const simulate = route({
  id: 'simulatePoints',
  method: 'POST',
  path: '/api/points/simulate',
  summary: 'Net points of a forecast for each outcome; nothing is stored',
  tag,
  auth: 'public',
  body: simulate_body,
  returns: { 200: Type.Object({ simulation: simulation_schema }) },
  faults: [
    question_faults.QUESTION_NOT_FOUND,
    question_faults.INVALID_OPTIONS,
    prediction_faults.INVALID_CONFIDENCE,
    prediction_faults.INVALID_OPTION,
  ],
  handle: async ({ body, caller }, deps) => {
    const question = await findSimulated(deps, body, caller);
    if (isFault(question)) return question;
    const stated = readStated(body, question);
    if ('failures' in stated) {
      return hasFailures(stated.failures)
        ? refuseFailures(stated.failures)
        : refuse(prediction_faults.INVALID_OPTION);
    }
    const { weight, options, question_type } = question;
    const { distribution } = stated;
    const forecast: Forecasted = { names: optionNames(options), weight, distribution };
    return reply(200, {
      simulation: {
        question_id: question.id,
        question_type,
        weight,
        distribution: sharesOf(forecast),
        formula: formulas[points_rule],
        outcomes: payoutsOf(forecast),
        expected_net: expectedNet(forecast),
      },
    });
  },
});

export const simulate_routes = [simulate];
