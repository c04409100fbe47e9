import { isProblem, type Problem, readers, show, wrong } from './readers.js';
import type { SourceRecord } from './records.js';

/**
 * What a season holds beside its questions: agents, their forecasts, and how questions came out. A
 * record says by `type` which it is; without one it is a question. The service checks all the rest.
 */

export const record_types = ['question', 'agent', 'forecast', 'resolution'] as const;
export type RecordType = (typeof record_types)[number];

export type MadeItem =
  | { readonly item: Readonly<Record<string, unknown>> }
  | { readonly problems: readonly string[] };

type Reader = (name: string, value: unknown) => unknown;

const { name: readName, text: readText, list, time, flag } = readers;

const readNumber: Reader = (name, value) => {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number)
    ? number
    : wrong(`${name} is ${show(value)} and not a number`);
};

/** `{"option": n, …}`, in CSV `option=n|other=n`. */
const readProbabilities: Reader = (name, value) => {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  if (typeof value !== 'string') return wrong(`${name} is ${show(value)} and not a list`);
  const pairs = value.split('|').map((part) => {
    const at = part.lastIndexOf('=');
    return [part.slice(0, at).trim(), Number(part.slice(at + 1))] as const;
  });
  return pairs.every(([option, number]) => option !== '' && Number.isFinite(number))
    ? Object.fromEntries(pairs)
    : wrong(`${name} is ${show(value)} and not like one=30|other=70`);
};

export const season_fields = {
  agent: { name: readName, model: readName },
  forecast: {
    source: readName,
    source_id: readName,
    agent: readName,
    model: readName,
    prediction: flag,
    confidence: readNumber,
    probability: readNumber,
    selected_option: readName,
    probabilities: readProbabilities,
    reasoning: readText,
    forecast_at: time,
  },
  resolution: {
    source: readName,
    source_id: readName,
    resolved_to: (_, value) => value,
    outcome: flag,
    correct_options: list,
    void: flag,
    resolution_note: readText,
  },
} as const satisfies Readonly<Record<string, Readonly<Record<string, Reader>>>>;

const required = {
  agent: ['name'],
  forecast: ['source', 'source_id', 'agent'],
  resolution: ['source', 'source_id'],
} as const;

const isAbsent = (value: unknown): boolean =>
  value === undefined || value === null || (typeof value === 'string' && value.trim() === '');

export const typeOf = (record: SourceRecord): RecordType | Problem => {
  const type = isAbsent(record['type']) ? 'question' : record['type'];
  return (record_types as readonly unknown[]).includes(type)
    ? (type as RecordType)
    : wrong(`type is ${show(type)} and not one of ${record_types.join(', ')}`);
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

/** An item as the service takes it, or everything that is wrong with the record. */
export const makeSeasonItem = (
  type: Exclude<RecordType, 'question'>,
  record: SourceRecord,
): MadeItem => {
  const item: Record<string, unknown> = {};
  const problems: string[] = [];
  for (const [name, read] of Object.entries<Reader>(season_fields[type])) {
    if (isAbsent(record[name])) continue;
    const value = read(name, record[name]);
    if (isProblem(value)) problems.push(value.problem);
    else item[name] = value;
  }
  for (const name of required[type]) {
    if (isAbsent(record[name])) problems.push(`${name} is missing`);
  }
  if (type === 'resolution') problems.push(...settle(item));
  return problems.length > 0 ? { problems } : { item };
};
