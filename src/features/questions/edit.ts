import { type Fault, refuse } from '../../kit/fault.js';
import { makeQuestion, type NewQuestion, timeframeOf } from './rules.js';
import {
  type QuestionEdit,
  type QuestionStatus,
  question_faults,
  type ReopenBody,
} from './schema.js';
import type { QuestionRow } from './store.js';

/**
 * What may be changed when, without I/O. A forecast answers a wording, a set of options and a
 * weight, so these stand from publishing on; what explains the question, files it or says when it
 * ends may still be put right while its outcome is open.
 */

type Field = keyof QuestionEdit;

const of_a_draft: readonly Field[] = [
  'question',
  'description',
  'category',
  'subcategory',
  'tags',
  'question_type',
  'options',
  'weight',
  'opens_at',
  'closes_at',
  'resolution_date',
  'resolution_source',
  'resolution_url',
];
const of_a_closed: readonly Field[] = [
  'description',
  'category',
  'subcategory',
  'tags',
  'resolution_date',
  'resolution_source',
  'resolution_url',
];

export const editable: Readonly<Record<QuestionStatus, readonly Field[]>> = {
  draft: of_a_draft,
  open: [...of_a_closed, 'closes_at'],
  closed: of_a_closed,
  resolved: [],
  voided: [],
};

type Edited = Omit<NewQuestion, 'source' | 'source_id'>;

const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

const refuseLocked = (status: QuestionStatus, locked: readonly Field[]): Fault => {
  const allowed = editable[status];
  const rest =
    allowed.length === 0
      ? 'nothing can be changed any more'
      : `${allowed.join(', ')} can be changed`;
  return refuse(question_faults.QUESTION_NOT_EDITABLE, {
    message: `Of a question that is ${status}, ${rest}.`,
    fields: locked.map((name) => ({ path: `body.${name}`, message: `Fixed once ${status}` })),
  });
};

/** The dates after the edit; without a word about it, the resolution is not before the close. */
const mergeDates = (row: QuestionRow, edit: QuestionEdit) => {
  const closes_at = edit.closes_at ?? row.closes_at.toISOString();
  const follows = row.resolution_date < new Date(closes_at);
  const kept = follows ? closes_at : row.resolution_date.toISOString();
  return {
    opens_at: edit.opens_at === undefined ? row.opens_at.toISOString() : edit.opens_at,
    closes_at,
    resolution_date: edit.resolution_date === undefined ? kept : edit.resolution_date,
  };
};

/** Options belong to multi questions: they go when a draft becomes a binary one. */
const mergeOptions = (row: QuestionRow, edit: QuestionEdit): string[] => {
  if (edit.options !== undefined) return edit.options;
  return edit.question_type === 'binary' ? [] : [...row.options];
};

const merge = (row: QuestionRow, edit: QuestionEdit, now: Date): Edited | Fault => {
  const made = makeQuestion(
    {
      question: edit.question ?? row.question,
      description: edit.description ?? row.description,
      category: edit.category ?? row.category,
      subcategory: edit.subcategory === undefined ? row.subcategory : edit.subcategory,
      tags: edit.tags ?? [...row.tags],
      question_type: edit.question_type ?? row.question_type,
      options: mergeOptions(row, edit),
      weight: edit.weight ?? row.weight,
      ...mergeDates(row, edit),
      resolution_source:
        edit.resolution_source === undefined ? row.resolution_source : edit.resolution_source,
      resolution_url: edit.resolution_url === undefined ? row.resolution_url : edit.resolution_url,
    },
    now,
  );
  if ('kind' in made) return made;
  const { source: _source, source_id: _source_id, ...edited } = made;
  return edited;
};

/** The question after the edit, or why it cannot be edited so. What stays as it is, is no edit. */
export const editQuestion = (row: QuestionRow, edit: QuestionEdit, now: Date): Edited | Fault => {
  const edited = merge(row, edit, now);
  if ('kind' in edited) return edited;
  const { status } = row;
  const locked = changedFields(row, edited).filter((name) => !editable[status].includes(name));
  if (locked.length > 0) return refuseLocked(status, locked);
  if (status === 'open' && !isSame(edited.closes_at, row.closes_at) && edited.closes_at <= now) {
    return refuse(question_faults.INVALID_DATES, {
      message: 'closes_at has to be in the future; close the question to end it now.',
      fields: [{ path: 'body.closes_at', message: 'A time in the future' }],
    });
  }
  return edited;
};

/** What an edit changes, by name. */
export const changedFields = (row: QuestionRow, edited: Edited): readonly Field[] =>
  of_a_draft.filter((name) => !isSame(edited[name], row[name]));

/** The dates of a reopened question, or why they are none. */
export const reopenDates = (row: QuestionRow, body: ReopenBody, now: Date) => {
  const closes_at = new Date(body.closes_at);
  const least = row.closes_at > now ? row.closes_at : now;
  if (closes_at <= least) {
    return refuse(question_faults.INVALID_DATES, {
      message: `closes_at has to be later than ${least.toISOString()}.`,
      fields: [{ path: 'body.closes_at', message: `Later than ${least.toISOString()}` }],
    });
  }
  const kept = row.resolution_date > closes_at ? row.resolution_date : closes_at;
  const resolution_date = body.resolution_date == null ? kept : new Date(body.resolution_date);
  if (resolution_date < closes_at) {
    const message = `resolution_date must not be before closes_at, ${closes_at.toISOString()}.`;
    const fields = [{ path: 'body.resolution_date', message }];
    return refuse(question_faults.INVALID_DATES, { message, fields });
  }
  return { closes_at, resolution_date, timeframe: timeframeOf(row.opens_at, resolution_date) };
};
