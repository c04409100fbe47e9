import type { Static } from '@sinclair/typebox';
import { type Fault, isFault, refuse, refuseFields } from '../../kit/fault.js';
import { foldName } from '../../kit/names.js';
import { countCharacters, hasControls, normaliseText, toLine } from '../../kit/text.js';
import { nounOf, type RangeColumns, readValue, showRange } from './range.js';
import * as wire from './schema.js';

/** Rules for new questions, for edits, and for the time in which predictions are accepted. */

const day_ms = 86_400_000;

/** short: less than 7 days from opening to resolution; mid: less than 30; else long. */
export const timeframeOf = (opens_at: Date, resolution_date: Date): 'short' | 'mid' | 'long' => {
  const days = (resolution_date.getTime() - opens_at.getTime()) / day_ms;
  if (days < 7) return 'short';
  return days < 30 ? 'mid' : 'long';
};

const shownOrNone = (text: string | null | undefined): string | null =>
  text == null ? null : normaliseText(text);

/** Rejects options that look alike, and options without visible characters. */
export const refuseAlike = (options: readonly string[]): Fault | null => {
  const refuseOptions = (message: string): Fault =>
    refuse(wire.question_faults.INVALID_OPTIONS, {
      message,
      fields: [{ path: 'body.options', message }],
    });
  const seen = new Map<string, string>();
  for (const option of options) {
    const fold = foldName(option);
    if (fold === '') return refuseOptions('An option must have visible characters.');
    const other = seen.get(fold);
    if (other === option) return refuseOptions(`The option “${option}” appears twice.`);
    if (other !== undefined) {
      return refuseOptions(
        `The options “${other}” and “${option}” are too alike. They must differ in more than case, ` +
          'spaces, width and invisible characters.',
      );
    }
    seen.set(fold, option);
  }
  return null;
};

const checkOptions = (draft: wire.QuestionDraft): string[] | Fault => {
  const options = (draft.options ?? []).map(toLine);
  if (draft.question_type !== 'multi') {
    if (options.length === 0) return [];
    return refuse(wire.question_faults.INVALID_OPTIONS, {
      message: 'Only a question of type "multi" can have options.',
      fields: [{ path: 'body.options', message: 'must be empty unless question_type is "multi"' }],
    });
  }
  if (options.length < 2) {
    const fields = [{ path: 'body.options', message: 'must have 2 to 10 different texts' }];
    return refuse(wire.question_faults.INVALID_OPTIONS, { fields });
  }
  return refuseAlike(options) ?? options;
};

const refuseDate = (name: 'closes_at' | 'resolution_date', message: string): Fault =>
  refuse(wire.question_faults.INVALID_DATES, {
    message,
    fields: [{ path: `body.${name}`, message }],
  });

/** Either closes_at or resolution_date may be missing. Each is the default of the other. */
const endOf = ({ closes_at, resolution_date }: wire.QuestionDraft) =>
  closes_at == null
    ? ({ name: 'resolution_date', text: resolution_date ?? null } as const)
    : ({ name: 'closes_at', text: closes_at } as const);

/** Returns null if the question ends after `now`. */
export const checkEnd = (draft: wire.QuestionDraft, closes_at: Date, now: Date): Fault | null => {
  if (closes_at > now) return null;
  const { name } = endOf(draft);
  const [end, least] = [closes_at.toISOString(), now.toISOString()];
  return refuseDate(name, `${name} is in the past (${end}). It must be later than ${least}.`);
};

const checkOpening = (draft: wire.QuestionDraft, closes_at: Date, opens_at: Date): Fault | null => {
  if (closes_at > opens_at) return null;
  const { name } = endOf(draft);
  const least = opens_at.toISOString();
  return refuseDate(name, `${name} must be later than opens_at (${least}).`);
};

const checkResolution = (resolution_date: Date, closes_at: Date): Fault | null => {
  if (resolution_date >= closes_at) return null;
  const least = closes_at.toISOString();
  return refuseDate('resolution_date', `resolution_date must not be before closes_at (${least}).`);
};

const checkDates = (draft: wire.QuestionDraft, now: Date) => {
  const { text } = endOf(draft);
  if (text === null) {
    const message = 'is required if there is no resolution_date';
    return refuseFields(
      [{ path: 'body.closes_at', message }],
      'Say when the question ends. Send closes_at or resolution_date.',
    );
  }
  const closes_at = new Date(text);
  const opens_at = draft.opens_at == null ? now : new Date(draft.opens_at);
  const resolution_date = new Date(draft.resolution_date ?? text);
  const check = draft.opens_at == null ? checkEnd : checkOpening;
  const wrong = check(draft, closes_at, opens_at) ?? checkResolution(resolution_date, closes_at);
  return wrong ?? { opens_at, closes_at, resolution_date };
};

const misfit = (path: string, text: string, min: number, max: number) => {
  const length = countCharacters(text);
  if (length >= min && length <= max) return [];
  const range = min === 0 ? `at most ${max}` : `${min} to ${max}`;
  return [{ path, message: `must have ${range} characters, not ${length}` }];
};

/** Takes normalised texts, because normalisation can make a text longer. */
const checkTexts = (question: string, description: string, options: string[]): Fault | null => {
  const fields = [
    ...misfit('body.question', question, 10, 500),
    ...misfit('body.description', description, 0, 10_000),
    ...options.flatMap((text, n) => misfit(`body.options.${n}`, text, 1, 100)),
  ];
  const first = fields[0];
  if (first === undefined) return null;
  const name = first.path.replace('body.', '');
  return refuseFields(fields, `${name} ${first.message}.`);
};

/** The pair identifies a question, so control characters are rejected, not removed. */
const checkSource = ({ source = null, source_id = null }: wire.QuestionDraft): Fault | null => {
  const together = 'Send both source and source_id, or neither.';
  if ((source === null) !== (source_id === null)) {
    const path = source === null ? 'body.source' : 'body.source_id';
    return refuseFields([{ path, message: 'is required with the other' }], together);
  }
  const fields = Object.entries({ source, source_id }).flatMap(([name, text]) =>
    hasControls(text ?? '') ? [{ path: `body.${name}`, message: 'must be printable' }] : [],
  );
  return fields.length === 0 ? null : refuseFields(fields);
};

/** Turns a draft into a question that can be stored, or returns the fault. */
export const makeQuestion = (draft: wire.QuestionDraft, now: Date) => {
  const options = checkOptions(draft);
  if (isFault(options)) return options;
  const range = checkRange(draft);
  if (isFault(range)) return range;
  const dates = checkDates(draft, now);
  if (isFault(dates)) return dates;
  const question = toLine(draft.question);
  const description = normaliseText(draft.description ?? '').trim();
  const misfitting = checkTexts(question, description, options) ?? checkSource(draft);
  if (misfitting !== null) return misfitting;
  return {
    question,
    description,
    category: draft.category,
    subcategory: draft.subcategory ?? null,
    tags: [...new Set((draft.tags ?? []).map(toLine))],
    question_type: draft.question_type ?? 'binary',
    options,
    ...range,
    timeframe: timeframeOf(dates.opens_at, dates.resolution_date),
    weight: draft.weight ?? 1,
    ...dates,
    resolution_source: shownOrNone(draft.resolution_source),
    resolution_url: shownOrNone(draft.resolution_url),
    source: draft.source ?? null,
    source_id: draft.source_id ?? null,
  };
};

/** A question before it is stored, without an id and a status. */
export type NewQuestion = Readonly<Exclude<ReturnType<typeof makeQuestion>, Fault>>;

/** Returns why a question does not accept predictions at `now`; null if it accepts them. */
export const whyNotOpen = (
  question: {
    readonly status: wire.QuestionStatus;
    readonly opens_at: Date;
    readonly closes_at: Date;
  },
  now: Date,
): string | null => {
  if (question.status !== 'open') return `The question is ${question.status}.`;
  if (now < question.opens_at) return `The question opens at ${question.opens_at.toISOString()}.`;
  if (now >= question.closes_at) {
    return `The question closed at ${question.closes_at.toISOString()}.`;
  }
  return null;
};

/**
 * The fields that can change in each status. A forecast depends on the wording, the options and the
 * weight, so these are fixed after publishing. Fields that explain or classify the question, or say
 * when it ends, can be corrected until it is resolved or voided.
 */
type Field = keyof wire.QuestionEdit;

const all_fields = Object.keys(wire.question_edit.properties) as Field[];
const of_a_closed: readonly Field[] = [
  'description',
  'category',
  'subcategory',
  'tags',
  'resolution_date',
  'resolution_source',
  'resolution_url',
];

export const editable: Readonly<Record<wire.QuestionStatus, readonly Field[]>> = {
  draft: all_fields,
  open: [...of_a_closed, 'closes_at'],
  closed: of_a_closed,
  resolved: [],
  voided: [],
};

type Stored = NewQuestion & { readonly status: wire.QuestionStatus };

const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

export const changedFields = (row: NewQuestion, edited: NewQuestion): readonly Field[] =>
  all_fields.filter((name) => {
    const of = (question: NewQuestion) => (name === 'range' ? showRange(question) : question[name]);
    return !isSame(of(edited), of(row));
  });

/** Completes an edit. A later close may move the resolution. A new type drops options and range. */
const merge = (row: Stored, edit: wire.QuestionEdit): wire.QuestionDraft => {
  const closes_at = edit.closes_at ?? row.closes_at.toISOString();
  const is_retyped = (edit.question_type ?? row.question_type) !== row.question_type;
  const follows = row.resolution_date < new Date(closes_at);
  return {
    ...row,
    options: is_retyped ? [] : row.options,
    range: is_retyped ? null : showRange(row),
    opens_at: row.opens_at.toISOString(),
    resolution_date: follows ? closes_at : row.resolution_date.toISOString(),
    ...edit,
    closes_at,
    source: row.source,
    source_id: row.source_id,
  };
};

export const editQuestion = (
  row: Stored,
  edit: wire.QuestionEdit,
  now: Date,
): NewQuestion | Fault => {
  const edited = makeQuestion(merge(row, edit), now);
  if (isFault(edited)) return edited;
  const { status } = row;
  const allowed = editable[status];
  const locked = changedFields(row, edited).filter((name) => !allowed.includes(name));
  if (locked.length > 0) {
    const names = allowed.join(', ') || 'none';
    return refuse(wire.question_faults.QUESTION_NOT_EDITABLE, {
      message: `The question is ${status}. Fields that can be changed: ${names}.`,
      fields: locked.map((name) => ({ path: `body.${name}`, message: 'cannot be changed now' })),
    });
  }
  if (status === 'open' && !isSame(edited.closes_at, row.closes_at) && edited.closes_at <= now) {
    const message = 'closes_at must be in the future. Close the question to end it now.';
    return refuseDate('closes_at', message);
  }
  return edited;
};

/** Returns the dates of a reopened question, or why they are invalid. */
export const reopenDates = (row: NewQuestion, body: wire.ReopenBody, now: Date) => {
  const closes_at = new Date(body.closes_at);
  const least = row.closes_at > now ? row.closes_at : now;
  if (closes_at <= least) {
    return refuseDate('closes_at', `closes_at must be later than ${least.toISOString()}.`);
  }
  const kept = row.resolution_date > closes_at ? row.resolution_date : closes_at;
  const resolution_date = body.resolution_date == null ? kept : new Date(body.resolution_date);
  const timeframe = timeframeOf(row.opens_at, resolution_date);
  return checkResolution(resolution_date, closes_at) ?? { closes_at, resolution_date, timeframe };
};

const longest_unit = 40;
const no_range = { range_min: null, range_max: null, unit: null, open_min: false, open_max: false };

const refuseRange = (name: string, message: string): Fault =>
  refuse(wire.question_faults.INVALID_RANGE, {
    message,
    fields: [{ path: `body.range${name}`, message }],
  });

interface RangeDraft {
  readonly question_type?: string;
  readonly range?: Static<typeof wire.range_schema> | null;
}

export const checkRange = ({
  question_type = 'binary',
  range,
}: RangeDraft): RangeColumns | Fault => {
  const is_date = question_type === 'date';
  if (!is_date && question_type !== 'numeric') {
    if (range == null) return no_range;
    return refuseRange('', 'Only a question of type "numeric" or "date" can have a range.');
  }
  if (range == null) return refuseRange('', 'Give the question a range with min and max.');
  const [range_min, range_max] = [readValue(range.min, is_date), readValue(range.max, is_date)];
  for (const [name, value] of Object.entries({ min: range_min, max: range_max })) {
    if (value === null) return refuseRange(`.${name}`, `${name} must be ${nounOf({ is_date })}.`);
  }
  if (!(range_min! < range_max!) || !Number.isFinite(range_max! - range_min!)) {
    return refuseRange('.max', 'max must be greater than min.');
  }
  const unit = toLine(range.unit ?? '');
  if (is_date && unit !== '') return refuseRange('.unit', 'A date must not have a unit.');
  if (countCharacters(unit) > longest_unit) {
    return refuseRange('.unit', `A unit must have at most ${longest_unit} characters.`);
  }
  return {
    range_min,
    range_max,
    unit: unit === '' ? null : unit,
    open_min: range.open_min ?? false,
    open_max: range.open_max ?? false,
  };
};
