import { Kind, type TSchema } from '@sinclair/typebox';

/**
 * Fits answers into the context of a model. Long texts and lists are shortened. A page that is
 * still too large is requested again with fewer rows, so that its cursor continues after its last
 * row.
 */

/** Maximum size of an answer's text. */
export const max_bytes = 61_440;

interface Limits {
  readonly characters: number;
  readonly items: number;
}

/** Limits for the rows of a page (`rows`) and for everything else (`rest`). */
interface Step {
  readonly rows: Limits;
  readonly rest: Limits;
}

/** The usual limits come first. The next ones are tried if a single row does not fit. */
const steps: readonly Step[] = [
  { rows: { characters: 1_000, items: 50 }, rest: { characters: 4_000, items: 250 } },
  { rows: { characters: 200, items: 20 }, rest: { characters: 500, items: 50 } },
  { rows: { characters: 50, items: 5 }, rest: { characters: 50, items: 5 } },
];

/** The parts of an answer that a call asks for. */
export interface Shape {
  /** The member that holds the rows of a page; null if the answer is not a page. */
  readonly rows: string | null;
  /** `fields` names members of each row (`row`) or of the answer (`answer`). */
  readonly picks: 'row' | 'answer';
  /** Names of members to return; null for all. */
  readonly fields: readonly string[] | null;
  readonly is_full: boolean;
  /** Tells the reader of a shortened answer how to get all of it. */
  readonly whole: string;
}

type Members = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const mapMembers = (value: Members, change: (member: unknown, name: string) => unknown): Members =>
  Object.fromEntries(Object.entries(value).map(([name, one]) => [name, change(one, name)]));

/** Returns only the named members. `a.b` is the member `b` of `a`, or of each item of `a`. */
const pick = (value: unknown, names: readonly string[]): unknown => {
  if (Array.isArray(value)) return value.map((one) => pick(one, names));
  if (!isObject(value)) return value;
  const kept = Object.entries(value).flatMap(([name, one]) => {
    if (names.includes(name)) return [[name, one]];
    const inner = names.flatMap((path) =>
      path.startsWith(`${name}.`) ? [path.slice(name.length + 1)] : [],
    );
    return inner.length === 0 ? [] : [[name, pick(one, inner)]];
  });
  return Object.fromEntries(kept);
};

const pickFields = (body: unknown, { rows, picks, fields }: Shape): unknown => {
  if (fields === null || !isObject(body)) return body;
  if (picks === 'answer') return pick(body, [...fields, 'next_cursor']);
  return mapMembers(body, (one, name) => (name === rows ? pick(one, fields) : one));
};

/** `begin` and `end` never cut a surrogate pair in two. */
const begin = (text: string, length: number): string =>
  text.slice(0, length).replace(/[\ud800-\udbff]$/, '');
const end = (text: string, length: number): string =>
  text.slice(text.length - length).replace(/^[\udc00-\udfff]/, '');

/** Keeps the beginning and the end of a text, because reasoning ends with its bottom line. */
const shortenText = (text: string, { characters }: Limits, whole: string): string => {
  if (text.length <= characters) return text;
  const tail = Math.floor(characters / 4);
  const left_out = text.length - characters;
  const mark = `… [${left_out} more characters; ${whole}] …`;
  return `${begin(text, characters - tail)}${mark}${end(text, tail)}`;
};

const shorten = (value: unknown, limits: Limits, whole: string): unknown => {
  if (typeof value === 'string') return shortenText(value, limits, whole);
  if (isObject(value)) return mapMembers(value, (one) => shorten(one, limits, whole));
  if (!Array.isArray(value)) return value;
  const shown = value.slice(0, limits.items).map((one) => shorten(one, limits, whole));
  const left_out = value.length - shown.length;
  return left_out === 0 ? shown : [...shown, `… [${left_out} more items; ${whole}]`];
};

const shortenAnswer = (body: unknown, { rows, whole }: Shape, step: Step): unknown => {
  if (!isObject(body)) return shorten(body, step.rest, whole);
  return mapMembers(body, (one, name) =>
    name === rows && Array.isArray(one)
      ? one.map((row) => shorten(row, step.rows, whole))
      : shorten(one, step.rest, whole),
  );
};

const rowsOf = (body: unknown, { rows }: Shape): readonly unknown[] => {
  const found = rows !== null && isObject(body) ? body[rows] : undefined;
  return Array.isArray(found) ? found : [];
};

const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

/** Returns how many rows fit beside the rest of an answer that is too large; at least one. */
const countFitting = (body: unknown, shape: Shape): number => {
  const sizes = rowsOf(body, shape).map((row) => bytesOf(row) + 1);
  let left = max_bytes - bytesOf(body) + sizes.reduce((sum, size) => sum + size, 0);
  const fitting = sizes.findIndex((size) => {
    left -= size;
    return left < 0;
  });
  return Math.max(1, fitting);
};

/**
 * Returns the text of an answer, or a smaller number of rows to ask for if the answer is too large.
 */
export const fitAnswer = (
  answer: unknown,
  shape: Shape,
): { readonly text: string } | { readonly limit: number } => {
  const body = pickFields(answer, shape);
  let text = '';
  for (const step of shape.is_full ? [null] : steps) {
    const shown = step === null ? body : shortenAnswer(body, shape, step);
    text = JSON.stringify(shown);
    if (Buffer.byteLength(text) <= max_bytes) return { text };
    if (rowsOf(shown, shape).length > 1) return { limit: countFitting(shown, shape) };
  }
  return { text };
};

/** Cuts a long text after the last line that fits. */
export const cutLines = (text: string, mark: string): string => {
  const bytes = Buffer.from(text);
  if (bytes.length <= max_bytes) return text;
  const cut = bytes.toString('utf8', 0, max_bytes - Buffer.byteLength(mark) - 8);
  return `${cut.slice(0, Math.max(0, cut.lastIndexOf('\n')))}\n\n${mark}\n`;
};

/** Returns the names of a value's members; null if it can have any member. */
const namesIn = (schema: TSchema | undefined): readonly string[] | null => {
  if (schema === undefined) return null;
  const { anyOf, items, properties } = schema;
  if (anyOf !== undefined) {
    const found = (anyOf as readonly TSchema[]).map(namesIn);
    return found.includes(null) ? null : [...new Set(found.flatMap((names) => names ?? []))];
  }
  if (items !== undefined) return namesIn(items);
  if (schema['additionalProperties'] === true) return null;
  if (properties !== undefined) return Object.keys(properties);
  return schema[Kind] === 'Record' || schema['type'] === undefined ? null : [];
};

const memberIn = (schema: TSchema, name: string): TSchema | undefined => {
  const inner = (schema['anyOf'] as readonly TSchema[] | undefined) ?? [schema['items']];
  const found = schema['properties']?.[name];
  if (found !== undefined) return found;
  for (const one of inner) {
    const member = one === undefined ? undefined : memberIn(one, name);
    if (member !== undefined) return member;
  }
  return undefined;
};

/** Explains why the schema has no member with this path; null if it has one. */
export const explainField = (schema: TSchema, path: string): string | null => {
  let at: TSchema | undefined = schema;
  for (const name of path.split('.')) {
    const names = namesIn(at);
    if (at === undefined || names === null) return null;
    if (names.length === 0) return 'is inside a value that has no members';
    if (!names.includes(name)) return `is not known here: use ${names.join(', ')}`;
    at = memberIn(at, name);
  }
  return null;
};
