import { type Static, Type } from '@sinclair/typebox';
import type { Caller } from '../../http/caller.js';
import type { Deps } from '../../http/deps.js';
import { reply, routeFor } from '../../http/route.js';
import { nullable, textEnum, textSchema, time_schema, uuid_schema } from '../../http/schemas.js';
import { type Fault, isFault, refuse } from '../../kit/fault.js';
import { isId } from '../../kit/ids.js';
import { toLine } from '../../kit/text.js';
import {
  type Distribution,
  netOverTime,
  type PointsRule,
  points_rule,
  type Stood,
  termsOf,
} from '../points/rules.js';
import { meanOverTime, spansOf } from '../points/time-weighting.js';
import { showCdf } from '../predictions/cdf-input.js';
import { prediction_schema } from '../predictions/columns.js';
import { distributionOf } from '../predictions/distribution.js';
import { hasFailures, prediction_faults, refuseFailures } from '../predictions/faults.js';
import { type ForecastQuestion, readForecastInput } from '../predictions/forecast-input.js';
import { stated_members } from '../predictions/schema.js';
import { findVisible, type QuestionParts } from '../questions/index.js';
import { rangeOf, showOutcome } from '../questions/range.js';
import { checkRange, refuseAlike } from '../questions/rules.js';
import {
  question_faults,
  question_types,
  range_schema,
  value_schema,
} from '../questions/schema.js';
import { number_formula, number_payout_schema, numberPayout } from './numbers.js';
import { correctIndices, countOptions, readOutcome } from './rules.js';
import { resolution_faults } from './schema.js';
import { netOfPrediction } from './settling.js';
import {
  type DecisionRow,
  type ReceiptRow,
  readDecisions,
  readEntries,
  readReceipt,
} from './store.js';
import { scoringTimeOf, toTimed } from './timed.js';

/** Receipts and simulations: the net of a forecast, and everything needed to recompute it. */

const route = routeFor<Deps & QuestionParts>();
const tag = 'points';

const formulas: Readonly<Record<PointsRule, string>> = {
  1: 'net = round(100 * weight * (1 - B / U))',
  2: 'net = round(100 * weight * (U - B) / (1 - 1/n))',
  3: 'net = round(100 * weight * (U - B) / (1 - 1/n)), B weighted by time over the intervals',
};

/** A forecast over the options, as shares of 1. */
const shares_schema = Type.Array(
  Type.Object({ option: Type.String(), p: Type.Number({ minimum: 0, maximum: 1 }) }),
);

const payout_schema = Type.Object({
  correct: Type.Array(Type.String()),
  outcome_vector: Type.Array(Type.Number()),
  /** Null if no forecast is scored. */
  b: nullable(Type.Number()),
  u: Type.Number(),
  net: Type.Integer(),
});

interface Forecasted {
  /** The question's options. Empty for a yes/no question, whose distribution has YES and NO. */
  readonly options: readonly string[];
  readonly weight: number;
  /** Empty if the prediction came too late. */
  readonly stood: readonly Stood[];
  readonly rule: PointsRule;
}

const namesOf = (options: readonly string[]): readonly string[] =>
  options.length === 0 ? ['YES', 'NO'] : options;

/** Rounds to twelve decimals: exact enough to check, and 0.64 instead of 0.6400000000000001. */
const roundShare = (value: number): number => Number(value.toFixed(12));

const payoutOf = ({ options, weight, stood, rule }: Forecasted, correct: readonly number[]) => {
  const names = namesOf(options);
  const even = { units: names.map(() => 1), whole: names.length };
  const { outcome, u } = termsOf(even, correct);
  const terms = stood.map(({ distribution }) => termsOf(distribution, correct).b);
  const b = meanOverTime(stood, terms);
  return {
    correct: correct.map((index) => names[index] ?? ''),
    outcome_vector: outcome.map(roundShare),
    b: b === null ? null : roundShare(b),
    u: roundShare(u),
    net: b === null ? 0 : netOverTime({ weight, stood, correct, rule }),
  };
};

const payoutsOf = (forecast: Forecasted) =>
  namesOf(forecast.options).map((_, index) => payoutOf(forecast, [index]));

const sharesOf = (options: readonly string[], { units, whole }: Distribution) =>
  namesOf(options).map((option, index) => ({ option, p: roundShare((units[index] ?? 0) / whole) }));

const { cdf: cdf_schema } = prediction_schema.properties;

const receipt_schema = Type.Object({
  prediction_id: uuid_schema,
  question_id: uuid_schema,
  user_id: uuid_schema,
  question_type: textEnum(question_types),
  weight: Type.Integer(),
  /** The latest forecast over all options. */
  distribution: shares_schema,
  /** The forecast of a number or a date, in place of the distribution. */
  cdf: cdf_schema,
  formula: Type.String(),
  /** `pending`: the question is decided, but the job has not settled this prediction yet. */
  state: textEnum(['open', 'pending', 'settled', 'voided'] as const),
  /** How many times the question has been decided. */
  revision: Type.Integer(),
  placed_at: time_schema,
  /** Scoring ends at the close, or when the outcome became public, if that was earlier. */
  ends_at: time_schema,
  known_at: nullable(time_schema),
  /** Each scored forecast and how long it was the latest while the question was open. */
  intervals: Type.Array(
    Type.Object({
      revision: Type.Integer(),
      distribution: shares_schema,
      from: time_schema,
      to: time_schema,
      open_ms: Type.Integer(),
      /** For the decided outcome. Null if there is no outcome yet. */
      b: nullable(Type.Number()),
      cdf: cdf_schema,
      crps: nullable(Type.Number()),
    }),
  ),
  /**
   * The net for the decided outcome, recomputed. Null if there is no outcome yet. A prediction that
   * was placed after scoring ended has no interval, no `b`, and a net of 0.
   */
  result: nullable(Type.Union([payout_schema, number_payout_schema])),
  /**
   * For an undecided question: the net for each option, if only that option is correct and the
   * latest forecast is not revised before the close.
   */
  outcomes: Type.Array(payout_schema),
  decisions: Type.Array(
    Type.Object({
      revision: Type.Integer(),
      kind: textEnum(['resolve', 'void'] as const),
      outcome: nullable(Type.Boolean()),
      correct_options: nullable(Type.Array(Type.String())),
      outcome_value: nullable(value_schema),
      known_at: nullable(time_schema),
      net: Type.Integer({ description: 'Paid by this decision, and reversed by the next one.' }),
      decided_at: time_schema,
    }),
    { description: 'All decisions on the question, oldest first.' },
  ),
  /** Ledger entries about this prediction, oldest first, and their sum. */
  entries: Type.Array(
    Type.Object({
      id: uuid_schema,
      reason: Type.String(),
      amount: Type.Integer(),
      created_at: time_schema,
    }),
  ),
  entries_total: Type.Integer(),
});

const getReceipt = route({
  id: 'getReceipt',
  method: 'GET',
  path: '/api/predictions/{pid}/receipt',
  summary: 'Outcome, net and ledger entries of a prediction, and how the net is computed',
  tag,
  auth: 'public',
  params: Type.Object({ pid: uuid_schema }),
  absent: prediction_faults.PREDICTION_NOT_FOUND,
  returns: { 200: Type.Object({ receipt: receipt_schema }) },
  faults: [prediction_faults.PREDICTION_NOT_FOUND],
  cacheable: true,
  handle: async ({ params }, { sql }) => {
    const row = await readReceipt(sql, params.pid);
    if (row === undefined) return refuse(prediction_faults.PREDICTION_NOT_FOUND);
    const [entries, decisions] = await Promise.all([
      readEntries(sql, row),
      readDecisions(sql, row.question_id),
    ]);
    return reply(200, { receipt: makeReceipt(row, entries, decisions) });
  },
});

const showDecision = (row: ReceiptRow, decision: DecisionRow) => {
  const { revision, kind, outcome, correct_options, outcome_value, known_at } = decision;
  const prediction = {
    id: row.id,
    agent_id: row.agent_id,
    paid_net: null,
    forecasts: row.forecasts,
  };
  return {
    revision,
    kind,
    outcome,
    correct_options: correct_options && [...correct_options],
    outcome_value: showOutcome({ ...row, outcome_value }),
    known_at: known_at?.toISOString() ?? null,
    net: kind === 'void' ? 0 : netOfPrediction({ ...row, ...decision }, prediction),
    decided_at: decision.created_at.toISOString(),
  };
};

const makeReceipt = (
  row: ReceiptRow,
  entries: Awaited<ReturnType<typeof readEntries>>,
  decisions: readonly DecisionRow[],
): Static<typeof receipt_schema> => {
  const { question_id, question_type, options, weight, state, revision, placed_at, known_at } = row;
  const rule = row.points_rule ?? points_rule;
  const n_options = countOptions(options);
  const timed = row.forecasts.map((one) => ({ ...toTimed(one, n_options), cdf: one.cdf }));
  const time = scoringTimeOf(row, timed);
  const spans = spansOf(timed, time);
  const range = rangeOf(row);
  const value = row.outcome_value;
  const number = range && value !== null ? { range, weight, outcome_value: value } : null;
  const correct = row.is_resolved && range === null ? correctIndices(row, options) : null;
  const shares = ({ distribution }: (typeof timed)[number]) =>
    range === null ? sharesOf(options, distribution) : [];
  const points = ({ cdf }: (typeof timed)[number]) => showCdf(cdf, row)?.cdf ?? null;
  const forecast = { options, weight, stood: spans, rule };
  const timeOf = (ms: number) => new Date(ms).toISOString();
  return {
    prediction_id: row.id,
    question_id,
    user_id: row.agent_id,
    question_type,
    weight,
    distribution: shares(timed.at(-1)!),
    cdf: points(timed.at(-1)!),
    formula: range === null ? formulas[rule] : number_formula,
    state,
    revision,
    placed_at: placed_at.toISOString(),
    ends_at: timeOf(time.ends_ms),
    known_at: known_at?.toISOString() ?? null,
    intervals: spans.map((one) => ({
      revision: one.revision,
      distribution: shares(one),
      cdf: points(one),
      from: timeOf(one.at_ms),
      to: timeOf(one.to_ms),
      open_ms: one.stood_ms,
      b: correct === null ? null : roundShare(termsOf(one.distribution, correct).b),
      crps: number && numberPayout([{ ...one, weight_ms: 1 }], number).crps,
    })),
    result: number ? numberPayout(spans, number) : correct && payoutOf(forecast, correct),
    outcomes: state === 'open' && spans.length > 0 && range === null ? payoutsOf(forecast) : [],
    decisions: decisions.map((one) => showDecision(row, one)),
    entries: entries.map((one) => ({ ...one, created_at: one.created_at.toISOString() })),
    entries_total: entries.reduce((sum, { amount }) => sum + amount, 0),
  };
};

const simulate_body = Type.Object({
  /** Question whose type, options and weight are used. Without it, the body states them. */
  question_id: Type.Optional(Type.String({ maxLength: 100 })),
  options: Type.Optional(
    Type.Array(textSchema({ minLength: 1, maxLength: 100 }), { minItems: 2, maxItems: 10 }),
  ),
  /** For a number or a date. Needs `outcome_value`, for which the net is computed. */
  range: Type.Optional(range_schema),
  outcome_value: Type.Optional(value_schema),
  weight: Type.Optional(Type.Integer({ minimum: 1, maximum: 5 })),
  prediction: Type.Optional(Type.Boolean()),
  ...stated_members,
});

const simulation_schema = Type.Object({
  question_id: nullable(uuid_schema),
  question_type: textEnum(question_types),
  weight: Type.Integer(),
  distribution: shares_schema,
  cdf: cdf_schema,
  formula: Type.String(),
  /** The net for each option if only that one is correct, or for the stated outcome of a number. */
  outcomes: Type.Union([Type.Array(payout_schema), Type.Array(number_payout_schema)]),
});

type Simulated = ForecastQuestion & { readonly id: string | null; readonly weight: number };

const findSimulated = async (
  deps: QuestionParts,
  body: Static<typeof simulate_body>,
  caller: Caller,
): Promise<Simulated | Fault> => {
  if (body.question_id !== undefined) {
    const id = body.question_id.toLowerCase();
    return isId(id) ? findVisible(deps, id, caller) : refuse(question_faults.QUESTION_NOT_FOUND);
  }
  const options = (body.options ?? []).map((option) => toLine(option));
  const alike = refuseAlike(options);
  if (alike !== null) return alike;
  const of_range = typeof body.range?.min === 'string' ? 'date' : 'numeric';
  const of_options = options.length === 0 ? 'binary' : 'multi';
  const question_type = body.range === undefined ? of_options : of_range;
  const range = checkRange({ question_type, range: body.range ?? null });
  if (isFault(range)) return range;
  return { id: null, question_type, options, ...range, weight: body.weight ?? 1 };
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
    question_faults.INVALID_RANGE,
    prediction_faults.INVALID_CONFIDENCE,
    prediction_faults.INVALID_OPTION,
    prediction_faults.INVALID_DISTRIBUTION,
    resolution_faults.INVALID_OUTCOME,
  ],
  handle: async ({ body, caller }, deps) => {
    const question = await findSimulated(deps, body, caller);
    if (isFault(question)) return question;
    const stated = readForecastInput(body, question);
    if ('failures' in stated) {
      return hasFailures(stated.failures)
        ? refuseFailures(stated.failures)
        : refuse(prediction_faults.INVALID_OPTION);
    }
    const { id: question_id, weight, options, question_type } = question;
    const range = rangeOf(question);
    if (range !== null) {
      const outcome_value = readOutcome(body.outcome_value, question);
      if (isFault(outcome_value)) return outcome_value;
      const decided = { range, weight, outcome_value: outcome_value! };
      const outcomes = [numberPayout([{ ...stated, weight_ms: 1 }], decided)];
      const cdf = showCdf(stated.cdf, question)?.cdf ?? null;
      const simulation = { question_id, question_type, weight, cdf, formula: number_formula };
      return reply(200, { simulation: { ...simulation, distribution: [], outcomes } });
    }
    const distribution = distributionOf(stated, countOptions(options));
    const stood = [{ distribution, weight_ms: 1 }];
    const forecast = { options, weight, stood, rule: points_rule };
    return reply(200, {
      simulation: {
        question_id,
        question_type,
        weight,
        distribution: sharesOf(options, distribution),
        cdf: null,
        formula: formulas[points_rule],
        outcomes: payoutsOf(forecast),
      },
    });
  },
});

export const receipt_routes = [getReceipt, simulate];
