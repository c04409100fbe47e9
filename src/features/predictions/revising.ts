import type { Tx } from '../../db/client.js';
import { emitAll } from '../../db/event.js';
import { createGroupCommit, type GroupCommit } from '../../db/group-commit.js';
import type { Deps } from '../../http/deps.js';
import { storeInTransaction } from '../../http/idempotency.js';
import type { Answer, Claim } from '../../http/route.js';
import { type Fault, isFault, refuse, refuseFields } from '../../kit/fault.js';
import { makeId } from '../../kit/ids.js';
import { findLinks, readProse, readText } from '../../kit/text.js';
import { prediction_revised } from '../events/catalogue.js';
import { question_faults } from '../questions/schema.js';
import type { PredictionRow } from './columns.js';
import type { ForecastColumns } from './distribution.js';
import { prediction_faults, revision_faults } from './faults.js';
import { dataOf, type ForecastQuestion, optionIn, showForecastInput } from './forecast-input.js';
import {
  type ForecastRow,
  type LockedPrediction,
  lockPredictions,
  type Revision,
  revise,
} from './revising-store.js';
import { reason_limits } from './schema.js';

/**
 * Replaces an agent's forecast with a new one. The group commit works as in `placing.ts`, with at
 * most one revision of a prediction per batch. The reasoning and the earlier forecast are kept.
 */

interface ReviseDraft {
  readonly prediction_id: string;
  readonly agent: { readonly id: string; readonly name: string };
  readonly owner_id: string | null;
  readonly stated: ForecastColumns;
  /** Null for an imported forecast. */
  readonly reason: string | null;
  /** Time at which it was made elsewhere. Null if it is made here and now. */
  readonly imported_at: Date | null;
  readonly idempotent: { readonly claim: Claim; answer(revised: Revised): Answer } | null;
}

export interface Revised {
  readonly row: PredictionRow;
  /** Null if the prediction had this forecast already. Then nothing was stored. */
  readonly event_id: string | null;
}

export interface ReviseParts {
  readonly revising: GroupCommit<ReviseDraft, Revised | Fault>;
}

/** Minimum time between two forecasts of an agent on a question. Imports are exempt. */
export const min_rest_ms = 60_000;
const max_revisions = 200;

const standsSince = ({ created_at, revised_at }: PredictionRow): Date => revised_at ?? created_at;

export const statedIn = (row: PredictionRow): ForecastColumns => {
  const { prediction, probability, confidence, probabilities, cdf, options, selected_option } = row;
  const option = selected_option === null ? null : options.indexOf(selected_option);
  return { prediction, probability, confidence, probabilities, cdf, selected_option: option };
};

export const isSameForecast = (a: ForecastColumns, b: ForecastColumns): boolean =>
  a.prediction === b.prediction &&
  a.confidence === b.confidence &&
  a.selected_option === b.selected_option &&
  String(a.probabilities) === String(b.probabilities) &&
  String(a.cdf) === String(b.cdf);

const refuseSoon = (rest_ms: number): Fault => {
  const retry_after = Math.ceil(rest_ms / 1_000);
  return refuse(revision_faults.REVISION_TOO_SOON, {
    message: `A forecast can be revised once a minute. Try again in ${retry_after} s.`,
    headers: { 'Retry-After': String(retry_after) },
  });
};

/** Applies the same rules as placing, under the locks. Null if the revision is allowed. */
const whyNot = (draft: ReviseDraft, locked: LockedPrediction, at: Date): Fault | null => {
  const { row, is_open, takes_imports } = locked;
  if (row.agent_id !== draft.agent.id) return refuse(revision_faults.NOT_YOUR_PREDICTION);
  if (draft.imported_at === null ? !is_open : !takes_imports) {
    return refuse(question_faults.QUESTION_NOT_OPEN, {
      message: 'The question no longer accepts forecasts.',
    });
  }
  const since = standsSince(row);
  if (draft.imported_at !== null && at <= since) {
    return refuse(prediction_faults.DUPLICATE_PREDICTION, {
      message: `This agent has a forecast from ${since.toISOString()}. Send only later ones.`,
    });
  }
  if (row.revision >= max_revisions) return refuse(revision_faults.REVISION_LIMIT_REACHED);
  const rest_ms = since.getTime() + min_rest_ms - at.getTime();
  return draft.imported_at === null && rest_ms > 0 ? refuseSoon(rest_ms) : null;
};

const judge = (draft: ReviseDraft, locked: LockedPrediction | undefined, now: Date) => {
  if (locked === undefined) return refuse(prediction_faults.PREDICTION_NOT_FOUND);
  const { row } = locked;
  const before = statedIn(row);
  const is_own = row.agent_id === draft.agent.id;
  if (is_own && isSameForecast(before, draft.stated)) return { row, made: null };
  const at = draft.imported_at ?? now;
  const fault = whyNot(draft, locked, at);
  if (fault !== null) return fault;
  return { row, made: compose(draft, row, at) };
};

const compose = (draft: ReviseDraft, row: PredictionRow, at: Date) => {
  const { agent, owner_id, stated, reason } = draft;
  const { id, question_id, model_family, options } = row;
  const number = row.revision + 1;
  const event_id = makeId();
  const revision: Revision = {
    question_id,
    agent_id: agent.id,
    ...stated,
    revision: number,
    revised_at: at,
    revision_reason: reason,
    revision_event_id: event_id,
  };
  const event = {
    id: event_id,
    at,
    scope: { question_id, agent_id: agent.id, owner_id },
    data: {
      question_id,
      prediction_id: id,
      user_id: agent.id,
      user_name: agent.name,
      model_family,
      ...dataOf(stated, row),
      revision: number,
      previous: dataOf(statedIn(row), row),
    },
  };
  const revised = { ...row, ...revision, selected_option: optionIn(stated, options) };
  return { revision, event, revised };
};

type Judged = Exclude<ReturnType<typeof judge>, Fault>;

const revisedOf = ({ row, made }: Judged): Revised =>
  made === null ? { row, event_id: null } : { row: made.revised, event_id: made.event.id };

const write = async (
  tx: Tx,
  drafts: readonly ReviseDraft[],
  judged: readonly (Judged | Fault)[],
): Promise<void> => {
  const made = judged.flatMap((one) => (isFault(one) ? [] : (one.made ?? [])));
  const kept = drafts.flatMap(({ idempotent }, n) => {
    const one = judged[n]!;
    if (idempotent === null || isFault(one)) return [];
    return { claim: idempotent.claim, answer: idempotent.answer(revisedOf(one)) };
  });
  if (made.length > 0) {
    const events = made.map(({ event }) => event);
    await Promise.all([
      revise(
        tx,
        made.map(({ revision }) => revision),
      ),
      emitAll(tx, prediction_revised, events),
    ]);
  }
  await storeInTransaction(tx, kept);
};

export const createRevising = ({
  sql,
  clock,
}: Pick<Deps, 'sql' | 'clock'>): ReviseParts['revising'] =>
  createGroupCommit({
    one_of: ({ prediction_id }) => prediction_id,
    commit: (drafts) =>
      sql.begin(async (tx) => {
        const locked = await lockPredictions(
          tx,
          drafts.map(({ prediction_id }) => prediction_id),
        );
        const by_id = new Map(locked.map((one) => [one.row.id, one]));
        const now = clock();
        const judged = drafts.map((draft) => judge(draft, by_id.get(draft.prediction_id), now));
        await write(tx, drafts, judged);
        return judged.map((one) => (isFault(one) ? one : revisedOf(one)));
      }),
  });

export const showForecast = (
  forecast: ForecastRow,
  question: Pick<ForecastQuestion, 'options' | 'question_type'>,
  sees_reason: boolean,
) => {
  const { revision, reason, event_id, forecast_at, until } = forecast;
  return {
    revision,
    ...showForecastInput(forecast, question),
    reason: sees_reason ? reason : null,
    event_id,
    forecast_at: forecast_at.toISOString(),
    until: until?.toISOString() ?? null,
  };
};

const path = 'body.reason';

/** Checks the text that says why the forecast changed. Its words follow the rules for comments. */
export const readReason = (text: string): string | Fault => {
  const { min, max, words, word_letters } = reason_limits;
  const reason = readText(text, path, { min, max });
  if (isFault(reason)) return reason;
  const { distinct, objection } = readProse(reason, {
    links: findLinks(reason),
    uncounted: [],
    min_letters: word_letters,
  });
  if (objection !== null) {
    const message = `The reason was not accepted. ${objection.detail}`;
    return refuse(prediction_faults.CONTENT_REJECTED, { message, fields: [{ path, message }] });
  }
  if (distinct.length >= words) return reason;
  const message = `Say why the forecast changed, in at least ${words} different words of ${word_letters} letters or more.`;
  return refuseFields([{ path, message }], message);
};
