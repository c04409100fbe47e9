import type { Deps } from '../../http/deps.js';
import { type Fault, refuse } from '../../kit/fault.js';
import { toPercent } from '../../kit/percent.js';
import { question_faults } from '../questions/index.js';
import type { PredictionRow } from './columns.js';
import { type ComparedText, checkReasoning, comparedOf } from './gates.js';
import { composePlaced, type Placing } from './placing.js';
import { hasFailures, prediction_faults, refuseFailures } from './schema.js';
import { readStated, type Stated, type StatedBody } from './stated.js';
import { readOwnPrediction } from './store.js';

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
 * the question may be closed, that the time is the one it was made at, and that texts which were never
 * written for this forum are not compared with others. A text that comes along passes the gates for length, sections, sources and content;
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

/** Records forecasts by the group commit, in their order; each has its own outcome. */
export const recordImported = (
  deps: Pick<Deps, 'sql'> & { readonly placing: Placing },
  items: readonly Imported[],
  { admin, now }: { readonly admin: string; readonly now: Date },
): Promise<readonly ImportOutcome[]> =>
  Promise.all(items.map((item) => recordOne(deps, item, { admin, now })));

const recordOne = async (
  { sql, placing }: Pick<Deps, 'sql'> & { readonly placing: Placing },
  item: Imported,
  { admin, now }: { readonly admin: string; readonly now: Date },
): Promise<ImportOutcome> => {
  const { question, agent, at } = item;
  const stated = readStated(item.stated, question);
  if ('failures' in stated) return refuseFailures(stated.failures as never);
  const text = readText(item, stated);
  if ('kind' in text) return text;
  const late = whyUntimely(item, now);
  if (late !== null) return refuse(question_faults.QUESTION_NOT_OPEN, { message: late });
  const { reasoning, citations, compared } = text;
  const verdict = await placing.add({
    question_id: question.id,
    agent_id: agent.id,
    text: compared,
    compose: (id) =>
      composePlaced({
        ...{ id, at, question, agent, stated },
        // Imported agents belong to nobody, so each counts as an owner of its own.
        rest: { reasoning, citations, body_digest: '' },
      }),
    idempotent: null,
    imported_by: admin,
  });
  if (verdict.placed !== null) return { kind: 'created', prediction_id: verdict.placed.row.id };
  const own = await readOwnPrediction(sql, question.id, agent.id);
  if (own !== undefined) return compareWithOwn(own, stated, question);
  const message = 'Only a question that was imported and is not decided yet takes forecasts.';
  return refuse(question_faults.QUESTION_NOT_OPEN, { message });
};

const compareWithOwn = (
  own: PredictionRow,
  stated: Stated,
  { options }: ImportedQuestion,
): ImportOutcome => {
  const { prediction, probability, confidence, selected_option } = stated;
  const is_same =
    own.prediction === prediction &&
    own.probability === probability &&
    own.confidence === confidence &&
    own.selected_option === (selected_option === null ? null : options[selected_option]) &&
    String(own.probabilities) === String(stated.probabilities);
  if (is_same) return { kind: 'exists', prediction_id: own.id };
  const message = 'This agent has another forecast on this question already.';
  return refuse(prediction_faults.DUPLICATE_PREDICTION, { message });
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
  readonly compared: ComparedText;
}

const readText = (item: Imported, stated: Stated): Text | Fault => {
  if (item.reasoning === null) return makeNote(item, stated);
  const { text, citations, citation_keys, words, failures } = checkReasoning(item.reasoning);
  if (hasFailures(failures)) return refuseFailures(failures);
  const { model_family } = item.agent;
  return {
    ...{ reasoning: text, citations },
    compared: { words, sources: citation_keys, model_family },
  };
};

/** Says in the form of a reasoning that there is none. */
const makeNote = ({ question, agent, at }: Imported, { confidence }: Stated): Text => {
  const reasoning = [
    `EVIDENCE: This forecast was recorded elsewhere, on ${at.toISOString().slice(0, 10)}, for a ` +
      `question that comes from ${question.source}, and was imported together with that question.`,
    'ANALYSIS: The import holds the stated probability alone; whatever considerations, models or ' +
      'sources stood behind it were not recorded, so nothing about them can be shown here.',
    'COUNTER-EVIDENCE: None was recorded with the forecast.',
    `BOTTOM LINE: ${toPercent(confidence)} % on the side taken, exactly as stated at the time.`,
  ].join('\n\n');
  const { resolution_url } = question;
  const is_page = resolution_url !== null && /^https?:\/\//.test(resolution_url);
  const citations = is_page ? [resolution_url] : [];
  const { model_family } = agent;
  return { reasoning, citations, compared: comparedOf({ reasoning, citations, model_family }) };
};
