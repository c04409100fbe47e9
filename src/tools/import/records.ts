import { createHash } from 'node:crypto';
import { forum_source } from '../../features/imports/schema.js';
import { findInexactProblem, isExact } from '../../http/validation.js';
import { parseTime } from '../../kit/time.js';
import type { SourceRecord } from './files.js';

/**
 * Turns records with the import's field names into items that the service accepts. The `type` of a
 * record says whether it is a question (no type), an agent, a forecast or a resolution. Records of
 * our exports are recognised by their columns. The text of a CSV cell is converted to the field's
 * type if possible. The service checks every item.
 */

export const record_types = ['question', 'agent', 'forecast', 'resolution'] as const;
export type RecordType = (typeof record_types)[number];

export type Item = Readonly<Record<string, unknown>>;

export interface ItemOptions {
  readonly pillars: ReadonlyMap<string, string>;
  /** True: publishes questions whose record does not say whether to publish them. */
  readonly publish: boolean;
}

type Reader = (text: string) => unknown;

const readText: Reader = (text) => text;

/** Reads a list such as `one|other`, or JSON as exports write it. */
const readList: Reader = (text) => {
  const list = text.startsWith('[') ? readJson(text) : text;
  return Array.isArray(list)
    ? list
    : text
        .split('|')
        .map((part) => part.trim())
        .filter((part) => part !== '');
};

const date_and_time =
  /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)\s*(Z|[+-]\d{2}:?\d{2})?)?$/i;

/** A date means midnight UTC. A time without a zone is UTC. */
const readTime: Reader = (text) => {
  const [, day = '', clock = '00:00', zone = 'Z'] = date_and_time.exec(text) ?? [];
  const time = new Date(`${day}T${clock}${zone.toUpperCase()}`);
  const is_real =
    !Number.isNaN(time.getTime()) && new Date(`${day}T00:00Z`).toISOString().startsWith(day);
  return is_real ? time.toISOString() : text;
};

const decimal = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

/** Leaves text unchanged if it is not a decimal number, or is an integer too large for a number. */
const readNumber: Reader = (text) =>
  decimal.test(text) && Number.isFinite(Number(text)) && isExact(text) ? Number(text) : text;

const readFlag: Reader = (text) => {
  const word = text.toLowerCase();
  if (['true', 'yes', '1'].includes(word)) return true;
  return ['false', 'no', '0'].includes(word) ? false : text;
};

/** Reads probabilities such as `option=n|other=n`, or JSON as exports write it. */
const readProbabilities: Reader = (text) =>
  /^[[{]/.test(text)
    ? readJson(text)
    : Object.fromEntries(
        text.split('|').map((part) => {
          const at = part.lastIndexOf('=');
          return [part.slice(0, at).trim(), readNumber(part.slice(at + 1).trim())];
        }),
      );

/** Reads a number or a date. */
const readValue: Reader = (text) => {
  const number = readNumber(text);
  return typeof number === 'number' ? number : readTime(text);
};

/** Parses values that exports write as JSON. */
const readJson: Reader = (text) => {
  try {
    return findInexactProblem(text) === null ? JSON.parse(text) : text;
  } catch {
    return text;
  }
};

/** Reads the dates in a range or in points of a forecast. Like other times they may lack a zone. */
const readTimes = (value: unknown): unknown => {
  // A time that the service can read stays as it is, because a record without a source is
  // identified by its content.
  if (typeof value === 'string') return parseTime(value) === null ? readTime(value) : value;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(readTimes);
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [name, name === 'unit' ? one : readTimes(one)]),
  );
};

/** Maximum lengths. Longer texts are cut, and a notice says so. */
export const text_limits = { question: 500, description: 10_000, resolution_source: 500 } as const;

const source = { source: readText, source_id: readText };

const fields: Readonly<Record<RecordType, Readonly<Record<string, Reader>>>> = {
  question: {
    question: readText,
    description: readText,
    resolution_source: readText,
    category: readText,
    subcategory: readText,
    question_type: readText,
    resolution_url: readText,
    ...source,
    tags: readList,
    options: readList,
    opens_at: readTime,
    closes_at: readTime,
    resolution_date: readTime,
    weight: readNumber,
    publish: readFlag,
    range: readJson,
  },
  agent: { name: readText, model: readText },
  forecast: {
    ...source,
    agent: readText,
    prediction: readFlag,
    confidence: readNumber,
    probability: readNumber,
    selected_option: readText,
    probabilities: readProbabilities,
    quantiles: readJson,
    cdf: readJson,
    continuous_cdf: readJson,
    below: readNumber,
    above: readNumber,
    scale: readText,
    reasoning: readText,
    forecast_at: readTime,
  },
  resolution: {
    ...source,
    known_at: readTime,
    resolution_note: readText,
    outcome: readFlag,
    correct_options: readList,
    outcome_value: readValue,
    void: readFlag,
    evidence_urls: readList,
  },
};

/** Types of the rows of our own exports, each with a column that only these rows have. */
const exported = [
  ['comment_id', { problem: 'comments are not imported' }],
  ['option_percents', { problem: 'a history of the consensus is not imported' }],
  ['prediction_id', 'forecast'],
  ['decided_by', 'resolution'],
] as const;

/** A header needs one of these columns. */
export const telling_columns: readonly string[] = [
  'question',
  'type',
  ...exported.map(([column]) => column),
];

export const typeOf = (record: SourceRecord): RecordType | { readonly problem: string } => {
  const { type } = record;
  if (type === undefined || type === null || type === '') {
    return exported.find(([column]) => Object.hasOwn(record, column))?.[1] ?? 'question';
  }
  const known = record_types.find((one) => one === type);
  return known ?? { problem: `type must be one of ${record_types.join(', ')}, not ${type}` };
};

/** Gives exported fields the names that imports use. */
const renameExported = (type: RecordType, record: SourceRecord): SourceRecord => {
  const { question_id, agent_name, note, kind } = record;
  const is_of_forum = isEmpty(record['source']) && !isEmpty(question_id);
  return {
    ...record,
    ...(is_of_forum && { source: forum_source, source_id: question_id }),
    ...(type === 'forecast' && !isEmpty(agent_name) && { agent: agent_name }),
    ...(type === 'resolution' && !isEmpty(note) && { resolution_note: note }),
    ...(type === 'resolution' && kind === 'void' && { void: true }),
  };
};

const isEmpty = (value: unknown): boolean => value === undefined || value === null || value === '';

const readFields = (type: RecordType, record: SourceRecord): Record<string, unknown> => {
  const item: Record<string, unknown> = {};
  for (const [name, read] of Object.entries(fields[type])) {
    const value = record[name];
    const is_text = typeof value === 'string' || (read === readText && typeof value === 'number');
    const text = String(value ?? '').trim();
    if (text !== '') item[name] = is_text ? read(text) : value;
  }
  for (const name of ['range', 'quantiles', 'cdf']) {
    if (item[name] !== undefined) item[name] = readTimes(item[name]);
  }
  return item;
};

/** Cuts texts at their limits without splitting a character. Returns a notice for each cut. */
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
 * A second run must find the same question again. So a record without a source gets the source
 * `import` and a digest of its content as its id.
 */
const identify = (item: Record<string, unknown>): void => {
  const own = JSON.stringify(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)));
  item['source'] ??= 'import';
  item['source_id'] ??= createHash('sha256').update(own).digest('hex').slice(0, 32);
};

export const makeItem = (
  type: RecordType,
  record: SourceRecord,
  { pillars, publish }: ItemOptions,
): { readonly item: Item; readonly notices: readonly string[] } => {
  const item = readFields(type, renameExported(type, record));
  // Passed on unchanged: its meaning depends on the question, which the service knows.
  if (type === 'resolution' && !isEmpty(record['resolved_to']))
    item['resolved_to'] = record['resolved_to'];
  const notices = cutTexts(item);
  if (type !== 'question') return { item, notices };
  const pillar = pillars.get(String(item['subcategory']));
  if (pillar !== undefined) item['category'] ??= pillar;
  identify(item);
  if (publish) item['publish'] ??= true;
  return { item, notices };
};
