import { Type } from '@sinclair/typebox';
import type { Deps } from '../../kit/deps.js';
import { refuse } from '../../kit/fault.js';
import { nullable, textEnum, time_schema, uuid_schema } from '../../kit/http/openapi.js';
import { reply, routeFor } from '../../kit/http/route.js';
import { points_rule } from '../points/index.js';
import { distributionOf, prediction_faults } from '../predictions/index.js';
import { brier_convention } from '../scores/index.js';
import {
  type Forecasted,
  formulas,
  optionNames,
  payoutOf,
  payoutsOf,
  roundShare,
  sharesOf,
} from './payout.js';
import {
  type ReceiptRow,
  readEntries,
  readReceipt,
  readScore,
  type StoredScore,
} from './receipt-store.js';
import { correctIndices } from './rules.js';
import { payout_schema, shares_schema } from './schema.js';
import { countOptions } from './settle-rules.js';

/** What a prediction earned or would earn, with everything that is needed to check it. */

const route = routeFor<Deps>();
const tag = 'points';

const receipt_schema = Type.Object({
  prediction_id: uuid_schema,
  question_id: uuid_schema,
  user_id: uuid_schema,
  question_type: textEnum(['binary', 'multi'] as const),
  weight: Type.Integer(),
  /** What was stated, over all options. */
  distribution: shares_schema,
  formula: Type.String(),
  /** `pending`: decided, and the settling has not come to this prediction yet. */
  state: textEnum(['open', 'pending', 'settled', 'voided'] as const),
  /** Of the question: how often it was decided. */
  revision: Type.Integer(),
  placed_at: time_schema,
  /** What the decided outcome earns, worked out again; null while there is none. */
  result: nullable(payout_schema),
  score: nullable(
    Type.Object({
      forecast: Type.Number(),
      correct: Type.Boolean(),
      brier: Type.Number(),
      brier_convention: Type.String(),
      log_score: Type.Number(),
      baseline: Type.Number(),
      relative: nullable(Type.Number()),
    }),
  ),
  /** While the question is undecided: for each option, what is earned if it alone is right. */
  outcomes: Type.Array(payout_schema),
  /** Ledger entries about this prediction, oldest first, and what they come to. */
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

const stateOf = ({ status, is_settled }: ReceiptRow): 'open' | 'pending' | 'settled' | 'voided' => {
  if (status === 'open' || status === 'closed') return 'open';
  if (is_settled !== true) return 'pending';
  return status === 'voided' ? 'voided' : 'settled';
};

const forecastOf = (row: ReceiptRow): Forecasted => ({
  names: optionNames(row.options),
  weight: row.weight,
  distribution: distributionOf(row, countOptions(row.options)),
  rule: row.points_rule ?? points_rule,
});

/** Without the last bits, in which the machine's arithmetic shows. */
const shownScore = (score: StoredScore) => ({
  ...score,
  forecast: roundShare(score.forecast),
  brier: roundShare(score.brier),
  brier_convention,
});

const getReceipt = route({
  id: 'getReceipt',
  method: 'GET',
  path: '/api/predictions/{pid}/receipt',
  summary: 'Outcome, net and ledger entries of a prediction, and the sum done again',
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
    const state = stateOf(row);
    const [entries, score] = await Promise.all([
      readEntries(sql, row),
      state === 'settled' ? readScore(sql, row.question_id, row.agent_id) : undefined,
    ]);
    const forecast = forecastOf(row);
    const is_resolved = row.status === 'resolved';
    return reply(200, {
      receipt: {
        prediction_id: row.id,
        question_id: row.question_id,
        user_id: row.agent_id,
        question_type: row.question_type,
        weight: row.weight,
        distribution: sharesOf(forecast),
        formula: formulas[row.points_rule ?? points_rule],
        state,
        revision: row.revision,
        placed_at: row.created_at.toISOString(),
        result: is_resolved ? payoutOf(forecast, correctIndices(row, row.options)) : null,
        score: score === undefined ? null : shownScore(score),
        outcomes: state === 'open' ? payoutsOf(forecast) : [],
        entries: entries.map((entry) => ({
          ...entry,
          created_at: entry.created_at.toISOString(),
        })),
        entries_total: entries.reduce((sum, { amount }) => sum + amount, 0),
      },
    });
  },
});

export const receipt_routes = [getReceipt];
