import { common_faults, type Fault, refuse } from '../../kit/fault.js';
import { countCharacters, hasControls, normaliseText, withoutControls } from '../../kit/text.js';
import { type QuestionDraft, type QuestionStatus, question_faults } from './schema.js';

/** Rules of a question's life, without I/O and without a clock of their own. */

const day_ms = 86_400_000;

/** short: less than 7 days from opening to resolution; mid: less than 30; else long. */
export const timeframeOf = (opens_at: Date, resolution_date: Date): 'short' | 'mid' | 'long' => {
  const days = (resolution_date.getTime() - opens_at.getTime()) / day_ms;
  if (days < 7) return 'short';
  return days < 30 ? 'mid' : 'long';
};

export interface NewQuestion {
  readonly question: string;
  readonly description: string;
  readonly category: string;
  readonly subcategory: string | null;
  readonly tags: readonly string[];
  readonly question_type: 'binary' | 'multi';
  readonly options: readonly string[];
  readonly timeframe: 'short' | 'mid' | 'long';
  readonly weight: number;
  readonly opens_at: Date;
  readonly closes_at: Date;
  readonly resolution_date: Date;
  readonly resolution_source: string | null;
  readonly resolution_url: string | null;
  readonly source: string | null;
  readonly source_id: string | null;
}

const tidy = (text: string): string => normaliseText(text).trim();
const shownOrNone = (text: string | null | undefined): string | null =>
  text == null ? null : withoutControls(text);

const checkOptions = (draft: QuestionDraft): readonly string[] | Fault => {
  const options = (draft.options ?? []).map(tidy);
  if ((draft.question_type ?? 'binary') === 'binary') {
    if (options.length === 0) return [];
    return refuse(question_faults.INVALID_OPTIONS, {
      message: 'A binary question has no options; use question_type "multi" to give some.',
      fields: [{ path: 'body.options', message: 'Only for question_type "multi"' }],
    });
  }
  const different = new Set(options.map((option) => option.toLowerCase()));
  if (options.length >= 2 && different.size === options.length && !options.includes('')) {
    return options;
  }
  const fields = [{ path: 'body.options', message: '2 to 10 different, non-empty texts' }];
  return refuse(question_faults.INVALID_OPTIONS, { fields });
};

const refuseDate = (name: 'closes_at' | 'resolution_date', message: string): Fault =>
  refuse(question_faults.INVALID_DATES, { message, fields: [{ path: `body.${name}`, message }] });

export const refusePast = (name: 'closes_at' | 'resolution_date', time: Date, now: Date): Fault =>
  refuseDate(
    name,
    `${name} is in the past (${time.toISOString()}); it has to be later than ${now.toISOString()}.`,
  );

/** Of the end and the resolution one is enough: it is the other's default. */
const checkDates = (draft: QuestionDraft, now: Date) => {
  const ends = draft.closes_at ?? draft.resolution_date ?? null;
  if (ends === null) {
    const message = 'is required where there is no resolution_date';
    return refuse(common_faults.INVALID_REQUEST, {
      message: 'Say until when the question takes predictions: send closes_at or resolution_date.',
      fields: [{ path: 'body.closes_at', message }],
    });
  }
  const closes_at = new Date(ends);
  const opens_at = draft.opens_at == null ? now : new Date(draft.opens_at);
  const resolution_date = new Date(draft.resolution_date ?? ends);
  if (opens_at < closes_at && closes_at <= resolution_date) {
    return { opens_at, closes_at, resolution_date };
  }
  if (opens_at < closes_at) {
    const least = closes_at.toISOString();
    return refuseDate('resolution_date', `resolution_date must not be before closes_at, ${least}.`);
  }
  const name = draft.closes_at == null ? 'resolution_date' : 'closes_at';
  if (draft.opens_at == null) return refusePast(name, closes_at, now);
  return refuseDate(name, `${name} has to be later than opens_at, ${draft.opens_at}.`);
};

/** Characters after tidying: the normal form of a text can be longer than the text. */
export const text_limits = {
  question: { min: 10, max: 500 },
  description: { min: 0, max: 10_000 },
  option: { min: 1, max: 100 },
} as const;

const misfit = (text: string, path: string, { min, max }: { min: number; max: number }) => {
  const length = countCharacters(text);
  if (length >= min && length <= max) return [];
  const range = min === 0 ? `At most ${max}` : `${min} to ${max}`;
  return [{ path, message: `${range} characters after trimming, not ${length}` }];
};

const checkTexts = (
  question: string,
  description: string,
  options: readonly string[],
): Fault | null => {
  const fields = [
    ...misfit(question, 'body.question', text_limits.question),
    ...misfit(description, 'body.description', text_limits.description),
    ...options.flatMap((text, n) => misfit(text, `body.options.${n}`, text_limits.option)),
  ];
  const first = fields[0];
  if (first === undefined) return null;
  const name = first.path.replace('body.', '');
  return refuse(common_faults.INVALID_REQUEST, {
    message: `The length of ${name} is not right: ${first.message}.`,
    fields,
  });
};

/** By these a question is found again, so they stay as they are or are refused. */
const checkSource = ({ source, source_id }: QuestionDraft): Fault | null => {
  const fields = Object.entries({ source, source_id }).flatMap(([name, text]) =>
    hasControls(text ?? '') ? [{ path: `body.${name}`, message: 'No control characters' }] : [],
  );
  return fields.length === 0 ? null : refuse(common_faults.INVALID_REQUEST, { fields });
};

/** Turns what was stated into a question that the store takes, or says what is wrong with it. */
export const makeQuestion = (draft: QuestionDraft, now: Date): NewQuestion | Fault => {
  const options = checkOptions(draft);
  if ('kind' in options) return options;
  const dates = checkDates(draft, now);
  if ('kind' in dates) return dates;
  const question = tidy(draft.question);
  const description = tidy(draft.description ?? '');
  const misfitting = checkTexts(question, description, options) ?? checkSource(draft);
  if (misfitting !== null) return misfitting;
  return {
    question,
    description,
    category: draft.category,
    subcategory: draft.subcategory ?? null,
    tags: [...new Set(draft.tags ?? [])],
    question_type: draft.question_type ?? 'binary',
    options,
    timeframe: timeframeOf(dates.opens_at, dates.resolution_date),
    weight: draft.weight ?? 1,
    ...dates,
    resolution_source: shownOrNone(draft.resolution_source),
    resolution_url: shownOrNone(draft.resolution_url),
    source: draft.source ?? null,
    source_id: draft.source_id ?? null,
  };
};

/** Why a question takes no predictions at `now`; null when it does. */
export const whyNotOpen = (
  question: { readonly status: QuestionStatus; readonly opens_at: Date; readonly closes_at: Date },
  now: Date,
): string | null => {
  if (question.status !== 'open') return `The question is ${question.status}.`;
  if (now < question.opens_at) return `The question opens at ${question.opens_at.toISOString()}.`;
  if (now >= question.closes_at) {
    return `The question closed at ${question.closes_at.toISOString()}.`;
  }
  return null;
};
