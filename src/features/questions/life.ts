import type { Tx } from '../../db/client.js';
import { emit, emitAll } from '../../db/event.js';
import { type Caller, isAdmin } from '../../http/caller.js';
import type { Deps } from '../../http/deps.js';
import { type Fault, isFault, refuse } from '../../kit/fault.js';
import { makeLoop } from '../../kit/loop.js';
import type { Service } from '../../kit/service.js';
import { recordAct } from '../audit/index.js';
import type { Act } from '../audit/schema.js';
import {
  question_closed,
  question_closing_soon,
  question_created,
  question_reopened,
  question_updated,
} from '../events/catalogue.js';
import type { Projector } from '../events/index.js';
import { readData } from '../events/log-entry.js';
import { type Notice, notify } from '../notifications/index.js';
import type { TaxonomyParts } from '../taxonomy/index.js';
import { showRange } from './range.js';
import * as rules from './rules.js';
import * as wire from './schema.js';
import * as store from './store.js';

/**
 * The life of a question:
 *
 *   draft ──publish──▶ open ──close, or the timer at closes_at──▶ closed ──resolve──▶ resolved
 *     │                 │ ◀──────reopen with a later closes_at─────┘ │               ▲ │
 *     └─▶ deleted       └──────────────void──────────────────────────┴─▶ voided ◀────┴─┘
 *
 * A decision can be corrected: a resolved question can be resolved again or voided, and a voided
 * one can be resolved. Each decision is a new revision.
 *
 * Each step is one transaction. It locks and checks the question, and writes the event, if any.
 *
 * Another feature that ends a question calls `markResolved` or `markVoided` in its own transaction
 * and `questions.forget` after the commit. Other processes may use their cached copy for a moment
 * longer, so the commit of a prediction checks the status again.
 */

interface Rule {
  readonly from: readonly wire.QuestionStatus[];
  /** First words of the error message if the question has another status. */
  readonly rule: string;
}

/** Locks the question until the end of the transaction. Checks that its status allows the step. */
const takeQuestion = async (tx: Tx, id: string, step: Rule): Promise<store.QuestionRow | Fault> => {
  const row = await store.lockQuestion(tx, id);
  if (row === undefined) return refuse(wire.question_faults.QUESTION_NOT_FOUND);
  if (step.from.includes(row.status)) return row;
  const message = `${step.rule}. This one is ${row.status}.`;
  return refuse(wire.question_faults.INVALID_TRANSITION, { message });
};

const announceSoon = async (tx: Tx, id: string | null, at: Date): Promise<number> => {
  const endings = await store.markSoon(tx, id, at);
  const drafts = endings.map(({ id: question_id, question, closes_at }) => ({
    at,
    scope: { question_id },
    data: { question_id, question, closes_at: closes_at.toISOString() },
  }));
  await emitAll(tx, question_closing_soon, drafts);
  return endings.length;
};

const announceClosed = (tx: Tx, closed: readonly store.Ending[], at: Date) => {
  const closed_at = at.toISOString();
  const drafts = closed.map(({ id: question_id, question }) => {
    return { at, scope: { question_id }, data: { question_id, question, closed_at } };
  });
  return emitAll(tx, question_closed, drafts);
};

/** draft → open with its event, and with the announcement if the question closes within a day. */
const openDraft = async (tx: Tx, row: store.QuestionRow, opens_at: Date, at: Date) => {
  const { id } = row;
  const timeframe = rules.timeframeOf(opens_at, row.resolution_date);
  const change = { status: 'open', opens_at, timeframe, published_at: at, updated_at: at } as const;
  const opened = await store.updateQuestion(tx, id, change);
  const { question, category, subcategory, tags, question_type, options } = opened;
  const range = showRange(opened);
  await emit(tx, question_created, {
    at,
    scope: { question_id: id },
    data: {
      question_id: id,
      question,
      category,
      subcategory,
      tags,
      question_type,
      options,
      ...(range === null ? {} : { range }),
      opens_at: opened.opens_at.toISOString(),
      closes_at: opened.closes_at.toISOString(),
    },
  });
  await announceSoon(tx, id, at);
  return opened;
};

/** Turns a draft into a question and checks it against the current taxonomy. */
export const checkDraft = async (
  { taxonomy, clock }: Deps & TaxonomyParts,
  draft: wire.QuestionDraft,
): Promise<rules.NewQuestion | Fault> => {
  const question = rules.makeQuestion(draft, clock());
  if (isFault(question)) return question;
  return (await taxonomy.check(question)) ?? question;
};

interface Creation {
  readonly admin: string;
  readonly act: 'question.create' | 'question.import';
  readonly publish: boolean | undefined;
  readonly at: Date;
}

/** Stores a question as a draft, and publishes it if `publish` is true. */
export const createQuestion = async (
  tx: Tx,
  question: rules.NewQuestion,
  { admin, act, publish, at }: Creation,
): Promise<store.Created> => {
  const { row, created } = await store.insertQuestion(tx, question, null);
  if (!created) return { row, created };
  const made = publish === true ? await openDraft(tx, row, row.opens_at, at) : row;
  const subject = { kind: 'question', id: row.id };
  await recordAct(tx, { admin, act, subject, details: { status: made.status }, at });
  return { row: made, created };
};

/** Maximum number of an agent's suggestions that wait for review. */
export const max_suggestions = 20;

/** Checks the question that an agent suggests. Its weight and source are ignored. */
export const checkSuggestion = async (
  deps: Deps & TaxonomyParts,
  suggestion: wire.QuestionDraft,
): Promise<rules.NewQuestion | Fault> => {
  const draft = { ...suggestion, weight: 1, source: null, source_id: null };
  const question = await checkDraft(deps, draft);
  if (isFault(question)) return question;
  return rules.checkEnd(draft, question.closes_at, deps.clock()) ?? question;
};

/** Stores a suggestion as a draft, which its author sees and admins review. */
export const suggestQuestion = async (
  tx: Tx,
  question: rules.NewQuestion,
  { agent_id, at }: { readonly agent_id: string; readonly at: Date },
): Promise<store.QuestionRow | Fault> => {
  const drafts = await store.countDraftsLocked(tx, agent_id, at);
  if (drafts >= max_suggestions) {
    const message = `${drafts} of your suggestions are waiting for review. Suggest more when they are decided.`;
    return refuse(wire.question_faults.SUGGESTION_LIMIT_REACHED, { message });
  }
  return (await store.insertQuestion(tx, question, agent_id)).row;
};

/** The question after a step, and details for the audit log (null if nothing changed). */
interface StepResult {
  readonly row: store.QuestionRow;
  readonly details: Readonly<Record<string, unknown>> | null;
}

/** A step that an admin takes. `B` is the type of the request body. */
export interface Step<B = unknown> extends Rule {
  readonly act: Act;
  work(tx: Tx, row: store.QuestionRow, call: { at: Date; body: B }): Promise<StepResult | Fault>;
}

interface StepCall<B> {
  readonly id: string;
  readonly admin: string;
  readonly body?: B;
  readonly reason?: string | null;
}

/** Locks and checks the question, takes the step, and writes it to the audit log. */
export const takeStep = async <B>(
  tx: Tx,
  step: Step<B>,
  { id, body, admin, reason = null, clock }: StepCall<B> & Pick<Deps, 'clock'>,
): Promise<store.QuestionRow | Fault> => {
  const before = await takeQuestion(tx, id, step);
  if (isFault(before)) return before;
  const at = clock();
  const taken = await step.work(tx, before, { at, body: body as B });
  if (isFault(taken)) return taken;
  const { row, details } = taken;
  if (details !== null) {
    const subject = { kind: 'question', id };
    await recordAct(tx, { admin, act: step.act, subject, reason, details, at });
  }
  return row;
};

/** Notifies the author about the decision on a suggestion. No one else is notified about drafts. */
const notifyAuthor = async (
  tx: Tx,
  { id, author_id }: store.QuestionRow,
  notice: Pick<Notice, 'kind' | 'question_id' | 'details' | 'at'>,
): Promise<void> => {
  if (author_id === null) return;
  const about = { agent_id: author_id, cause: `suggestion:${id}`, subject_id: id };
  await notify(tx, [{ ...about, ...notice }]);
};

/** draft → open. If the opening time has passed, the question opens now. */
export const publish: Step = {
  act: 'question.publish',
  from: ['draft'],
  rule: 'Only a draft can be published',
  async work(tx, row, { at }) {
    if (row.closes_at <= at) {
      return refuse(wire.question_faults.INVALID_TRANSITION, {
        message: `The closing time has passed (${row.closes_at.toISOString()}). Change closes_at first.`,
      });
    }
    const opened = await openDraft(tx, row, row.opens_at > at ? row.opens_at : at, at);
    await notifyAuthor(tx, row, { kind: 'suggestion.published', question_id: row.id, at });
    return { row: opened, details: {} };
  },
};

/** open → closed before `closes_at`. */
export const close: Step = {
  act: 'question.close',
  from: ['open'],
  rule: 'Only an open question can be closed',
  async work(tx, before, { at }) {
    const change = { status: 'closed', closed_at: at, updated_at: at } as const;
    const row = await store.updateQuestion(tx, before.id, change);
    await announceClosed(tx, [row], at);
    return { row, details: {} };
  },
};

/** closed → open until a later time. That time is announced like the first one. */
export const reopen: Step<wire.ReopenBody> = {
  act: 'question.reopen',
  from: ['closed'],
  rule: 'Only a closed question can be reopened',
  async work(tx, before, { at, body }) {
    const dates = rules.reopenDates(before, body, at);
    if (isFault(dates)) return dates;
    await store.noteClosedTime(tx, before.id, at);
    const row = await store.updateQuestion(tx, before.id, {
      ...dates,
      status: 'open',
      closed_at: null,
      closing_soon_at: null,
      updated_at: at,
    });
    const closes_at = row.closes_at.toISOString();
    await emit(tx, question_reopened, {
      at,
      scope: { question_id: row.id },
      data: { question_id: row.id, question: row.question, closes_at },
    });
    await announceSoon(tx, row.id, at);
    return { row, details: { closes_at } };
  },
};

/** Edits the fields that the status allows. A new closing time is announced again. */
export const edit = ({ taxonomy }: TaxonomyParts): Step<wire.QuestionEdit> => ({
  act: 'question.update',
  from: wire.statuses,
  rule: '',
  async work(tx, before, { at, body }) {
    const question = rules.editQuestion(before, body, at);
    if (isFault(question)) return question;
    const misplaced = await taxonomy.check(question);
    if (misplaced !== null) return misplaced;
    const changed = rules.changedFields(before, question);
    if (changed.length === 0) return { row: before, details: null };
    if (changed.includes('options'))
      await store.resetCounts(tx, before.id, question.options.length);
    const row = await store.updateQuestion(tx, before.id, {
      ...question,
      ...(changed.includes('closes_at') ? { closing_soon_at: null } : {}),
      updated_at: at,
    });
    if (row.status !== 'draft') {
      const { id: question_id, question: text } = row;
      const closes_at = row.closes_at.toISOString();
      const data = { question_id, question: text, changed: [...changed], closes_at };
      await emit(tx, question_updated, { at, scope: { question_id }, data });
    }
    await announceSoon(tx, row.id, at);
    return { row, details: { changed } };
  },
});

/** Rejects a suggestion, or deletes a draft. A published question can only be voided. */
export const drop: Step<{ readonly reason: string | null }> = {
  act: 'question.reject',
  from: ['draft'],
  rule: 'Only a draft can be deleted (a published question can be voided)',
  async work(tx, row, { at, body }) {
    await store.deleteDraft(tx, row.id);
    const { question, author_id } = row;
    const reason = body.reason === null ? {} : { reason: body.reason };
    await notifyAuthor(tx, row, {
      kind: 'suggestion.rejected',
      details: { question, ...reason },
      at,
    });
    return { row, details: { question, author_id } };
  },
};

interface Ended extends Pick<store.QuestionRow, 'id'> {
  readonly note: string | null;
  readonly at: Date;
}

/** Ends a question as a new revision, and returns the changed row. */
const endQuestion = async (
  tx: Tx,
  { id, note, at }: Ended,
  { from, rule, ...change }: Rule & Parameters<typeof store.updateQuestion>[2],
): Promise<store.QuestionRow | Fault> => {
  const row = await takeQuestion(tx, id, { from, rule });
  if (isFault(row)) return row;
  return store.updateQuestion(tx, id, {
    ...change,
    // This also closes an open question, so scoring ends now even if another decision follows.
    ...(row.status === 'open' ? { closed_at: at } : {}),
    resolution_note: note,
    revision: row.revision + 1,
    updated_at: at,
  });
};

/** The statuses that can change to resolved, and the error message for the others. */
export const resolving: Rule = {
  from: ['closed', 'resolved', 'voided'],
  rule: 'Only a closed, resolved or voided question can be resolved',
};

/**
 * closed | resolved | voided → resolved as a new revision. The caller checks that the outcome fits
 * the type and the options, which do not change after publishing.
 */
export const markResolved = (
  tx: Tx,
  {
    outcome,
    correct_options,
    outcome_value,
    ...ended
  }: Ended & Pick<store.QuestionRow, 'outcome' | 'correct_options' | 'outcome_value'>,
) =>
  endQuestion(tx, ended, {
    ...resolving,
    status: 'resolved',
    voided_at: null,
    outcome,
    correct_options,
    outcome_value,
    resolved_at: ended.at,
  });

/** open | closed | resolved → voided. Like a resolution, this is a new revision. */
export const markVoided = (tx: Tx, ended: Ended) =>
  endQuestion(tx, ended, {
    from: ['open', 'closed', 'resolved'],
    rule: 'Only an open, closed or resolved question can be voided',
    status: 'voided',
    outcome: null,
    correct_options: null,
    outcome_value: null,
    resolved_at: null,
    voided_at: ended.at,
  });

/**
 * Runs one turn of the timer: announces questions that close within a day, and closes questions
 * that are due. Any number of timers may run. Returns how many questions changed.
 */
export const turnQuestions = async (deps: Deps): Promise<number> =>
  deps.sql.begin(async (tx) => {
    const now = deps.clock();
    const announced = await announceSoon(tx, null, now);
    const closed = await store.closeDue(tx, now);
    await announceClosed(tx, closed, now);
    return announced + closed.length;
  });

export const createQuestionTimer = (deps: Deps, every_ms = 1_000): Service =>
  makeLoop({
    name: 'question timer',
    log: deps.log,
    every_ms,
    turn: async () => ((await turnQuestions(deps)) >= store.max_per_turn ? 'again' : 'rest'),
  });

/**
 * The counters of questions follow the log. They change in the transaction that gives events their
 * offsets, once per batch and question, so predictions never wait for them.
 */
export const question_counts: Projector = {
  name: 'question counters',
  async record(tx, entries) {
    const counted = entries.flatMap((entry): store.Counted[] => {
      const { event, question_id, offset } = entry;
      if (question_id === null) return [];
      const one = { question_id, offset };
      if (event === 'comment.created') return [{ question_id, comments: 1 }];
      if (event === 'prediction.placed') {
        return [{ ...one, predictions: 1, forecasts: 1, ...readData(entry) }];
      }
      if (event !== 'prediction.revised') return [];
      const { previous, ...data } = readData(entry);
      return [
        { ...one, forecasts: 1, ...data },
        { ...one, forecasts: -1, ...(previous as object) },
      ];
    });
    if (counted.length > 0) await store.addCounts(tx, counted);
  },
};

/** Reads a question if the caller may see it. Only admins and the author can see a draft. */
export const findVisible = async (
  { questions }: store.QuestionParts,
  id: string,
  caller: Caller,
) => {
  const row = await questions.read(id);
  if (row === undefined) return refuse(wire.question_faults.QUESTION_NOT_FOUND);
  if (row.status !== 'draft' || isAdmin(caller)) return row;
  if (caller.kind === 'agent' && caller.id === row.author_id) return row;
  return refuse(wire.question_faults.QUESTION_NOT_FOUND);
};
