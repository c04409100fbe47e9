import { createHash } from 'node:crypto';
import type { SourceRecord } from './records.js';

/**
 * Items in the form that the service takes, made from records with the import's field names. A
 * record says by `type` what it is: a question (without one), an agent, a forecast or a resolution.
 * Text of a CSV cell becomes what the field needs. The service checks all the rest.
 */

export const record_types = ['question', 'agent', 'forecast', 'resolution'] as const;
export type RecordType = (typeof record_types)[number];

export type Item = Readonly<Record<string, unknown>>;

/** An item, or everything that is wrong with the record. */
export type Made =
  | { readonly item: Item; readonly notices: readonly string[] }
  | { readonly problems: readonly string[] };

export interface ItemOptions {
  /** Pillar of each subcategory, so that a record need not name both. */
  readonly pillars: ReadonlyMap<string, string>;
  /** Publish what does not say itself whether it is to be published. */
  readonly publish: boolean;
}

/** Why a value cannot be read. */
class Unreadable extends Error {}

/** Brings a value from JSON, or the text of a CSV cell, to what a field holds. */
type Reader = (name: string, value: unknown) => unknown;

const show = (value: unknown): string => JSON.stringify(value)?.slice(0, 60) ?? String(value);
const refuse = (name: string, value: unknown, what: string): never => {
  throw new Unreadable(`${name} is ${show(value)} and not ${what}`);
};

const readText = (name: string, value: unknown): string => {
  if (typeof value !== 'string' && typeof value !== 'number') refuse(name, value, 'a text');
  const text = String(value).trim();
  if (!text.includes('\0') && text.isWellFormed()) return text;
  throw new Unreadable(
    `${name} holds characters that no text can have (NUL or half a surrogate pair)`,
  );
};

const readList: Reader = (name, value) => {
  const parts = typeof value === 'string' ? value.split('|') : value;
  if (!Array.isArray(parts)) return refuse(name, value, 'a list');
  return parts.map((part) => readText(name, part)).filter((text) => text !== '');
};

const date_and_time =
  /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)\s*(Z|[+-]\d{2}:?\d{2})?)?$/i;

/** A date is midnight UTC; a time without a zone is UTC; a day that does not exist is refused. */
const readTime: Reader = (name, value) => {
  const [, day = '', clock = '00:00', zone = 'Z'] = date_and_time.exec(String(value).trim()) ?? [];
  const time = new Date(`${day}T${clock}${zone.toUpperCase()}`);
  const is_real =
    !Number.isNaN(time.getTime()) && new Date(`${day}T00:00Z`).toISOString().startsWith(day);
  return is_real
    ? time.toISOString()
    : refuse(name, value, 'a date or a time like 2027-03-31T12:00:00Z');
};

const numberIn = (value: unknown): unknown =>
  typeof value === 'string' && value.trim() !== '' ? Number(value) : value;

const readWhole: Reader = (name, value) => {
  const number = numberIn(value);
  return Number.isInteger(number) ? number : refuse(name, value, 'a whole number');
};

const readNumber: Reader = (name, value) => {
  const number = numberIn(value);
  return Number.isFinite(number) ? number : refuse(name, value, 'a number');
};

const readFlag: Reader = (name, value) => {
  const word = String(value).trim().toLowerCase();
  if (['true', 'yes', '1'].includes(word)) return true;
  return ['false', 'no', '0'].includes(word) ? false : refuse(name, value, 'true or false');
};

/** `{"option": n, …}`, in CSV `option=n|other=n`. */
const readProbabilities: Reader = (name, value) => {
  if (typeof value === 'object' && !Array.isArray(value)) return value;
  if (typeof value !== 'string') return refuse(name, value, 'a list');
  const pairs = value.split('|').map((part) => {
    const at = part.lastIndexOf('=');
    return [part.slice(0, at).trim(), Number(part.slice(at + 1))] as const;
  });
  return pairs.every(([option, number]) => option !== '' && Number.isFinite(number))
    ? Object.fromEntries(pairs)
    : refuse(name, value, 'like one=30|other=70');
};

/** Longest texts; what is longer is cut, and a notice says so. */
export const text_limits = { question: 500, description: 10_000, resolution_source: 500 } as const;

const source = { source: readText, source_id: readText };

const fields: Readonly<Record<RecordType, Readonly<Record<string, Reader>>>> = {
  question: {
    ...{ question: readText, description: readText, resolution_source: readText },
    ...{ category: readText, subcategory: readText, question_type: readText },
    ...{ resolution_url: readText, ...source, tags: readList, options: readList },
    ...{ opens_at: readTime, closes_at: readTime, resolution_date: readTime },
    ...{ weight: readWhole, publish: readFlag },
  },
  agent: { name: readText, model: readText },
  forecast: {
    ...{ ...source, agent: readText, model: readText, prediction: readFlag },
    ...{ confidence: readNumber, probability: readNumber, selected_option: readText },
    ...{ probabilities: readProbabilities, reasoning: readText, forecast_at: readTime },
  },
  resolution: {
    ...{ ...source, resolved_to: (_: string, value: unknown) => value, outcome: readFlag },
    ...{ correct_options: readList, void: readFlag, resolution_note: readText },
  },
};

const required: Readonly<Record<RecordType, readonly string[]>> = {
  question: ['question', 'category', 'closes_at'],
  agent: ['name'],
  forecast: ['source', 'source_id', 'agent'],
  resolution: ['source', 'source_id'],
};

const isAbsent = (value: unknown): boolean =>
  value === undefined || value === null || (typeof value === 'string' && value.trim() === '');

/** What a record is, or why it is nothing. */
export const typeOf = (record: SourceRecord): RecordType | { readonly problem: string } => {
  const type = isAbsent(record['type']) ? 'question' : record['type'];
  const known = record_types.find((one) => one === type);
  return known ?? { problem: `type is ${show(type)} and not one of ${record_types.join(', ')}` };
};

const readFields = (type: RecordType, record: SourceRecord) => {
  const item: Record<string, unknown> = {};
  const problems: string[] = [];
  for (const [name, read] of Object.entries(fields[type])) {
    if (isAbsent(record[name])) continue;
    try {
      item[name] = read(name, record[name]);
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
      problems.push(error.message);
    }
  }
  return { item, problems };
};

/** Cuts texts at their limits without tearing a character apart; a notice for each. */
const cutTexts = (item: Record<string, unknown>): readonly string[] => {
  const notices: string[] = [];
  for (const [name, limit] of Object.entries(text_limits)) {
    const text = item[name];
    if (typeof text !== 'string' || text.length <= limit) continue;
    const short = text.slice(0, limit - 1);
    item[name] = `${short.isWellFormed() ? short : short.slice(0, -1)}…`;
    notices.push(`${name} was cut from ${text.length} to ${limit} characters`);
  }
  return notices;
};

/**
 * Two runs must find the same question again, so a record without a source gets one: `import`,
 * and a digest of its content.
 */
const identify = (item: Record<string, unknown>): void => {
  const own = JSON.stringify(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)));
  item['source'] ??= 'import';
  item['source_id'] ??= createHash('sha256').update(own).digest('hex').slice(0, 32);
};

/** `resolved_to` in any of its forms: 1 and 0, true and false, an option or several, void. */
const settle = (item: Record<string, unknown>): readonly string[] => {
  const { resolved_to: to, ...rest } = item;
  if (to === undefined) return [];
  delete item['resolved_to'];
  if (Object.keys(rest).some((name) => ['outcome', 'correct_options', 'void'].includes(name))) {
    return ['resolved_to stands beside outcome, correct_options or void; give one of them'];
  }
  const word = String(to).trim().toLowerCase();
  if (Array.isArray(to)) item['correct_options'] = to;
  else if (word === 'void') item['void'] = true;
  else if (['1', '1.0', 'true', 'yes'].includes(word)) item['outcome'] = true;
  else if (['0', '0.0', 'false', 'no'].includes(word)) item['outcome'] = false;
  else if (typeof to === 'string' && !Number.isFinite(Number(word))) {
    item['correct_options'] = to.split('|').map((option) => option.trim());
  } else return [`resolved_to is ${show(to)}: only 1, 0, an option, several by | or void decide`];
  return [];
};

export const makeItem = (type: RecordType, record: SourceRecord, options: ItemOptions): Made => {
  const { item, problems } = readFields(type, record);
  const { subcategory } = item;
  const pillar = options.pillars.get(String(subcategory));
  if (type === 'question' && pillar !== undefined) item['category'] ??= pillar;
  for (const name of required[type]) {
    if (name in item || !isAbsent(record[name])) continue;
    const why =
      name === 'category' && subcategory !== undefined
        ? `, and the taxonomy has no subcategory ${JSON.stringify(subcategory)}`
        : '';
    problems.push(`${name} is missing${why}`);
  }
  const notices = cutTexts(item);
  if (type === 'resolution') problems.push(...settle(item));
  if (problems.length > 0) return { problems };
  if (type === 'question') {
    identify(item);
    if (options.publish) item['publish'] ??= true;
  }
  return { item, notices };
};
