import type { Deps } from '../../kit/deps.js';
import { type Fault, refuse } from '../../kit/fault.js';
import { equityOf, readAccount } from '../points/index.js';
import { question_faults, readQuestion, whyNotOpen } from '../questions/index.js';
import { allFailures } from './examine.js';
import { type Failure, hasFailures, prediction_faults, refuseFailures } from './faults.js';
import { readIdBySeq } from './gate-store.js';
import type { Needs, PlaceAsk, Placed } from './place-parts.js';
import type { Verdict } from './placing.js';
import type { PredictionDraft } from './placing-store.js';
import type { Finding } from './question-memory.js';
import { type PredictionRow, readOwnPrediction } from './store.js';
import { toWire } from './views.js';

/**
 * Why a prediction was not placed, as the answer says it. A repeat of what was placed before is
 * told so, or gets the first result, whatever else would refuse it.
 */

/** For how long an identical body is answered with the first result. */
const replay_ms = 10 * 60_000;

/** The first result of this very body, while a lost answer may be the reason for the repeat. */
const findFirstResult = async (
  deps: Deps,
  ask: PlaceAsk,
): Promise<Placed | PredictionRow | null> => {
  const row = await readOwnPrediction(deps.sql, ask.question_id, ask.agent.id);
  if (row === undefined) return null;
  const age_ms = deps.clock().getTime() - row.created_at.getTime();
  if (row.body_digest !== ask.body_digest || age_ms > replay_ms) return row;
  const account = await readAccount(deps.sql, ask.agent.id);
  return {
    prediction: toWire(row),
    points: account === undefined ? 0 : equityOf(account),
    event_id: row.event_id,
    replayed: true,
  };
};

/**
 * What was found may be the agent's own earlier prediction; then this is a repeat, and its first
 * result or its being one says more.
 */
export const refuseExamined = async (
  deps: Needs,
  ask: PlaceAsk,
  others: readonly Failure[],
  findings: readonly Finding[],
): Promise<Placed | Fault> => {
  if (findings.length > 0) {
    const first = await findFirstResult(deps, ask);
    if (first !== null) return 'replayed' in first ? first : refuseDuplicate(first);
  }
  const failures = allFailures(others, findings);
  if (!hasFailures(failures)) throw new Error('a refusal without a reason');
  return refuseFailures(failures, await similarExtra(deps, ask.question_id, findings));
};

/** What the most similar prediction is, for the members of the error. */
export const similarExtra = async (
  { sql }: Pick<Deps, 'sql'>,
  question_id: string,
  findings: readonly Finding[],
): Promise<{ readonly similarity: number; readonly prediction_id: string | null } | null> => {
  const similar = findings.find((finding) => finding.kind === 'similar');
  if (similar === undefined) return null;
  const { prediction_id, seq, similarity } = similar;
  return {
    similarity: Math.floor(similarity * 10_000) / 10_000,
    prediction_id: prediction_id ?? (await readIdBySeq(sql, question_id, seq)),
  };
};

const refuseDuplicate = (first: PredictionRow): Fault =>
  refuse(prediction_faults.DUPLICATE_PREDICTION, { extra: { prediction_id: first.id } });

/** Of a question that takes no predictions now. */
export const refuseClosed = async (
  deps: Deps,
  ask: PlaceAsk,
  message: string,
): Promise<Placed | Fault> => {
  const first = await findFirstResult(deps, ask);
  if (first !== null && 'replayed' in first) return first;
  return refuse(question_faults.QUESTION_NOT_OPEN, { message });
};

/** A draft that its batch did not store. */
interface Refused {
  readonly draft: PredictionDraft;
  readonly verdict: Exclude<Verdict, { kind: 'placed' }>;
}

/** What a verdict of the commit means to whoever asked. */
export const explain = async (
  deps: Needs,
  ask: PlaceAsk,
  { draft, verdict }: Refused,
): Promise<Placed | Fault> => {
  const first = await findFirstResult(deps, ask);
  // The batch was run again after an outage and had committed the first time: this is its result.
  if (first !== null && 'replayed' in first) {
    return first.prediction.id === draft.id ? { ...first, replayed: false } : first;
  }
  if (first !== null) return refuseDuplicate(first);
  if (verdict.kind === 'refused') return refuseExamined(deps, ask, [], verdict.findings);
  deps.questions.forget(ask.question_id);
  const question = await readQuestion(deps.sql, ask.question_id);
  if (question === undefined) return refuse(question_faults.QUESTION_NOT_FOUND);
  const message = whyNotOpen(question, deps.clock()) ?? 'The question was changing; try again.';
  return refuse(question_faults.QUESTION_NOT_OPEN, { message });
};
