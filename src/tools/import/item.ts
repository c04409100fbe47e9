import { createHash } from 'node:crypto';
import { isProblem, readers } from './readers.js';
import type { SourceRecord } from './records.js';

/**
 * One question in the form that the service takes, made from a record that has the import's own
 * field names. Text of a CSV cell becomes what the field needs: lists are separated by `|`.
 */

export interface Item {
  readonly question: string;
  readonly category: string;
  readonly closes_at: string;
  readonly source: string;
  readonly source_id: string;
  readonly [field: string]: unknown;
}

export type Made =
  | { readonly item: Item; readonly notices: readonly string[] }
  | { readonly problems: readonly string[] };

export interface ItemOptions {
  /** Pillar of each subcategory, so that a record need not name both. */
  readonly pillars: ReadonlyMap<string, string>;
  /** Publish what does not say itself whether it is to be published. */
  readonly publish: boolean;
}

/** Longest texts; what is longer is cut, and a notice says so. */
export const text_limits = {
  question: 500,
  description: 10_000,
  resolution_source: 500,
} as const;

/** Every field of the format, by what it holds. */
export const fields = {
  text: ['question', 'description', 'resolution_source'],
  name: ['category', 'subcategory', 'question_type', 'resolution_url', 'source', 'source_id'],
  list: ['tags', 'options'],
  time: ['opens_at', 'closes_at', 'resolution_date'],
  whole: ['weight'],
  flag: ['publish'],
} as const;

export const field_names: readonly string[] = Object.values(fields).flat();

const isAbsent = (value: unknown): boolean =>
  value === undefined || value === null || (typeof value === 'string' && value.trim() === '');

/** Cuts at the limit without tearing a character apart. */
const cut = (text: string, limit: number): string => {
  const short = text.slice(0, limit - 1);
  return `${short.isWellFormed() ? short : short.slice(0, -1)}…`;
};

const readFields = (record: SourceRecord) => {
  const item: Record<string, unknown> = {};
  const problems: string[] = [];
  const notices: string[] = [];
  for (const [kind, names] of Object.entries(fields)) {
    for (const name of names) {
      if (isAbsent(record[name])) continue;
      const value = readers[kind as keyof typeof readers](name, record[name]);
      if (isProblem(value)) problems.push(value.problem);
      else item[name] = value;
    }
  }
  for (const [name, limit] of Object.entries(text_limits)) {
    const text = item[name];
    if (typeof text !== 'string' || text.length <= limit) continue;
    item[name] = cut(text, limit);
    notices.push(`${name} was cut from ${text.length} to ${limit} characters`);
  }
  return { item, problems, notices };
};

/**
 * Two runs must find the same question again, so a record without a source gets one: `import`,
 * and a digest of its content.
 */
const identify = (item: Record<string, unknown>): void => {
  const own = JSON.stringify(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)));
  if (isAbsent(item['source'])) item['source'] = 'import';
  if (isAbsent(item['source_id'])) {
    item['source_id'] = createHash('sha256').update(own).digest('hex').slice(0, 32);
  }
};

/** An item, or everything that is wrong with the record. The service checks all the rest. */
export const makeItem = (record: SourceRecord, options: ItemOptions): Made => {
  const { item, problems, notices } = readFields(record);
  const pillar = options.pillars.get(String(item['subcategory']));
  if (item['category'] === undefined && pillar !== undefined) item['category'] = pillar;
  for (const name of ['question', 'category', 'closes_at']) {
    const given = !isAbsent(record[name]);
    if (item[name] !== undefined || given) continue;
    const unknown = name === 'category' ? item['subcategory'] : undefined;
    problems.push(
      unknown === undefined
        ? `${name} is missing`
        : `category is missing, and the taxonomy has no subcategory ${JSON.stringify(unknown)}`,
    );
  }
  if (problems.length > 0) return { problems };
  identify(item);
  if (item['publish'] === undefined && options.publish) item['publish'] = true;
  return { item: item as unknown as Item, notices };
};
