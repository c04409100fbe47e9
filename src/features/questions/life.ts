import type { Deps } from '../../kit/deps.js';
import { emit, emitAll } from '../../kit/event.js';
import { type Fault, isFault, refuse } from '../../kit/fault.js';
import type { Tx } from '../../kit/pg/client.js';
import { type Act, recordAct } from '../audit/index.js';
import { question_closed, question_closing_soon, question_created } from '../events/index.js';
import { notify } from '../notifications/index.js';
import type { TaxonomyParts } from '../taxonomy/index.js';
import { changedFields, editQuestion, reopenDates } from './edit.js';
import {
  type Closing,
  closeDue,
  deleteDraft,
  lockQuestion,
  markManySoon,
  markSoon,
  type Resolution,
  setClosed,
  setOpen,
  setReopened,
  setResolved,
  setVoided,
  updateQuestion,
  type Voiding,
} from './life-store.js';
import { timeframeOf } from './rules.js';
import { type QuestionEdit, question_faults, type ReopenBody } from './schema.js';
import { type QuestionRow, readQuestion } from './store.js';

/**
 * The life of a question:
 *
 *   draft ──publish──▶ open ──close, or the timer at closes_at──▶ closed ──resolve──▶ resolved ─┐
 *     │                 │ ◀──────reopen with a later closes_at─────┘ │           new revision ◀─┘
 *     └─▶ deleted       └──────────────void──────────────────────────┴─▶ voided
 *
 * Each step is one transaction with its event. It takes the row first, judges what it finds there
 * and changes it with an update that names the status again, so that of many steps at once each
 * sees the outcome of the one before it.
 *
 * Whoever ends a question from another feature calls `markResolved` or `markVoided` in its own
 * transaction, and `questions.forget` after the commit. Other processes believe their copy for a
 * moment longer, which is why the commit of a prediction looks at the status again.
 */

const mustRead = async (tx: Tx, id: string): Promise<QuestionRow> => {
  const row = await readQuestion(tx, id);
  if (row === undefined) throw new Error(`question ${id} vanished inside its transaction`);
  return row;
};

/** The row, locked until the end of the transaction. */
const takeQuestion = async (tx: Tx, id: string): Promise<QuestionRow | Fault> =>
  (await lockQuestion(tx, id)) ? mustRead(tx, id) : refuse(question_faults.QUESTION_NOT_FOUND);

const refuseStep = (row: QuestionRow, rule: string): Fault =>
  refuse(question_faults.INVALID_TRANSITION, { message: `${rule}; this one is ${row.status}.` });

const announceSoon = (tx: Tx, closings: readonly Closing[], now: Date): Promise<unknown> =>
  emitAll(
    tx,
    question_closing_soon,
    closings.map(({ id, question, closes_at }) => ({
      at: now,
      place: { question_id: id },
      data: { question_id: id, question, closes_at: closes_at.toISOString() },
    })),
  );

interface Closed {
  readonly id: string;
  readonly question: string;
  readonly closed_at: Date;
}

const announceClosed = (tx: Tx, closed: readonly Closed[]): Promise<unknown> =>
  emitAll(
    tx,
    question_closed,
    closed.map(({ id, question, closed_at }) => ({
      at: closed_at,
      place: { question_id: id },
      data: { question_id: id, question, closed_at: closed_at.toISOString() },
    })),
  );

/** draft → open with its event, and with the announcement where less than a day is left. */
export const openDraft = async (
  tx: Tx,
  row: QuestionRow,
  { opens_at, at }: { opens_at: Date; at: Date },
): Promise<QuestionRow | Fault> => {
  const { id } = row;
  const timeframe = timeframeOf(opens_at, row.resolution_date);
  if (!(await setOpen(tx, { id, opens_at, timeframe, at }))) {
    return refuseStep(row, 'Only a draft can be published');
  }
  const opened = await mustRead(tx, id);
  await emit(tx, question_created, {
    at,
    place: { question_id: id },
    data: {
      question_id: id,
      question: opened.question,
      category: opened.category,
      subcategory: opened.subcategory,
      tags: [...opened.tags],
      question_type: opened.question_type,
      options: [...opened.options],
      opens_at: opened.opens_at.toISOString(),
      closes_at: opened.closes_at.toISOString(),
    },
  });
  await announceSoon(tx, await markSoon(tx, id, at), at);
  return opened;
};

/** An admin's step: who takes it, and what is stored with its effect. */
export interface Step {
  readonly admin: string;
  readonly reason?: string | null;
  readonly keep: (tx: Tx, row: QuestionRow) => Promise<void>;
}

/** The question after a step, and what the audit log tells of it; null when nothing changed. */
interface Taken {
  readonly row: QuestionRow;
  readonly details: Readonly<Record<string, unknown>> | null;
}

/** One step in one transaction: the row is taken, the step judged and done, and written down. */
const takeStep = (
  deps: Deps,
  { id, act, by }: { id: string; act: Act; by: Step },
  work: (tx: Tx, row: QuestionRow, now: Date) => Promise<Taken | Fault>,
): Promise<QuestionRow | Fault> =>
  deps.sql.begin(async (tx) => {
    const before = await takeQuestion(tx, id);
    if (isFault(before)) return before;
    const at = deps.clock();
    const taken = await work(tx, before, at);
    if (isFault(taken)) return taken;
    const { row, details } = taken;
    if (details !== null) {
      const { admin, reason = null } = by;
      await recordAct(tx, { admin, act, subject: { kind: 'question', id }, reason, details, at });
    }
    await by.keep(tx, row);
    return row;
  });

/** An agent learns what became of what it suggested; nobody else is told of a draft. */
const tellAuthor = async (
  tx: Tx,
  { id, author_id, question }: QuestionRow,
  decision: { kind: 'suggestion.published' | 'suggestion.rejected'; reason?: string; at: Date },
): Promise<void> => {
  if (author_id === null) return;
  const { kind, reason, at } = decision;
  const is_there = kind === 'suggestion.published';
  await notify(tx, [
    {
      ...{ agent_id: author_id, kind, cause: `suggestion:${id}`, subject_id: id, at },
      ...(is_there ? { question_id: id } : {}),
      details: { ...(is_there ? {} : { question }), ...(reason === undefined ? {} : { reason }) },
    },
  ]);
};

/** What was to open before it is published opens now. */
export const publishQuestion = (deps: Deps, id: string, by: Step): Promise<QuestionRow | Fault> =>
  takeStep(deps, { id, act: 'question.publish', by }, async (tx, row, now) => {
    if (row.status === 'draft' && row.closes_at <= now) {
      return refuse(question_faults.INVALID_TRANSITION, {
        message: `It would have closed at ${row.closes_at.toISOString()}; change closes_at first.`,
      });
    }
    const opens_at = row.opens_at > now ? row.opens_at : now;
    const opened = await openDraft(tx, row, { opens_at, at: now });
    if (isFault(opened)) return opened;
    await tellAuthor(tx, row, { kind: 'suggestion.published', at: now });
    return { row: opened, details: {} };
  });

/** open → closed before its time. */
export const closeQuestion = (deps: Deps, id: string, by: Step): Promise<QuestionRow | Fault> =>
  takeStep(deps, { id, act: 'question.close', by }, async (tx, row, now) => {
    if (!(await setClosed(tx, id, now))) return refuseStep(row, 'Only an open question can close');
    await announceClosed(tx, [{ id, question: row.question, closed_at: now }]);
    return { row: await mustRead(tx, id), details: {} };
  });

/** closed → open until a later time, which gets an announcement of its own. */
export const reopenQuestion = (
  deps: Deps,
  id: string,
  { body, ...by }: Step & { readonly body: ReopenBody },
): Promise<QuestionRow | Fault> =>
  takeStep(deps, { id, act: 'question.reopen', by }, async (tx, row, now) => {
    if (row.status !== 'closed') return refuseStep(row, 'Only a closed question can be reopened');
    const dates = reopenDates(row, body, now);
    if ('kind' in dates) return dates;
    if (!(await setReopened(tx, { id, ...dates, at: now }))) {
      throw new Error(`question ${id} changed under its lock`);
    }
    await announceSoon(tx, await markSoon(tx, id, now), now);
    const details = { closes_at: dates.closes_at.toISOString() };
    return { row: await mustRead(tx, id), details };
  });

/** Changes what may be changed in the status the question has. */
export const changeQuestion = async (
  deps: Deps & TaxonomyParts,
  id: string,
  { edit, ...by }: Step & { readonly edit: QuestionEdit },
): Promise<QuestionRow | Fault> => {
  // Read before the row is taken: nothing waits for the taxonomy while it holds a lock.
  await deps.taxonomy.read();
  return takeStep(deps, { id, act: 'question.update', by }, async (tx, row, now) => {
    const question = editQuestion(row, edit, now);
    if ('kind' in question) return question;
    const misplaced = await deps.taxonomy.check(question);
    if (misplaced !== null) return misplaced;
    const changed = changedFields(row, question);
    if (changed.length === 0) return { row, details: null };
    if (!(await updateQuestion(tx, { id, status: row.status, question, at: now }))) {
      throw new Error(`question ${id} changed under its lock`);
    }
    await announceSoon(tx, await markSoon(tx, id, now), now);
    return { row: await mustRead(tx, id), details: { changed } };
  });
};

/** Rejects a suggestion, or drops a draft. What was published is voided instead. */
export const dropDraft = (deps: Deps, id: string, by: Step): Promise<QuestionRow | Fault> =>
  takeStep(deps, { id, act: 'question.reject', by }, async (tx, row, at) => {
    if (await deleteDraft(tx, id)) {
      const reason = by.reason ?? undefined;
      const decision = { kind: 'suggestion.rejected', at } as const;
      await tellAuthor(tx, row, reason === undefined ? decision : { ...decision, reason });
      return { row, details: { question: row.question, author_id: row.author_id } };
    }
    return refuseStep(row, 'Only a draft can be deleted, and a published question can be voided');
  });

/**
 * closed → resolved, or resolved → resolved as a new revision; the row as it is then. That the
 * outcome fits the type and the options is checked by the caller; neither changes after publishing.
 */
export const markResolved = async (
  tx: Tx,
  resolution: Resolution,
): Promise<QuestionRow | Fault> => {
  const row = await takeQuestion(tx, resolution.id);
  if (isFault(row)) return row;
  if (await setResolved(tx, resolution)) return mustRead(tx, row.id);
  return refuseStep(row, 'Only a closed question can be resolved, or a resolved one again');
};

/** open | closed → voided; the row as it is then. */
export const markVoided = async (tx: Tx, voiding: Voiding): Promise<QuestionRow | Fault> => {
  const row = await takeQuestion(tx, voiding.id);
  if (isFault(row)) return row;
  if (await setVoided(tx, voiding)) return mustRead(tx, row.id);
  return refuseStep(row, 'Only an open or a closed question can be voided');
};

const most_a_turn = 200;

/**
 * One turn of the timer: closes questions whose time is up and announces those that close within
 * a day. Rows are taken with `skip locked` and guarded by their status, so any number of timers
 * may run. Returns how many questions changed.
 */
export const turnQuestions = async (deps: Deps): Promise<number> =>
  deps.sql.begin(async (tx) => {
    const now = deps.clock();
    const soon = await markManySoon(tx, now, most_a_turn);
    await announceSoon(tx, soon, now);
    const closed = await closeDue(tx, now, most_a_turn);
    await announceClosed(tx, closed);
    return soon.length + closed.length;
  });
