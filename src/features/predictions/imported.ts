import { type Fault, refuse } from '../../kit/fault.js';
import { makeId } from '../../kit/ids.js';
import type { Tx } from '../../kit/pg/client.js';
import { question_faults } from '../questions/index.js';
import { makePlacedEvent } from './events.js';
import { hasFailures, prediction_faults, refuseFailures } from './faults.js';
import { type ImportVerdict, lockForImport, storeImported } from './imported-store.js';
import { checkReasoning } from './reasoning.js';
import { readStated, type StatedBody, type StatedForecast } from './stated.js';

export interface ImportedQuestion {
  readonly id: string;
  readonly question_type: 'binary' | 'multi';
  readonly options: readonly string[];
  readonly weight: number;
  readonly opens_at: Date;
  readonly closes_at: Date;
  readonly resolution_url: string | null;
  readonly source: string;
}

/**
 * A forecast that was made elsewhere. The rules are those of a prediction made here, except that
 * the question may be closed, that the time is the one it was made at, and that what a text has to
 * have in common with no other (gates 5 and 6) is not asked of texts that were never written for
 * this forum. A text that comes along passes the gates for length, sections, sources and content;
 * where none was recorded, the note that says so stands in its place.
 */
export interface Imported {
  readonly question: ImportedQuestion;
  readonly agent: { readonly id: string; readonly name: string; readonly model_family: string };
  readonly stated: StatedBody;
  readonly reasoning: string | null;
  readonly at: Date;
}

export type ImportOutcome =
  | { readonly kind: 'created' | 'exists'; readonly prediction_id: string }
  | Fault;

/** Records forecasts one after the other in one transaction; each has its own outcome. */
export const recordImported = async (
  tx: Tx,
  items: readonly Imported[],
  now: Date,
): Promise<readonly ImportOutcome[]> => {
  await lockForImport(
    tx,
    items.map(({ question, agent }) => ({ question_id: question.id, agent_id: agent.id })),
  );
  const outcomes: ImportOutcome[] = [];
  for (const item of items) outcomes.push(await recordOne(tx, item, now));
  return outcomes;
};

const recordOne = async (tx: Tx, item: Imported, now: Date): Promise<ImportOutcome> => {
  const { question, agent, at } = item;
  const stated = readStated(item.stated, question);
  if ('failures' in stated) return refuseFailures(stated.failures as never);
  const text = readText(item, stated);
  if ('kind' in text) return text;
  const late = whyUntimely(item, now);
  if (late !== null) return refuse(question_faults.QUESTION_NOT_OPEN, { message: late });
  const id = makeId();
  const { distribution, ...columns } = stated;
  const event = makePlacedEvent({ id, at, question, agent, stated });
  const verdict = await storeImported(tx, {
    id,
    question_id: question.id,
    agent_id: item.agent.id,
    ...columns,
    ...text,
    model_family: item.agent.model_family,
    at: item.at,
    event_id: event.id,
    event_body: event.body,
  });
  return verdict.placed ? { kind: 'created', prediction_id: id } : explain(verdict);
};

const explain = (verdict: ImportVerdict): ImportOutcome => {
  const { known_id, known_same } = verdict;
  if (known_id !== null && known_same === true) {
    return { kind: 'exists', prediction_id: known_id };
  }
  if (known_id !== null) {
    const message = 'This agent has another forecast on this question already.';
    return refuse(prediction_faults.DUPLICATE_PREDICTION, { message });
  }
  const message = 'Only a question that was imported and is not decided yet takes forecasts.';
  return refuse(question_faults.QUESTION_NOT_OPEN, { message });
};

const whyUntimely = ({ question, at }: Imported, now: Date): string | null => {
  if (at > now) return 'The forecast is said to be made in the future.';
  const { opens_at, closes_at } = question;
  if (at >= opens_at && at < closes_at) return null;
  return `A forecast of ${at.toISOString()} is not of the time in which the question was open, from ${opens_at.toISOString()} to ${closes_at.toISOString()}.`;
};

interface Text {
  readonly reasoning: string;
  readonly citations: readonly string[];
}

const readText = (item: Imported, stated: StatedForecast): Text | Fault => {
  if (item.reasoning === null) return makeNote(item, stated);
  const { text, citations, failures } = checkReasoning(item.reasoning);
  return hasFailures(failures) ? refuseFailures(failures) : { reasoning: text, citations };
};

/** Says in the form of a reasoning that there is none. */
const makeNote = ({ question, at }: Imported, { confidence }: StatedForecast): Text => ({
  reasoning: [
    `EVIDENCE: This forecast was recorded elsewhere, on ${at.toISOString().slice(0, 10)}, for a ` +
      `question that comes from ${question.source}, and was imported together with that question.`,
    'ANALYSIS: The import holds the stated probability alone; whatever considerations, models or ' +
      'sources stood behind it were not recorded, so nothing about them can be shown here.',
    'COUNTER-EVIDENCE: None was recorded with the forecast.',
    `BOTTOM LINE: ${confidence} % on the side taken, exactly as stated at the time.`,
  ].join('\n\n'),
  citations:
    question.resolution_url !== null && /^https?:\/\//.test(question.resolution_url)
      ? [question.resolution_url]
      : [],
});
