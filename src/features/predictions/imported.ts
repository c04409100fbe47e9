import type { Deps } from '../../http/deps.js';
import { type Fault, isFault, refuse } from '../../kit/fault.js';
import { groupBy } from '../../kit/group-by.js';
import { makePause } from '../../kit/loop.js';
import { toPercent } from '../../kit/percent.js';
import { question_faults } from '../questions/schema.js';
import { composeRow, not_imported } from './answering.js';
import { showCdf } from './cdf-input.js';
import type { ForecastColumns } from './distribution.js';
import { hasFailures, prediction_faults, refuseFailures } from './faults.js';
import { type ForecastBody, type ForecastQuestion, readForecastInput } from './forecast-input.js';
import { type ComparedText, checkReasoning, comparedOf } from './gates.js';
import type { Placing } from './placing.js';
import { isSameForecast, type ReviseParts } from './revising.js';
import { readForecastAt } from './revising-store.js';

export interface ImportedQuestion extends ForecastQuestion {
  readonly id: string;
  readonly weight: number;
  readonly opens_at: Date;
  readonly closes_at: Date;
  readonly resolution_url: string | null;
  readonly source: string;
}

/**
 * A forecast that was made elsewhere. The rules for predictions made here apply, with exceptions:
 * the question may be closed, and the forecast has the time at which it was made. Its text is not
 * compared with others, because it was not written for this forum. The text must pass the gates for
 * length, sections, sources and content. If there is no text, a note that says so is stored.
 */
export interface Imported {
  readonly question: ImportedQuestion;
  readonly agent: { readonly id: string; readonly name: string; readonly model_family: string };
  readonly stated: ForecastBody;
  readonly reasoning: string | null;
  /** When it was made. If missing, the current time is used and no earlier forecast is revised. */
  readonly at?: Date;
}

export type ImportOutcome =
  | { readonly kind: 'created' | 'exists'; readonly prediction_id: string }
  | Fault;

type Needs = Pick<Deps, 'sql'> & ReviseParts & { readonly placing: Placing };

interface Import {
  readonly admin: string;
  readonly now: Date;
}

/** Maximum number of texts judged per turn of the event loop. A long one takes 3 ms. */
const texts_a_turn = 5;

/**
 * Records forecasts through the group commits; each has its own outcome. Forecasts of one agent on
 * one question are recorded in order of time: the first is its prediction, later ones revise it.
 */
export const recordImported = async (
  deps: Needs,
  items: readonly Imported[],
  by: Import,
): Promise<readonly ImportOutcome[]> => {
  const outcomes = new Map<Imported, ImportOutcome>();
  const pairs = groupBy(items, ({ question, agent }) => `${question.id} ${agent.id}`);
  const pause = makePause(texts_a_turn);
  let begun: Promise<void> = Promise.resolve();
  await Promise.all(
    [...pairs.values()].map(async (of_pair) => {
      begun = begun.then(() => pause());
      await begun;
      const in_order = of_pair.toSorted((a, b) => timeOf(a, by) - timeOf(b, by));
      for (const item of in_order) outcomes.set(item, await recordOne(deps, item, by));
    }),
  );
  return items.map((item) => outcomes.get(item)!);
};

const timeOf = ({ at }: Imported, { now }: Import): number => (at ?? now).getTime();

const recordOne = async (
  deps: Needs,
  item: Imported,
  { admin, now }: Import,
): Promise<ImportOutcome> => {
  const { question, agent, at = now } = item;
  const stated = readForecastInput(item.stated, question);
  if ('failures' in stated) return refuseFailures(stated.failures as never);
  const text = readText(item, stated, at);
  if ('kind' in text) return text;
  const late = whyUntimely(question, at, now);
  if (late !== null) return refuse(question_faults.QUESTION_NOT_OPEN, { message: late });
  const { reasoning, citations, compared } = text;
  const verdict = await deps.placing.add({
    question_id: question.id,
    agent_id: agent.id,
    text: compared,
    compose: (id) =>
      composeRow({
        id,
        at,
        question,
        agent,
        stated,
        given: {
          ...not_imported,
          // Imported agents have no owner, so each counts as a separate owner.
          owner_id: null,
          reasoning,
          citations,
        },
      }),
    idempotent: null,
    imported_by: admin,
  });
  if (verdict.placed !== null) return { kind: 'created', prediction_id: verdict.placed.row.id };
  if (verdict.own_id !== null) return recordLater(deps, { item, stated, id: verdict.own_id });
  const message = 'Import forecasts only for an imported question that is not decided yet.';
  return refuse(question_faults.QUESTION_NOT_OPEN, { message });
};

interface Later {
  readonly item: Imported;
  readonly stated: ForecastColumns;
  /** Id of the existing prediction. */
  readonly id: string;
}

/** Records another forecast of an agent on a question: a repeat or a revision. */
const recordLater = async (
  { sql, revising }: Needs,
  { item, stated, id: prediction_id }: Later,
): Promise<ImportOutcome> => {
  const { question, agent, at } = item;
  const stood = await readForecastAt(sql, question.id, agent.id, at ?? null);
  if (stood !== undefined && isSameForecast(stood, stated))
    return { kind: 'exists', prediction_id };
  if (at === undefined || stood?.forecast_at.getTime() === at.getTime()) {
    const message = 'This agent already has a different forecast on this question.';
    return refuse(prediction_faults.DUPLICATE_PREDICTION, { message });
  }
  const revised = await revising.add({
    prediction_id,
    agent,
    owner_id: null,
    stated,
    reason: null,
    imported_at: at,
    idempotent: null,
  });
  return isFault(revised) ? revised : { kind: 'created', prediction_id };
};

const whyUntimely = (question: ImportedQuestion, at: Date, now: Date): string | null => {
  if (at > now) return 'The time of the forecast is in the future.';
  const { opens_at, closes_at } = question;
  if (at >= opens_at && at < closes_at) return null;
  return `The forecast was made at ${at.toISOString()}, but the question was open only from ${opens_at.toISOString()} to ${closes_at.toISOString()}.`;
};

interface Text {
  readonly reasoning: string;
  readonly citations: readonly string[];
  readonly compared: ComparedText;
}

const readText = (item: Imported, stated: ForecastColumns, at: Date): Text | Fault => {
  if (item.reasoning === null) return makeNote(item, stated, at);
  const { text, citations, citation_keys, words, failures } = checkReasoning(item.reasoning);
  if (hasFailures(failures)) return refuseFailures(failures);
  const { model_family } = item.agent;
  return { reasoning: text, citations, compared: { words, sources: citation_keys, model_family } };
};

/** Writes a note, in the form of reasoning, that says that no reasoning was recorded. */
const makeNote = (
  { question, agent }: Imported,
  { confidence, cdf }: ForecastColumns,
  at: Date,
): Text => {
  const stated =
    cdf === null
      ? `${toPercent(confidence)} % on the chosen side`
      : `the median is ${showCdf(cdf, question)?.quartiles[1]}`;
  const reasoning = [
    `EVIDENCE: This forecast was recorded elsewhere, on ${at.toISOString().slice(0, 10)}, for a ` +
      `question from ${question.source}, and was imported together with that question.`,
    'ANALYSIS: The import contains only the stated probability. The considerations, models and ' +
      'sources behind it were not recorded, so they cannot be shown here.',
    'COUNTER-EVIDENCE: None was recorded with the forecast.',
    `BOTTOM LINE: ${stated}, exactly as stated at the time.`,
  ].join('\n\n');
  const { resolution_url } = question;
  const is_page = resolution_url !== null && /^https?:\/\//.test(resolution_url);
  const citations = is_page ? [resolution_url] : [];
  const { model_family } = agent;
  return { reasoning, citations, compared: comparedOf({ reasoning, citations, model_family }) };
};
