import type { Tx } from '../../db/client.js';
import { emit, emitAll } from '../../db/event.js';
import type { Deps } from '../../http/deps.js';
import { type Fault, isFault, refuse } from '../../kit/fault.js';
import { makeLoop } from '../../kit/loop.js';
import type { Service } from '../../kit/service.js';
import { type Act, recordAct } from '../audit/index.js';
import {
  type Projector,
  question_closed,
  question_closing_soon,
  question_created,
  readData,
} from '../events/index.js';
import { notify } from '../notifications/index.js';
import type { TaxonomyParts } from '../taxonomy/index.js';
import {
  changedFields,
  checkEnd,
  editQuestion,
  makeQuestion,
  reopenDates,
  timeframeOf,
} from './rules.js';
import {
  type QuestionDraft,
  type QuestionEdit,
  type QuestionStatus,
  question_faults,
  type ReopenBody,
  statuses,
} from './schema.js';
import {
  addCounts,
  type Counted,
  type Created,
  closeDue,
  countDraftsLocked,
  deleteDraft,
  type Ending,
  insertQuestion,
  lockQuestion,
  markSoon,
  most_a_turn,
  type QuestionRow,
  resetCounts,
  updateQuestion,
} from './store.js';

/**
 * The life of a question:
 *
 *   draft ──publish──▶ open ──close, or the timer at closes_at──▶ closed ──resolve──▶ resolved ─┐
 *     │                 │ ◀──────reopen with a later closes_at─────┘ │           new revision ◀─┘
 *     └─▶ deleted       └──────────────void──────────────────────────┴─▶ voided
 *
 * Each step is one transaction with its event, and judges the question under its lock.
 *
 * Another feature that ends a question calls `markResolved` or `markVoided` in its own transaction
 * and `questions.forget` after the commit. Other processes use their copy for a moment longer, so
 * that the commit of a prediction looks at the status again.
 */

interface Rule {
  readonly from: readonly QuestionStatus[];
  /** Opens the refusal from another status. */
  readonly rule: string;
}

/** The question, locked until the end of the transaction, when its status allows the step. */
const takeQuestion = async (tx: Tx, id: string, step: Rule): Promise<QuestionRow | Fault> => {
  const row = await lockQuestion(tx, id);
  if (row === undefined) return refuse(question_faults.QUESTION_NOT_FOUND);
  if (step.from.includes(row.status)) return row;
  const message = `${step.rule}; this one is ${row.status}.`;
  return refuse(question_faults.INVALID_TRANSITION, { message });
};

const announceSoon = async (tx: Tx, id: string | null, at: Date): Promise<number> => {
  const endings = await markSoon(tx, id, at);
  const drafts = endings.map(({ id: question_id, question, closes_at }) => ({
    ...{ at, place: { question_id } },
    data: { question_id, question, closes_at: closes_at.toISOString() },
  }));
  await emitAll(tx, question_closing_soon, drafts);
  return endings.length;
};

const announceClosed = (tx: Tx, closed: readonly Ending[], at: Date) => {
  const drafts = closed.map(({ id: question_id, question }) => ({
    ...{ at, place: { question_id } },
    data: { question_id, question, closed_at: at.toISOString() },
  }));
  return emitAll(tx, question_closed, drafts);
};

/** draft → open with its event, and with the announcement where less than a day is left. */
const openDraft = async (tx: Tx, row: QuestionRow, opens_at: Date, at: Date) => {
  const { id } = row;
  const timeframe = timeframeOf(opens_at, row.resolution_date);
  const change = { status: 'open', opens_at, timeframe, published_at: at, updated_at: at } as const;
  const opened = await updateQuestion(tx, id, change);
  const { question, category, subcategory, tags, question_type, options } = opened;
  await emit(tx, question_created, {
    at,
    place: { question_id: id },
    data: {
      ...{ question_id: id, question, category, subcategory, tags, question_type, options },
      opens_at: opened.opens_at.toISOString(),
      closes_at: opened.closes_at.toISOString(),
    },
  });
  await announceSoon(tx, id, at);
  return opened;
};

/** An admin who makes or changes a question, and how the answer is kept with the effect. */
export interface By<R = QuestionRow> {
  readonly admin: string;
  readonly keep?: (tx: Tx, result: R) => Promise<void>;
}

/** Stores a draft, and opens it at once when it asks for that. */
export const createQuestion = async (
  deps: Deps & TaxonomyParts,
  draft: QuestionDraft,
  { admin, act, keep }: By<Created> & { readonly act: 'question.create' | 'question.import' },
): Promise<Created | Fault> => {
  const at = deps.clock();
  const question = makeQuestion(draft, at);
  if (isFault(question)) return question;
  const misplaced = await deps.taxonomy.check(question);
  if (misplaced !== null) return misplaced;
  return deps.sql.begin(async (tx) => {
    const made = await insertQuestion(tx, question, null);
    const { created } = made;
    const opens = created && draft.publish === true;
    const row = opens ? await openDraft(tx, made.row, made.row.opens_at, at) : made.row;
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
  suggestion: QuestionDraft,
  by: { readonly agent_id: string; readonly keep: (tx: Tx, row: QuestionRow) => Promise<void> },
): Promise<QuestionRow | Fault> => {
  const now = deps.clock();
  // Members that suggestions do not have are ignored, also where drafts have them.
  const draft = { ...suggestion, weight: 1, source: null, source_id: null };
  const question = makeQuestion(draft, now);
  if (isFault(question)) return question;
  const wrong = (await deps.taxonomy.check(question)) ?? checkEnd(draft, question.closes_at, now);
  if (wrong !== null) return wrong;
  return deps.sql.begin(async (tx) => {
    const drafts = await countDraftsLocked(tx, by.agent_id, now);
    if (drafts >= most_suggestions) {
      const message = `${drafts} of your suggestions wait for review; suggest more when they are decided.`;
      return refuse(question_faults.SUGGESTION_LIMIT_REACHED, { message });
    }
    const { row } = await insertQuestion(tx, question, by.agent_id);
    await by.keep(tx, row);
    return row;
  });
};

/** The question after a step, and what the audit log says of it; null when nothing changed. */
interface Taken {
  readonly row: QuestionRow;
  readonly details: Readonly<Record<string, unknown>> | null;
}

/** A step that an admin takes; `B` is the type of the body of the call. */
export interface Step<B = unknown> extends Rule {
  readonly act: Act;
  work(
    tx: Tx,
    row: QuestionRow,
    made: { readonly at: Date; readonly body: B },
  ): Promise<Taken | Fault>;
}

interface StepCall<B> extends By {
  readonly id: string;
  readonly body?: B;
  readonly reason?: string | null;
}

/** One step in one transaction: the row is locked, the step judged and done, and written down. */
export const takeStep = <B>(
  deps: Deps,
  step: Step<B>,
  { id, body, admin, reason = null, keep }: StepCall<B>,
): Promise<QuestionRow | Fault> =>
  deps.sql.begin(async (tx) => {
    const before = await takeQuestion(tx, id, step);
    if (isFault(before)) return before;
    const at = deps.clock();
    const taken = await step.work(tx, before, { at, body: body as B });
    if (isFault(taken)) return taken;
    const { row, details } = taken;
    if (details !== null) {
      const subject = { kind: 'question', id };
      await recordAct(tx, { admin, act: step.act, subject, reason, details, at });
    }
    await keep?.(tx, row);
    return row;
  });

/** Tells an agent what became of its suggestion; nobody else hears of a draft. */
const notifyAuthor = async (
  tx: Tx,
  { id, author_id, question }: QuestionRow,
  { at, rejected }: { readonly at: Date; readonly rejected?: { readonly reason: string | null } },
): Promise<void> => {
  if (author_id === null) return;
  const about = { agent_id: author_id, cause: `suggestion:${id}`, subject_id: id, at };
  if (rejected === undefined) {
    await notify(tx, [{ ...about, kind: 'suggestion.published', question_id: id, details: {} }]);
    return;
  }
  const details = { question, ...(rejected.reason === null ? {} : { reason: rejected.reason }) };
  await notify(tx, [{ ...about, kind: 'suggestion.rejected', details }]);
};

/** A question that was to open before it is published opens now. */
export const publish: Step = {
  act: 'question.publish',
  from: ['draft'],
  rule: 'Only a draft can be published',
  async work(tx, row, { at }) {
    if (row.closes_at <= at) {
      return refuse(question_faults.INVALID_TRANSITION, {
        message: `It would have closed at ${row.closes_at.toISOString()}; change closes_at first.`,
      });
    }
    const opened = await openDraft(tx, row, row.opens_at > at ? row.opens_at : at, at);
    await notifyAuthor(tx, row, { at });
    return { row: opened, details: {} };
  },
};

/** open → closed before its time. */
export const close: Step = {
  act: 'question.close',
  from: ['open'],
  rule: 'Only an open question can close',
  async work(tx, before, { at }) {
    const change = { status: 'closed', closed_at: at, updated_at: at } as const;
    const row = await updateQuestion(tx, before.id, change);
    await announceClosed(tx, [row], at);
    return { row, details: {} };
  },
};

/** closed → open until a later time, which gets an announcement of its own. */
export const reopen: Step<ReopenBody> = {
  act: 'question.reopen',
  from: ['closed'],
  rule: 'Only a closed question can be reopened',
  async work(tx, before, { at, body }) {
    const dates = reopenDates(before, body, at);
    if (isFault(dates)) return dates;
    const row = await updateQuestion(tx, before.id, {
      ...dates,
      ...{ status: 'open', closed_at: null, closing_soon_at: null, updated_at: at },
    });
    await announceSoon(tx, row.id, at);
    return { row, details: { closes_at: dates.closes_at.toISOString() } };
  },
};

/** Changes what may be changed in the status of the question; a new close is announced anew. */
export const edit = ({ taxonomy }: TaxonomyParts): Step<QuestionEdit> => ({
  act: 'question.update',
  from: statuses,
  rule: '',
  async work(tx, before, { at, body }) {
    const question = editQuestion(before, body, at);
    if (isFault(question)) return question;
    const misplaced = await taxonomy.check(question);
    if (misplaced !== null) return misplaced;
    const changed = changedFields(before, question);
    if (changed.length === 0) return { row: before, details: null };
    if (changed.includes('options')) await resetCounts(tx, before.id, question.options.length);
    const row = await updateQuestion(tx, before.id, {
      ...question,
      ...(changed.includes('closes_at') ? { closing_soon_at: null } : {}),
      updated_at: at,
    });
    await announceSoon(tx, row.id, at);
    return { row, details: { changed } };
  },
});

/** Rejects a suggestion, or drops a draft. A published question is voided instead. */
export const drop: Step<{ readonly reason: string | null }> = {
  act: 'question.reject',
  from: ['draft'],
  rule: 'Only a draft can be deleted, and a published question can be voided',
  async work(tx, row, { at, body }) {
    await deleteDraft(tx, row.id);
    await notifyAuthor(tx, row, { at, rejected: body });
    return { row, details: { question: row.question, author_id: row.author_id } };
  },
};

interface Resolution extends Pick<QuestionRow, 'id' | 'outcome' | 'correct_options'> {
  readonly note: string | null;
  readonly at: Date;
}

const to_resolve: Rule = {
  from: ['closed', 'resolved'],
  rule: 'Only a closed question can be resolved, or a resolved one again',
};
const to_void: Rule = {
  from: ['open', 'closed'],
  rule: 'Only an open or a closed question can be voided',
};

/**
 * closed → resolved, or resolved → resolved as a new revision; the row as it is then. That the
 * outcome fits the type and the options is checked by the caller; neither changes after publishing.
 */
export const markResolved = async (
  tx: Tx,
  resolution: Resolution,
): Promise<QuestionRow | Fault> => {
  const { id, outcome, correct_options, note, at } = resolution;
  const row = await takeQuestion(tx, id, to_resolve);
  if (isFault(row)) return row;
  return updateQuestion(tx, id, {
    ...{ status: 'resolved', outcome, correct_options, resolution_note: note, resolved_at: at },
    ...{ revision: row.revision + 1, updated_at: at },
  });
};

/** open | closed → voided, and the revision counts it like a resolution; the row as it is then. */
export const markVoided = async (
  tx: Tx,
  { id, note, at }: Pick<Resolution, 'id' | 'note' | 'at'>,
): Promise<QuestionRow | Fault> => {
  const row = await takeQuestion(tx, id, to_void);
  if (isFault(row)) return row;
  return updateQuestion(tx, id, {
    ...{ status: 'voided', resolution_note: note, voided_at: at },
    ...{ revision: row.revision + 1, updated_at: at },
  });
};

/**
 * One turn of the timer: announces questions that close within a day and closes those whose time is
 * up; any number of timers may run. Returns how many questions changed.
 */
export const turnQuestions = async (deps: Deps): Promise<number> =>
  deps.sql.begin(async (tx) => {
    const now = deps.clock();
    const announced = await announceSoon(tx, null, now);
    const closed = await closeDue(tx, now);
    await announceClosed(tx, closed, now);
    return announced + closed.length;
  });

export const createQuestionTimer = (deps: Deps, every_ms = 500): Service =>
  makeLoop({
    name: 'question timer',
    log: deps.log,
    every_ms,
    turn: async () => ((await turnQuestions(deps)) >= most_a_turn ? 'again' : 'rest'),
  });

/**
 * Counters of questions follow the log: they move in the transaction that gives the events their
 * offsets, once a batch and question, and so never on the path of a prediction.
 */
export const question_counts: Projector = {
  name: 'question counters',
  async record(tx, entries) {
    const counted = entries.flatMap((entry): Counted[] => {
      const { event, question_id, offset } = entry;
      if (question_id === null) return [];
      if (event === 'comment.created') return [{ question_id, prediction_offset: null }];
      if (event !== 'prediction.placed') return [];
      const { prediction, option_index, option_count } = readData(entry);
      return [{ question_id, prediction_offset: offset, prediction, option_index, option_count }];
    });
    if (counted.length > 0) await addCounts(tx, counted);
  },
};
