import { FormatRegistry, Kind, type TObject, type TSchema } from '@sinclair/typebox';
import { TypeCompiler, type ValueErrorIterator } from '@sinclair/typebox/compiler';
import type { FaultField } from '../fault.js';
import { isId } from '../ids.js';
import { innermost, wordError } from './wording.js';

/** Compiled validators of the wire. Unknown members pass and are never looked at. */

FormatRegistry.Set('uuid', (text) => isId(text.toLowerCase()));
FormatRegistry.Set('date-time', (text) => parseTime(text) !== null);

const time_pattern = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d(:\d\d(\.\d{1,9})?)?([Zz]|[+-]\d\d:?\d\d)$/;

/** An ISO 8601 time with a zone, between the years 1970 and 9999; null when it is not one. */
export const parseTime = (text: string): Date | null => {
  if (!time_pattern.test(text)) return null;
  const time = new Date(text);
  const ms = time.getTime();
  return Number.isNaN(ms) || ms < 0 || ms > 253_402_300_799_999 ? null : time;
};

const most_fields = 20;

const collect = (errors: ValueErrorIterator, root: string): FaultField[] => {
  const fields: FaultField[] = [];
  const seen = new Set<string>();
  for (const error of innermost(errors)) {
    const path = root + error.path.replaceAll('/', '.');
    if (seen.has(path)) continue;
    seen.add(path);
    fields.push({ path, message: wordError(error) });
    if (fields.length >= most_fields) break;
  }
  return fields;
};

/** The message of a refusal: the first thing that is wrong. */
export const sayFirst = (what: string, [first]: readonly FaultField[]): string =>
  `The ${what} is not right: ${first?.path} – ${first?.message}.`;

export type Check = (value: unknown) => readonly FaultField[] | null;

/** Compiles a schema; the check returns null for a good value, else what is wrong and where. */
export const compileCheck = (schema: TSchema, root: string): Check => {
  const compiled = TypeCompiler.Compile(schema);
  return (value) => (compiled.Check(value) ? null : collect(compiled.Errors(value), root));
};

type QueryKind = 'integer' | 'number' | 'boolean' | 'string' | 'list';

const kindOf = (schema: TSchema): QueryKind => {
  const kind = schema[Kind];
  if (kind === 'Integer') return 'integer';
  if (kind === 'Number') return 'number';
  if (kind === 'Boolean') return 'boolean';
  if (kind === 'Array') return 'list';
  return 'string';
};

const convert = (kind: QueryKind, text: string): unknown => {
  if ((kind === 'integer' || kind === 'number') && /^-?\d+(\.\d+)?$/.test(text))
    return Number(text);
  if (kind === 'list') return text.split(',').filter((item) => item !== '');
  if (kind === 'boolean' && (text === 'true' || text === '1')) return true;
  if (kind === 'boolean' && (text === 'false' || text === '0')) return false;
  return text;
};

/** A `limit` says how many rows are wanted at most: more than its maximum means the maximum. */
const capLimit = (value: unknown, { maximum }: TSchema): unknown =>
  typeof value === 'number' && Math.floor(value) === value && value > maximum ? maximum : value;

/** What was given under a name. */
const givenFor = (given: URLSearchParams, name: string, kind: QueryKind): string | null =>
  kind === 'list' ? given.getAll(name).join(',') : given.get(name);

export type QueryReader = (
  raw: string,
) => { readonly value: Record<string, unknown> } | { readonly fields: readonly FaultField[] };

/**
 * Compiles the reader of a query string: known keys are converted to the type of their schema and
 * checked, defaults filled in, unknown keys ignored. An empty value counts as absent. A list is
 * written with commas, or as one key several times. A `limit` above its maximum is the maximum.
 */
export const compileQuery = (schema: TObject): QueryReader => {
  const check = compileCheck(schema, 'query');
  const keys = Object.entries(schema.properties).map(([name, property]) => ({
    name,
    property,
    kind: kindOf(property),
    fallback: property.default as unknown,
  }));
  return (raw) => {
    const value: Record<string, unknown> = {};
    const given = raw === '' ? null : new URLSearchParams(raw);
    for (const { name, property, kind, fallback } of keys) {
      const text = given === null ? null : givenFor(given, name, kind);
      if (text !== null && text !== '') {
        if (text.includes('\0') || !text.isWellFormed()) {
          return {
            fields: [
              { path: `query.${name}`, message: 'contains characters that are not allowed' },
            ],
          };
        }
        const converted = convert(kind, text);
        value[name] = name === 'limit' ? capLimit(converted, property) : converted;
      } else if (fallback !== undefined) value[name] = fallback;
    }
    const fields = check(value);
    return fields === null ? { value } : { fields };
  };
};
