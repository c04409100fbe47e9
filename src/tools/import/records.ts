import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { parse } from 'csv-parse';
import { findInexactProblem, isExact } from '../../http/validation.js';

/**
 * Items in the form that the service takes, made from records with the import's field names. A
 * record says by `type` what it is: a question (without one), an agent, a forecast or a resolution.
 * Text of a CSV cell becomes the field's type where it can; the service checks every item.
 */

/** A record of the file, or why there is none. */
type Entry =
  | { readonly line: number; readonly record: SourceRecord }
  | { readonly line: number; readonly problem: string };

export type SourceRecord = Readonly<Record<string, unknown>>;

const longest_line = 1_000_000;
const byte_order_mark = '\uFEFF';

/** By the name, else by the first character: a record of NDJSON begins with a brace. */
const isNdjson = async (file: string): Promise<boolean> => {
  if (/\.csv$/i.test(file)) return false;
  if (/\.(ndjson|jsonl)$/i.test(file)) return true;
  const handle = await open(file);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(1024), 0, 1024, 0);
    const start = buffer.toString('utf8', 0, bytesRead).replace(byte_order_mark, '').trimStart();
    return start.startsWith('{');
  } finally {
    await handle.close();
  }
};

const readLine = (text: string): { record: SourceRecord } | { problem: string } => {
  if (text.length > longest_line) return { problem: `the line is over ${longest_line} characters` };
  try {
    const value: unknown = JSON.parse(text);
    const problem = findInexactProblem(text);
    if (problem !== null) return { problem };
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return { record: value as SourceRecord };
    }
    return { problem: 'the line is JSON but not an object' };
  } catch (error) {
    return { problem: `not valid JSON: ${error instanceof Error ? error.message : error}` };
  }
};

async function* readNdjson(file: string): AsyncGenerator<Entry> {
  const lines = createInterface({ input: createReadStream(file), crlfDelay: Infinity });
  let line = 0;
  for await (const raw of lines) {
    line += 1;
    const text = line === 1 ? raw.replace(byte_order_mark, '') : raw;
    if (text.trim() !== '') yield { line, ...readLine(text) };
  }
}

interface CsvRow {
  readonly info: { readonly lines: number };
  readonly record: SourceRecord;
}

/** A row that cannot be read is passed over and reported; rows may span several lines. */
async function* readCsv(file: string): AsyncGenerator<Entry> {
  const bad: Entry[] = [];
  const parser = parse({
    bom: true,
    columns: (names: string[]) => names.map((name) => name.trim()),
    info: true,
    skip_empty_lines: true,
    skip_records_with_error: true,
    max_record_size: longest_line,
    // Exports put a quote before what a spreadsheet would compute.
    cast: (cell) => cell.replace(/^'(?=[=+\-@\t\r])/, ''),
  });
  parser.on('skip', (error: (Error & { lines?: number }) | undefined) => {
    const problem = `not valid CSV: ${error?.message ?? 'unreadable row'}`;
    bad.push({ line: error?.lines ?? 0, problem });
  });
  const input = createReadStream(file);
  input.on('error', (error) => parser.destroy(error));
  let last_line = 1;
  for await (const { info, record } of input.pipe(parser) as AsyncIterable<CsvRow>) {
    yield* bad.splice(0);
    // The parser says where a row ends; where it begins is the line after the row before.
    yield { line: last_line + 1, record };
    last_line = info.lines;
  }
  yield* bad.splice(0);
}

/** Reads a file record by record, NDJSON or CSV. */
export async function* readRecords(file: string): AsyncGenerator<Entry> {
  yield* (await isNdjson(file)) ? readNdjson(file) : readCsv(file);
}

export const record_types = ['question', 'agent', 'forecast', 'resolution'] as const;
export type RecordType = (typeof record_types)[number];

export type Item = Readonly<Record<string, unknown>>;

export interface ItemOptions {
  readonly pillars: ReadonlyMap<string, string>;
  /** Publish what does not say itself whether it is to be published. */
  readonly publish: boolean;
}

type Reader = (text: string) => unknown;

const readText: Reader = (text) => text;

/** `one|other`, or JSON as exports write it. */
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

/** A date is midnight UTC; a time without a zone is UTC. */
const readTime: Reader = (text) => {
  const [, day = '', clock = '00:00', zone = 'Z'] = date_and_time.exec(text) ?? [];
  const time = new Date(`${day}T${clock}${zone.toUpperCase()}`);
  const is_real =
    !Number.isNaN(time.getTime()) && new Date(`${day}T00:00Z`).toISOString().startsWith(day);
  return is_real ? time.toISOString() : text;
};

/** A text that is not a number, or an integer that a number cannot hold, is left as it is. */
const readNumber: Reader = (text) =>
  Number.isFinite(Number(text)) && isExact(text) ? Number(text) : text;

const readFlag: Reader = (text) => {
  const word = text.toLowerCase();
  if (['true', 'yes', '1'].includes(word)) return true;
  return ['false', 'no', '0'].includes(word) ? false : text;
};

/** `option=n|other=n`, or JSON as exports write it. */
const readProbabilities: Reader = (text) =>
  /^[[{]/.test(text)
    ? readJson(text)
    : Object.fromEntries(
        text.split('|').map((part) => {
          const at = part.lastIndexOf('=');
          return [part.slice(0, at).trim(), readNumber(part.slice(at + 1))];
        }),
      );

/** A number, or a date. */
const readValue: Reader = (text) => {
  const number = readNumber(text);
  return typeof number === 'number' ? number : readTime(text);
};

/** What exports write as JSON. */
const readJson: Reader = (text) => {
  try {
    return findInexactProblem(text) === null ? JSON.parse(text) : text;
  } catch {
    return text;
  }
};

/** Longest texts; what is longer is cut, and a notice says so. */
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
    outcome_value: readValue,
  },
};

export const typeOf = ({ type }: SourceRecord): RecordType | { readonly problem: string } => {
  if (type === undefined || type === null || type === '') return 'question';
  const known = record_types.find((one) => one === type);
  return known ?? { problem: `type is ${type} and not one of ${record_types.join(', ')}` };
};

const readFields = (type: RecordType, record: SourceRecord): Record<string, unknown> => {
  const item: Record<string, unknown> = {};
  for (const [name, read] of Object.entries(fields[type])) {
    const value = record[name];
    const is_text = typeof value === 'string' || (read === readText && typeof value === 'number');
    const text = String(value ?? '').trim();
    if (text !== '') item[name] = is_text ? read(text) : value;
  }
  return item;
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
const readDecision = (to: unknown): Item => {
  const word = String(to).trim().toLowerCase();
  if (Array.isArray(to)) return { correct_options: to };
  if (word === 'void') return { void: true };
  if (['1', '1.0', 'true', 'yes'].includes(word)) return { outcome: true };
  if (['0', '0.0', 'false', 'no'].includes(word)) return { outcome: false };
  return typeof to === 'string' ? { correct_options: readList(to) } : {};
};

export const makeItem = (
  type: RecordType,
  record: SourceRecord,
  { pillars, publish }: ItemOptions,
): { readonly item: Item; readonly notices: readonly string[] } => {
  const item = readFields(type, record);
  if (type === 'resolution' && item['outcome_value'] === undefined)
    Object.assign(item, readDecision(record['resolved_to']));
  const notices = cutTexts(item);
  if (type !== 'question') return { item, notices };
  const pillar = pillars.get(String(item['subcategory']));
  if (pillar !== undefined) item['category'] ??= pillar;
  identify(item);
  if (publish) item['publish'] ??= true;
  return { item, notices };
};
