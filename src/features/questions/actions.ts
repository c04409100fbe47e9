import type { Deps } from '../../kit/deps.js';
import { common_faults, type Fault, isFault, refuse } from '../../kit/fault.js';
import { makeId } from '../../kit/ids.js';
import type { Tx } from '../../kit/pg/client.js';
import { recordAct } from '../audit/index.js';
import type { TaxonomyParts } from '../taxonomy/index.js';
import { openDraft } from './life.js';
import { countDraftsLocked } from './life-store.js';
import { makeQuestion, type NewQuestion, refusePast } from './rules.js';
import { type QuestionDraft, question_faults } from './schema.js';
import { insertQuestion, type QuestionRow, readQuestion } from './store.js';

/** How questions come to be: from admins, from imports, and from agents who suggest them. */

export interface Created {
  readonly row: QuestionRow;
  readonly created: boolean;
}

const store = async (tx: Tx, question: NewQuestion, author_id: string | null): Promise<Created> => {
  const { id, created } = await insertQuestion(tx, makeId(), question, author_id);
  const row = await readQuestion(tx, id);
  if (row === undefined) throw new Error(`question ${id} vanished inside its transaction`);
  return { row, created };
};

const checkSource = ({ source, source_id }: NewQuestion): Fault | null => {
  if ((source === null) === (source_id === null)) return null;
  const path = source === null ? 'body.source' : 'body.source_id';
  return refuse(common_faults.INVALID_REQUEST, {
    message: 'source and source_id go together; send both or neither.',
    fields: [{ path, message: 'Goes together with the other' }],
  });
};

/** Stores the answer to the call in the transaction of its effect. */
export type Keep = (tx: Tx, row: QuestionRow) => Promise<void>;

/** Which admin makes a question, and by which act. */
export interface Maker {
  readonly admin: string;
  readonly act: 'question.create' | 'question.import';
  readonly keep?: (tx: Tx, made: Created) => Promise<void>;
}

/** Stores a draft, and opens it at once when it asks for that. */
export const createQuestion = async (
  deps: Deps & TaxonomyParts,
  draft: QuestionDraft,
  { admin, act, keep }: Maker,
): Promise<Created | Fault> => {
  const at = deps.clock();
  const question = makeQuestion(draft, at);
  if (isFault(question)) return question;
  const wrong = (await deps.taxonomy.check(question)) ?? checkSource(question);
  if (wrong !== null) return wrong;
  return deps.sql.begin(async (tx) => {
    const { row: stored, created } = await store(tx, question, null);
    const opens = created && draft.publish === true;
    const row = opens ? await openDraft(tx, stored, { opens_at: stored.opens_at, at }) : stored;
    if (isFault(row)) return row;
    if (created) {
      const subject = { kind: 'question', id: row.id };
      await recordAct(tx, { admin, act, subject, details: { status: row.status }, at });
    }
    await keep?.(tx, { row, created });
    return { row, created };
  });
};

/** Drafts of one agent that wait for review at a time. */
export const most_suggestions = 20;

/** Stores what an agent suggests as a draft, which it sees and admins review. */
export const suggestQuestion = async (
  deps: Deps & TaxonomyParts,
  draft: QuestionDraft,
  by: { readonly agent_id: string; readonly keep: Keep },
): Promise<QuestionRow | Fault> => {
  const { agent_id, keep } = by;
  const now = deps.clock();
  // Members that suggestions do not have are ignored, also where drafts have them.
  const question = makeQuestion({ ...draft, weight: 1, source: null, source_id: null }, now);
  if (isFault(question)) return question;
  const misplaced = await deps.taxonomy.check(question);
  if (misplaced !== null) return misplaced;
  if (question.closes_at <= now) {
    const name = draft.closes_at == null ? 'resolution_date' : 'closes_at';
    return refusePast(name, question.closes_at, now);
  }
  return deps.sql.begin(async (tx) => {
    const drafts = await countDraftsLocked(tx, agent_id, now);
    if (drafts >= most_suggestions) {
      return refuse(question_faults.SUGGESTION_LIMIT_REACHED, {
        message: `${drafts} of your suggestions wait for review; suggest more when they are decided.`,
      });
    }
    const { row } = await store(tx, question, agent_id);
    await keep(tx, row);
    return row;
  });
};
