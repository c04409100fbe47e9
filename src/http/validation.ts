import { isUtf8 } from 'node:buffer';
import { FormatRegistry, Kind, type TObject, type TSchema } from '@sinclair/typebox';
import { TypeCompiler, type ValueErrorIterator } from '@sinclair/typebox/compiler';
import { type ValueError, ValueErrorType } from '@sinclair/typebox/errors';
import type { FaultField } from '../kit/fault.js';
import { isId } from '../kit/ids.js';
import { explainStacking, explainText } from '../kit/text.js';
import { parseTime } from '../kit/time.js';
import { isJudgedLater, text_kind } from './schemas.js';

/** Compiled validators of requests. Unknown members are ignored. */

/** The names of kinds of values, in messages to the client. */
const kinds: Readonly<Record<string, string>> = {
  String: 'a string',
  [text_kind]: 'a string',
  Integer: 'a whole number',
  Number: 'a number',
  Boolean: 'true or false',
  Array: 'an array',
  Object: 'an object',
  Record: 'an object',
  Null: 'null',
};

const formats: Readonly<Record<string, string>> = {
  uuid: 'must be an id (a UUID)',
  'date-time': 'must be a time with a zone, such as 2026-03-01T12:00:00Z',
};

const count = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? '' : 's'}`;

const nameOf = (schema: TSchema): string =>
  schema[Kind] === 'Literal'
    ? JSON.stringify(schema['const'])
    : (kinds[schema[Kind]] ?? 'another value');

const sayPattern = (schema: TSchema): string => {
  if (Array.isArray(schema['enum'])) return `must be one of ${schema['enum'].join(', ')}`;
  return schema.description?.replace(/[.]$/, '') ?? `must match ${schema['pattern']}`;
};

type Wording = (schema: TSchema, value: unknown) => string;

const bounds: Wording = ({ minimum, maximum }) => {
  if (maximum === undefined) return `must be at least ${minimum}`;
  return minimum === undefined
    ? `must be at most ${maximum}`
    : `must be from ${minimum} to ${maximum}`;
};

const atLeastCharacters = (least: number): string =>
  least === 1 ? 'must not be empty' : `must have at least ${least} characters`;

const wordings: Partial<Record<ValueErrorType, Wording>> = {
  [ValueErrorType.IntegerMinimum]: bounds,
  [ValueErrorType.IntegerMaximum]: bounds,
  [ValueErrorType.NumberMinimum]: bounds,
  [ValueErrorType.NumberMaximum]: bounds,
  [ValueErrorType.ObjectRequiredProperty]: () => 'is required',
  [ValueErrorType.ObjectAdditionalProperties]: () => 'is not known here',
  [ValueErrorType.ArrayMinItems]: ({ minItems }) =>
    minItems === 1 ? 'needs at least one' : `must have at least ${minItems} items`,
  [ValueErrorType.ArrayMaxItems]: ({ maxItems }) => `must have at most ${count(maxItems, 'item')}`,
  [ValueErrorType.StringMinLength]: ({ minLength }) => atLeastCharacters(minLength),
  [ValueErrorType.StringMaxLength]: ({ maxLength }) =>
    `must have at most ${count(maxLength, 'character')}`,
  [ValueErrorType.Kind]: ({ minLength = 0, maxLength }, value) =>
    typeof value === 'string' && value.length < minLength
      ? atLeastCharacters(minLength)
      : (explainText(String(value), maxLength) ?? 'must be a string'),
  [ValueErrorType.StringPattern]: sayPattern,
  [ValueErrorType.StringFormat]: ({ format }) => formats[format] ?? `must be a ${format}`,
  [ValueErrorType.Union]: ({ anyOf }) => {
    const names = new Set((anyOf as readonly TSchema[]).map(nameOf));
    return `must be ${[...names].join(' or ')}`;
  },
};

/** Every problem with a `textSchema` string has the same error type, `Kind`. */
const isOfAnotherType = ({ type, value }: Pick<ValueError, 'type' | 'value'>): boolean =>
  wordings[type] === undefined || (type === ValueErrorType.Kind && typeof value !== 'string');

/** Says what must change, in words that follow the path in a message, without a full stop. */
const wordError = ({ type, schema, value, message }: ValueError): string => {
  const word = wordings[type];
  if (word !== undefined && !isOfAnotherType({ type, value })) return word(schema, value);
  return schema[Kind] in kinds || schema[Kind] === 'Literal'
    ? `must be ${nameOf(schema)}`
    : message;
};

const isOfAnotherKind = (errors: readonly ValueError[], path: string): boolean =>
  errors.some((error) => error.path === path && isOfAnotherType(error));

/**
 * Yields each error as deep inside the value as possible. If a value may have several forms, and it
 * has the kind of exactly one form, yields the errors within that form.
 */
function* innermost(errors: Iterable<ValueError>): Generator<ValueError> {
  for (const error of errors) {
    const meant = error.errors
      .map((within) => [...within])
      .filter((within) => !isOfAnotherKind(within, error.path));
    if (meant.length === 1) yield* innermost(meant[0] as readonly ValueError[]);
    else yield error;
  }
}

FormatRegistry.Set('uuid', (text) => isId(text.toLowerCase()));
FormatRegistry.Set('date-time', (text) => parseTime(text) !== null);

const max_fields = 20;

const collect = (errors: ValueErrorIterator, root: string): FaultField[] => {
  const fields: FaultField[] = [];
  const seen = new Set<string>();
  for (const error of innermost(errors)) {
    const path = root + error.path.replaceAll('/', '.');
    if (seen.has(path)) continue;
    seen.add(path);
    fields.push({ path, message: wordError(error) });
    if (fields.length >= max_fields) break;
  }
  return fields;
};

export type Check = (value: unknown) => readonly FaultField[] | null;

/**
 * Finds the first string or member name with too many combining marks in a row. Members that the
 * schema does not know are ignored.
 */
const findStacked = (
  schema: TSchema | undefined,
  value: unknown,
  path: string,
): FaultField | null => {
  if (schema !== undefined && isJudgedLater(schema)) return null;
  if (typeof value === 'string') {
    const message = explainStacking(value);
    return message === null ? null : { path, message };
  }
  if (typeof value !== 'object' || value === null) return null;
  const known = schema?.[Kind] === 'Object' ? (schema as TObject).properties : undefined;
  for (const [name, member] of Object.entries(value)) {
    if (known !== undefined && !(name in known)) continue;
    const found = Array.isArray(value)
      ? findStacked(schema?.['items'], member, `${path}.${name}`)
      : (findStacked(undefined, name, path) ??
        findStacked(known?.[name], member, `${path}.${name}`));
    if (found !== null) return found;
  }
  return null;
};

/**
 * Compiles a schema into a check, which returns null or the fields that are wrong. With
 * `leaves_texts`, combining marks are not checked: the call that the page makes checks them.
 */
export const compileCheck = (
  schema: TSchema,
  root: string,
  { leaves_texts = false }: { readonly leaves_texts?: boolean } = {},
): Check => {
  const compiled = TypeCompiler.Compile(schema);
  return (value) => {
    if (!compiled.Check(value)) return collect(compiled.Errors(value), root);
    if (leaves_texts) return null;
    const unsafe = findStacked(schema, value, root);
    return unsafe === null ? null : [unsafe];
  };
};

/** Converts a string to the kind of the schema. A string that does not fit is left to the check. */
export const convert = (kind: string, text: string): unknown => {
  if (kind === 'Array') return text.split(',').filter((item) => item !== '');
  if (kind === 'Boolean' && /^(?:true|1|false|0)$/.test(text)) return /^[t1]/.test(text);
  const is_number = (kind === 'Integer' || kind === 'Number') && /^-?\d+(\.\d+)?$/.test(text);
  return is_number ? Number(text) : text;
};

/** A `limit` above its maximum is reduced to the maximum. */
const capLimit = (value: unknown, { maximum }: TSchema): unknown =>
  typeof value === 'number' && Math.floor(value) === value && value > maximum ? maximum : value;

/** In a query `+` means a space, so a time offset that is not encoded arrives with a space. */
const readOffset = (text: string): string =>
  text.replace(/^(\d{4}-\d\d-\d\d[Tt][\d:.]+) (\d\d:?\d\d)$/, '$1+$2');

const isTimeMember = ({ format, anyOf }: TSchema): boolean =>
  format === 'date-time' || (anyOf as readonly TSchema[] | undefined)?.some(isTimeMember) === true;

type QueryReader = (
  raw: string,
) => { readonly value: Record<string, unknown> } | { readonly fields: readonly FaultField[] };

/**
 * Compiles the reader of a query string. It converts known keys to the type of their schema, checks
 * them and fills in defaults; unknown keys are ignored. An empty value counts as missing. A list is
 * written with commas, or by repeating the key. A `limit` above its maximum is reduced to it.
 */
export const compileQuery = (schema: TObject): QueryReader => {
  const check = compileCheck(schema, 'query');
  const keys = Object.entries(schema.properties).map(([name, property]) => ({
    name,
    property,
    kind: property[Kind] as string,
    fallback: property.default as unknown,
    is_time: isTimeMember(property),
  }));
  return (raw) => {
    const value: Record<string, unknown> = {};
    const given = raw === '' ? null : new URLSearchParams(raw);
    for (const { name, property, kind, fallback, is_time } of keys) {
      const text = kind === 'Array' ? given?.getAll(name).join(',') : given?.get(name);
      if (text) {
        if (text.includes('\0') || !text.isWellFormed()) {
          const message = 'contains characters that are not allowed';
          return { fields: [{ path: `query.${name}`, message }] };
        }
        const converted = convert(kind, is_time ? readOffset(text) : text);
        value[name] = name === 'limit' ? capLimit(converted, property) : converted;
      } else if (fallback !== undefined) value[name] = fallback;
    }
    const fields = check(value);
    return fields === null ? { value } : { fields };
  };
};

/**
 * Reads a request body as JSON. It refuses anything that no honest client sends: bytes that are not
 * UTF-8, NUL, lone surrogates, infinite numbers, nesting deeper than 16, and keys such as
 * `__proto__`. Takes linear time.
 */

type ParsedJson =
  | { readonly ok: true; readonly value: unknown; readonly text: string }
  | { readonly ok: false; readonly problem: string };

const deepest = 16;
const refused_keys = new Set(['__proto__', 'constructor', 'prototype']);

const findTextProblem = (text: string): string | null => {
  if (text.includes('\0')) return 'A string contains a NUL character.';
  if (!text.isWellFormed()) return 'A string contains a lone surrogate.';
  return null;
};

/** Returns the first problem of a parsed value, or null. */
export const findJsonProblem = (value: unknown, depth = 0): string | null => {
  if (typeof value === 'string') return findTextProblem(value);
  if (typeof value === 'number') {
    return Number.isFinite(value) ? null : 'A number is too large to be represented.';
  }
  if (typeof value !== 'object' || value === null) return null;
  if (depth >= deepest) return `The body is nested deeper than ${deepest} levels.`;
  if (Array.isArray(value)) {
    for (const item of value) {
      const problem = findJsonProblem(item, depth + 1);
      if (problem !== null) return problem;
    }
    return null;
  }
  for (const key in value) {
    if (refused_keys.has(key)) return `The key "${key}" is not allowed.`;
    const problem =
      findTextProblem(key) ?? findJsonProblem((value as Record<string, unknown>)[key], depth + 1);
    if (problem !== null) return problem;
  }
  return null;
};

const long_integer = /"(?:[^"\\]|\\.)*"|(?<![\d.eE+-])-?\d{16,}(?:\.0*)?(?![\d.eE])/g;

/** Returns false for an integer above 2^53 that a double cannot represent exactly. */
export const isExact = (text: string): boolean => {
  const digits = text.replace(/\.0*$/, '');
  if (!/^-?\d{16,}$/.test(digits)) return true;
  const read = Number(digits);
  // JavaScript writes 2^60 as 1152921504606847000, and reads the same number from that text.
  return !Number.isFinite(read) || String(read) === digits || BigInt(read) === BigInt(digits);
};

/** Returns a problem if reading the JSON would change a long integer, otherwise null. */
export const findInexactProblem = (json: string): string | null => {
  if (!/\d{16}/.test(json)) return null;
  for (const [token] of json.matchAll(long_integer)) {
    if (token.startsWith('"') || isExact(token)) continue;
    return `The number ${token.slice(0, 40)} cannot be stored exactly. Round it.`;
  }
  return null;
};

/** Checks only the syntax. `findJsonProblem` checks the values. */
export const readJson = (raw: Buffer): ParsedJson => {
  if (raw.length === 0) return { ok: false, problem: 'The body is empty. Send a JSON object.' };
  if (!isUtf8(raw)) return { ok: false, problem: 'The body is not valid UTF-8.' };
  // Some programs write a byte order mark before the text.
  const text = raw.toString('utf8').replace(/^\ufeff/, '');
  try {
    return { ok: true, value: JSON.parse(text), text };
  } catch {
    return { ok: false, problem: 'The body is not valid JSON.' };
  }
};

export const parseJson = (raw: Buffer): ParsedJson => {
  const read = readJson(raw);
  if (!read.ok) return read;
  const problem = findJsonProblem(read.value) ?? findInexactProblem(read.text);
  return problem === null ? read : { ok: false, problem };
};
